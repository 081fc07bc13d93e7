#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: prelink.sh OUTPUT.a AR OBJCOPY WHOLE_ARCHIVE... -- ARCHIVE... -- COMPILER...
#
# Makes a static library of one object. One object, because a linker takes it whole: DPDK's drivers
# register themselves in constructors that nobody refers to. Only gdrcap_* stays visible, as in the
# shared library, so that no symbol of DPDK or CUDA meets the embedder's own.
set -eu

output=$1
ar=$2
objcopy=$3
shift 3

whole=
while test "$1" != --; do whole="$whole $1"; shift; done
shift
plain=
while test "$1" != --; do plain="$plain $1"; shift; done
shift

object=$output.o
trap 'rm -f "$object"' EXIT
# shellcheck disable=SC2086 # lists of words
"$@" -r -nostdlib -o "$object" -Wl,--whole-archive $whole -Wl,--no-whole-archive $plain
"$objcopy" --wildcard --keep-global-symbol='gdrcap_*' "$object"
rm -f "$output"
"$ar" crs "$output" "$object"
