#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: test_control_loop.sh PROGRAM CONFIG - examples/control_loop.cu answers its own camera's pictures by a
# kernel, with slots and pictures in GPU memory and in pinned memory. 77 without a GPU.
set -eu
test -e /dev/nvidiactl || {
	echo "no GPU here"
	exit 77
}
for memory in device pinned; do
	said=$("$1" "$2" 2000 gpu=0 "memory=$memory")
	printf '%s memory:\n%s\n' "$memory" "$said"
	case $said in
	*"GPU: host"*) exit 1 ;;
	*"2000 answered, 0 held up, 0 unusable"*"2000 commands of 2000 checked, 0 wrong"*) ;;
	*) exit 1 ;;
	esac
done
