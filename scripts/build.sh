#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: build.sh BUILD [MESON_ARGUMENT]...
#
# Configures BUILD if that has not happened, with what it needs, and compiles.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift

if ! test -f "$build/build.ninja"; then
	case " $* " in
	*" -Dsystem_dpdk=true "*) ;;
	*) scripts/dpdk-source.sh ;;
	esac
	# What is left of a configuration that broke off is of no use.
	rm -rf "$build/meson-private" "$build/meson-info"
	mkdir -p "$build"
	echo "build: configuring $build"
	if ! meson setup "$build" "$@" >"$build/setup.log" 2>&1; then
		# DPDK's own list of what it left out is long and hides the cause.
		grep -v '^dpdk|' "$build/setup.log" | tail -40 >&2
		exit 1
	fi
	sed -n '/^gdrcap [0-9]/,$p' "$build/setup.log"
elif test $# -gt 0; then
	echo "build: $build is configured already; setting $*"
	meson configure "$build" "$@"
fi
echo "build: compiling in $build; minutes when DPDK is new, seconds afterwards"
exec meson compile -C "$build"
