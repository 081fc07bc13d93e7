#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: run.sh PROGRAM CORPUS SECONDS
#
# Runs a fuzz target from its seeds, the files of CORPUS if that is there, and writes nothing into it.
set -eu
seeds=
for file in "$2"/*; do
	test -e "$file" && seeds=$seeds${seeds:+,}$file
done
# A busy machine is slow; what hangs, hangs for good.
exec "$1" ${seeds:+"-seed_inputs=$seeds"} "-max_total_time=$3" -timeout=60
