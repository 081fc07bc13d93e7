#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: abi.sh dump|check LIBRARY
#
# What programs that are linked with libgdrcap.so rely on: its functions and the types of its public headers, as
# libabigail sees them in the debug information of LIBRARY, a build's lib/libgdrcap.so.
#   dump   writes them to tests/abi/libgdrcap.abi, which is that of the last release
#   check  fails where a part of them is no longer as it is there: a program of then may not run
set -eu
usage="usage: scripts/abi.sh dump|check LIBRARY"
action=${1:?$usage}
library=$(realpath "${2:?$usage}")
cd "$(dirname "$0")/.."
kept=tests/abi/libgdrcap.abi

if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
	echo "abidw and abidiff are not installed (Debian's package abigail-tools)"
	exit 77
fi
if ! readelf -S "$library" | grep -q '\.debug_info'; then
	echo "$library has no debug information: take it from a build folder, not from where it is installed"
	exit 77
fi

# Without what differs between machines and lines of source.
dump() {
	abidw --exported-interfaces-only --headers-dir lib/include --drop-private-types --no-show-locs \
		--no-comp-dir-path --no-corpus-path --no-elf-needed --type-id-style hash --out-file "$1" "$library"
}

case $action in
dump)
	dump "$kept"
	;;
check)
	# Another version of the format names types otherwise.
	if ! head -n 1 "$kept" | grep -q "version='$(abidw --abixml-version | sed 's/.* //')'"; then
		echo "this abidw writes $(abidw --abixml-version), and $kept is of another version"
		exit 77
	fi
	now=$(mktemp)
	trap 'rm -f "$now"' EXIT
	dump "$now"
	python3 scripts/abi_grown.py "$kept" "$now"
	# 0: the same, or functions were added; else a part of what was there has changed, or the two bits of 3: why
	# it could not be compared.
	status=0
	abidiff --no-show-locs --no-added-syms "$kept" "$now" || status=$?
	if test $((status & 3)) -ne 0; then
		echo "abidiff could not compare them: status $status" >&2
		exit 1
	elif test "$status" -ne 0; then
		echo "programs that are linked with the last release may not run:" \
			"take the change back, or raise soversion (CONTRIBUTING.md, \"The ABI\")" >&2
		exit 1
	fi
	;;
*)
	echo "$usage" >&2
	exit 2
	;;
esac
