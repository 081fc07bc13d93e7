#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: check.sh BUILD PART... [MESON_ARGUMENT]...
#
# Builds and tests the parts that are named, and ends with their sum:
#   plain      BUILD, with the default compiler
#   sanitized  BUILD-clang, with clang, the address and undefined-behaviour sanitizers and the fuzz
#              targets; DPDK is that of BUILD
set -u
cd "$(dirname "$0")/.."
build=$1
shift
parts=
while test $# -gt 0; do
	case $1 in
	plain | sanitized) parts="$parts $1" ;;
	*) break ;;
	esac
	shift
done
started=$(date +%s)
broken=
logs=

say() {
	echo
	echo "==== $* ($(($(date +%s) - started)) s since the start)"
}

# usage: test_build NAME BUILD
test_build() {
	say "tests of $2"
	# Their time limits end what hangs: on a machine that is busy with other things nothing does.
	meson test -C "$2" --no-rebuild --print-errorlogs --timeout-multiplier 4
	logs="$logs $1=$2/meson-logs/testlog.json"
}

build_plain() {
	say "building program and tests in $build"
	scripts/build.sh "$build" checks "$@"
}

build_sanitized() {
	clang_build=$build-clang
	say "building with clang and sanitizers in $clang_build"
	case " $* " in
	*" -Dsystem_dpdk=true "*) ;;
	*)
		scripts/build.sh "$build" dpdk-archives "$@" &&
			pc=$(scripts/dpdk-stage.sh "$build" "$build/dpdk-stage") || return 1
		export PKG_CONFIG_PATH="$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
		set -- "$@" -Dsystem_dpdk=true
		;;
	esac
	CC=clang CXX=clang++ scripts/build.sh "$clang_build" checks "$@" -Dsanitize=true -Doptimization=1 \
		-Dcuda=disabled -Dfuzzers=enabled
}

mkdir -p "$build"
scripts/test-python.sh "$build"
E2E_PYTHON=$(cd "$build" && pwd)/venv/bin/python3
export E2E_PYTHON

# A log of an earlier run must not count for this one.
rm -f "$build/meson-logs/testlog.json" "$build-clang/meson-logs/testlog.json"
for part in $parts; do
	if test "$part" = plain; then
		build_plain "$@" && test_build "$build" "$build" || broken="$broken --broken $build"
	else
		build_sanitized "$@" && test_build "$build-clang" "$build-clang" ||
			broken="$broken --broken $build-clang"
	fi
done

say "result"
# shellcheck disable=SC2086 # lists of words
exec python3 scripts/summary.py $broken $logs
