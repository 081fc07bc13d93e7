#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: test_pingpong.sh PROGRAM [ROUNDS] - examples/pingpong, two and three ranks, kernels of one GPU: each of the three
# ways brings all messages back. 77 without a GPU.
set -eu
test -e /dev/nvidiactl || {
	echo "no GPU here"
	exit 77
}
rounds=${2:-10000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for ranks in 2 3; do
	others=
	i=1
	while test "$i" -lt "$ranks"; do
		"$1" --rank "$i" --ranks "$ranks" --dir "$dir" --rounds "$rounds" --timeout 60 gpu=0 &
		others="$others $!"
		i=$((i + 1))
	done
	said=$("$1" --rank 0 --ranks "$ranks" --dir "$dir" --rounds "$rounds" --timeout 60 gpu=0)
	printf '%s\n' "$said"
	for other in $others; do
		wait "$other"
	done
	case $said in
	*" CPUs"*) exit 1 ;;
	esac
	for way in CPU-driven stream-ordered kernel-driven; do
		printf '%s\n' "$said" | grep -Eq "^$way +$rounds +0 +0 "
	done
done
