#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: test_pingpong.sh PROGRAM [ROUNDS] - examples/pingpong by kernels of one GPU: two and three ranks in one
# process, and two processes, whose kernels take turns there; each way brings all messages back. 77 without a GPU.
set -eu
test -e /dev/nvidiactl || {
	echo "no GPU here"
	exit 77
}
rounds=${2:-10000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# RANKS ROUNDS ARGUMENT...
play() {
	ranks=$1 count=$2
	shift 2
	said=$("$program" "$@" --dir "$dir" --rounds "$count" --timeout 30 gpu=0)
	printf '%s\n' "$said"
	case $said in
	*" CPUs"*) return 1 ;;
	"$ranks ranks"*) ;;
	*) return 1 ;;
	esac
	for way in CPU-driven stream-ordered kernel-driven; do
		printf '%s\n' "$said" | grep -Eq "^$way +$count +0 +0 " || return 1
	done
}

program=$1
play 2 "$rounds" --threads 2
play 3 "$rounds" --threads 3
few=$((rounds / 50 + 1))
"$program" --rank 1 --ranks 2 --dir "$dir" --rounds "$few" --timeout 30 gpu=0 &
other=$!
play 2 "$few" --rank 0 --ranks 2
wait "$other"
