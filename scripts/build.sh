#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: build.sh [--distribution-dpdk] BUILD TARGET [MESON_ARGUMENT]...
#
# Configures BUILD if that has not happened, with what it needs, and compiles TARGET, a target of
# Ninja's, and what that needs: "product" is the program and the library, "checks" the tests too, less those of a GPU
# where there is none, and "all-checks" every test.
#
# With --distribution-dpdk a new BUILD links DPDK as the distribution compiled it, where that can be had: enough to try
# and to test gdrcap, and minutes sooner. Without, such a BUILD is changed to compile its own, which is what is
# installed, packaged and measured; only DPDK is compiled for that, and what contains it linked again.
set -eu
cd "$(dirname "$0")/.."
distribution_dpdk=no
if test "$1" = --distribution-dpdk; then
	distribution_dpdk=yes
	shift
fi
build=$1
target=$2
shift 2
case $target in
checks)
	targets="product meson-test-prereq test-programs"
	! nvidia-smi -L 2>/dev/null | grep -q '^GPU' || targets="$targets gpu-tests"
	;;
all-checks) targets="product meson-test-prereq test-programs gpu-tests" ;;
*) targets=$target ;;
esac
for argument in "$@"; do
	case $argument in
	-*) ;;
	*)
		echo "build: MESON_ARGS: \"$argument\" is no option; they begin with -D, as -D$argument" >&2
		exit 2
		;;
	esac
done

# usage: configured COMMAND... - runs it, and tells what came of it
configured() {
	echo "build: configuring $build: 15 seconds, a minute on a busy machine"
	if ! "$@" >"$build/setup.log" 2>&1; then
		# DPDK's own list of what it left out is long and hides the cause.
		grep -v '^dpdk|' "$build/setup.log" | tail -40 >&2
		exit 1
	fi
	sed -n '/^gdrcap [0-9]/,/^Found ninja/p' "$build/setup.log"
}

# A few files of the mlx5 driver take a compiler long, and Ninja says nothing meanwhile.
heartbeat() {
	pause=
	trap 'kill $pause 2>/dev/null; exit 0' TERM
	while :; do
		sleep 15 &
		pause=$!
		wait "$pause"
		test -n "$(find "$build/.ninja_log" -newermt '-14 seconds' 2>/dev/null)" ||
			echo "build: $(($(date +%s) - started)) s, still compiling:" \
				"some files take a minute, more on a busy machine"
	done
}

if ! test -w . || { test -e "$build" && ! test -w "$build"; }; then
	echo "build: $PWD or $build cannot be written by $(id -un): clone into a folder of your own" >&2
	exit 1
fi
if ! test -f "$build/build.ninja"; then
	case " $* " in
	*" -Dsystem_dpdk=true "*) ;;
	*) scripts/dpdk-source.sh ;;
	esac
	# What is left of a configuration that broke off is of no use.
	rm -rf "$build/meson-private" "$build/meson-info" "$build/dpdk-archives"
	mkdir -p "$build"
	case $distribution_dpdk" $* " in
	no* | *" -Dsystem_dpdk=true "* | *" -Ddpdk_archives="*) ;;
	*)
		archives=$(cd "$build" && pwd)/dpdk-archives
		scripts/dpdk-archives.sh "$archives" && set -- "-Ddpdk_archives=$archives" "$@"
		;;
	esac
	configured meson setup "$build" "$@"
else
	if test "$distribution_dpdk" = no && test -e "$build/dpdk-archives"; then
		echo "build: $build links the distribution's DPDK: changing it to compile its own"
		set -- -Ddpdk_archives= "$@"
	fi
	test $# -eq 0 || meson configure "$build" "$@" >"$build/setup.log" 2>&1 || {
		cat "$build/setup.log" >&2
		exit 1
	}
	# Files of the build itself may have changed as well.
	if ninja -C "$build" -n build.ninja | grep -q Regenerating; then
		configured ninja -C "$build" build.ninja
	fi
	test "$distribution_dpdk" = yes || rm -rf "$build/dpdk-archives"
fi
# shellcheck disable=SC2086 # a list of words
left=$(ninja -C "$build" -n $targets | grep -c '^\[' || true)
if test "$left" -gt 0; then
	echo "build: $left files are to be made in $build, which takes minutes if they are hundreds"
fi

started=$(date +%s)
heartbeat &
beat=$!
trap 'kill "$beat" 2>/dev/null || true' EXIT
trap 'exit 130' HUP INT TERM
# Before each file's name: how far it is.
NINJA_STATUS="build: %p, %f of %t files, %e s  "
export NINJA_STATUS
# shellcheck disable=SC2086 # a list of words
ninja -C "$build" $targets
