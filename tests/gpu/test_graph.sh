#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: test_graph.sh PROGRAM - examples/cuda-graph takes a loopback's batches, from GPU and pinned memory, and
# its images: 20 of 16,000 bytes, each 3. It compares each sum with the CPU's. 77 without a GPU.
set -eu
test -e /dev/nvidiactl || {
	echo "no GPU here"
	exit 77
}
config=$(mktemp)
trap 'rm -f "$config"' EXIT
frames() {
	cat <<-END
		port: ring:test
		tx_port: ring:test
		gpu: 0
		memory: $1
		frames: 320
		pattern: {name: constant, value: 3}
		frame: {size: 1054}
		consumer: {name: host}
	END
}
for memory in device pinned; do
	frames $memory >"$config"
	said=$("$1" "$config" check)
	echo "$memory memory: $said"
	case $said in
	"0 batches"* | *" sum 0") exit 1 ;;
	*" batches, their bytes' sum "*) ;;
	*) exit 1 ;;
	esac
	cat >>"$config" <<-'END'
		image:
		  base: frame
		  kind: {at: 14, bytes: 2}
		  data: {kind: 0x6743, payload: 50}
		  number: {at: 22, bytes: 8, divide: 16}
		  index: {at: 22, bytes: 8, modulo: 16}
		  piece: 1000
		  pieces: 16
		  ring: 32
	END
	for check in check ''; do
		said=$("$1" "$config" $check)
		test "$said" = "20 images, their bytes' sum 960000" || {
			echo "$memory memory: it says: $said"
			exit 1
		}
	done
done
