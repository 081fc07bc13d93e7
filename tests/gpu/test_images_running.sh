#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: test_images_running.sh PROGRAM - examples/images_running.cu takes a loopback's images: 20 of 16,000
# bytes, each 3. 77 without a GPU.
set -eu
test -e /dev/nvidiactl || {
	echo "no GPU here"
	exit 77
}
config=$(mktemp)
trap 'rm -f "$config"' EXIT
cat >"$config" <<-'END'
	port: ring:test
	tx_port: ring:test
	gpu: 0
	frames: 320
	pattern: {name: constant, value: 3}
	frame: {size: 1054}
	consumer: {name: gpu}
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
said=$("$1" "$config")
test "$said" = "20 images, 0 incomplete, their bytes' sum 960000" || {
	echo "it says: $said"
	exit 1
}
