#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: prelink.sh OUTPUT.a AR OBJCOPY EXPORTS VISIBLE WHOLE_ARCHIVE... -- ARCHIVE... -- COMPILER...
#
# Makes a static library of one object. One object, because a linker takes it whole: DPDK's drivers
# register themselves in constructors that nobody refers to. Only the symbols in the file EXPORTS and
# in the list VISIBLE stay so, as in the shared library: none of DPDK or CUDA meets the embedder's own.
set -euf

output=$1
ar=$2
objcopy=$3
keep=--keep-global-symbols=$4
for symbol in $5; do keep="$keep --keep-global-symbol=$symbol"; done
shift 5

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
# shellcheck disable=SC2086 # a list of words
"$objcopy" $keep "$object"
rm -f "$output"
"$ar" crs "$output" "$object"
