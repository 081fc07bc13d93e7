#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: build.sh BUILD TARGET [MESON_ARGUMENT]...
#
# Configures BUILD if that has not happened, with what it needs, and compiles TARGET, a target of
# Ninja's, and what that needs: "product" is the program and the library, "checks" the tests too.
set -eu
cd "$(dirname "$0")/.."
build=$1
target=$2
shift 2
case $target in
checks) targets="product meson-test-prereq" ;;
*) targets=$target ;;
esac

if ! test -f "$build/build.ninja"; then
	case " $* " in
	*" -Dsystem_dpdk=true "*) ;;
	*) scripts/dpdk-source.sh ;;
	esac
	# What is left of a configuration that broke off is of no use.
	rm -rf "$build/meson-private" "$build/meson-info"
	mkdir -p "$build"
	echo "build: configuring $build: some 15 seconds"
	if ! meson setup "$build" "$@" >"$build/setup.log" 2>&1; then
		# DPDK's own list of what it left out is long and hides the cause.
		grep -v '^dpdk|' "$build/setup.log" | tail -40 >&2
		exit 1
	fi
	sed -n '/^gdrcap [0-9]/,$p' "$build/setup.log"
	echo "build: compiling $target in $build: minutes this first time, seconds afterwards"
elif test $# -gt 0; then
	echo "build: $build is configured already; setting $*"
	meson configure "$build" "$@"
fi
# Before each file's name: how far it is.
NINJA_STATUS="build: %p, %f of %t files, %e s  "
export NINJA_STATUS
# shellcheck disable=SC2086 # a list of words
exec ninja -C "$build" $targets
