#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: check_reuse.sh ROOT
#
# Each file says under which licence it is, and the licence is there.
set -eu
cd "$1"
if ! test -e .git; then
	echo "not a clone: what belongs to the project is not known"
	exit 77
fi
if ! command -v reuse >/dev/null; then
	echo "reuse is not installed (Debian's package reuse)"
	exit 77
fi
reuse lint
