#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: run.sh [--needs FILE]... COMMAND [ARGUMENT]...
#
# Runs a test whose programs are built only by `ninja gpu-tests`: FILEs, and COMMAND where that is one. Where one is
# missing, exits 77 on a machine without a GPU, and 99, which Meson takes for an error in any test, on one with a GPU.
set -eu
missing=
while test "$1" = --needs; do
	test -e "$2" || missing=$2
	shift 2
done
command -v "$1" >/dev/null || missing=$1
test -n "$missing" || exec "$@"
if nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
	echo "$missing is not built: ninja gpu-tests"
	exit 99
fi
echo "needs a GPU, and nvidia-smi lists none: its program is not built here"
exit 77
