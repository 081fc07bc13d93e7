#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: check.sh BUILD [MESON_ARGUMENT]...
#
# Builds and tests twice: BUILD with the default compiler, and BUILD-clang with clang, the address
# and undefined-behaviour sanitizers and the fuzz targets. Ends with the sum of both.
set -u
cd "$(dirname "$0")/.."
build=$1
shift
clang_build=$build-clang
started=$(date +%s)
broken=

say() {
	echo
	echo "==== $* ($(($(date +%s) - started)) s since the start)"
}

# A log of an earlier run must not count for this one.
rm -f "$build/meson-logs/testlog.json" "$clang_build/meson-logs/testlog.json"

logs=
say "build with the default compiler; DPDK takes minutes when it is new"
if scripts/build.sh "$build" "$@"; then
	say "tests"
	meson test -C "$build" --no-rebuild --print-errorlogs
	logs="build=$build/meson-logs/testlog.json"

	say "build with clang and sanitizers"
	if pc=$(scripts/dpdk-stage.sh "$build" "$build/dpdk-stage") &&
		CC=clang PKG_CONFIG_PATH=$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
			scripts/build.sh "$clang_build" "$@" -Dsystem_dpdk=true -Dsanitize=true \
			-Doptimization=1 -Dcuda=disabled -Dfuzzers=enabled; then
		say "tests with sanitizers, fuzz targets"
		meson test -C "$clang_build" --no-rebuild --print-errorlogs
		logs="$logs clang+sanitizers=$clang_build/meson-logs/testlog.json"
	else
		broken="--broken clang+sanitizers"
	fi
else
	broken="--broken build"
fi

say "result"
# shellcheck disable=SC2086 # lists of words
exec python3 scripts/summary.py $broken $logs
