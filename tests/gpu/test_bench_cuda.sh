#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every stage of the bench that runs kernels, shortly: its figures are not looked at, only that no
# run fails and no frame is damaged or lost.
# usage: test_bench_cuda.sh GDRCAP      exit: 0, 1, or 77 without a CUDA device
set -u

if [ $# -ne 1 ]; then
	echo "usage: $0 GDRCAP" >&2
	exit 2
fi

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT INT TERM

"$1" bench --gpu 0 --quick --runs 1 --run-time 20 --quiet \
	--stages gpu_memory,zero_copy,round_trip,consumer,latency,sender,image,idle \
	>"$scratch/stdout" 2>"$scratch/stderr"
status=$?
cat "$scratch/stdout" "$scratch/stderr"

why=$(grep -m 1 'there is no CUDA device 0 (0 found' "$scratch/stderr")
if [ -n "$why" ]; then
	echo "skipped: $why"
	exit 77
fi
[ "$status" -eq 0 ] || exit 1
