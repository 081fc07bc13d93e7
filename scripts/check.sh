#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: check.sh BUILD PART... [MESON_ARGUMENT]...
#
# Builds and tests the parts that are named, and ends with their sum:
#   plain      BUILD, with the default compiler
#   sanitized  BUILD-clang, with clang, the address and undefined-behaviour sanitizers and the fuzz
#              targets; DPDK is that of BUILD
#   arm64      BUILD-arm64, cross-built, what of the tests runs under an emulator; without MESON_ARGUMENTs
set -u
cd "$(dirname "$0")/.."
build=$1
shift
parts=
while test $# -gt 0; do
	case $1 in
	plain | sanitized | arm64) parts="$parts $1" ;;
	*) break ;;
	esac
	shift
done
started=$(date +%s)
broken=
skipped=
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

# Sets skipped where it cannot be done here.
check_arm64() {
	arm_build=$build-arm64
	say "cross-building for arm64 in $arm_build, and tests of it under qemu-user"
	case " $* " in
	*" -Dsystem_dpdk=true "*)
		skipped="arm64: needs DPDK's source, but -Dsystem_dpdk=true is given"
		return
		;;
	esac
	scripts/cross.sh arm64 "$arm_build"
	status=$?
	if test "$status" -eq 77; then
		skipped="arm64: cannot be built or run here: see above"
	elif test "$status" -eq 0 || test -s "$arm_build/meson-logs/testlog.json"; then
		logs="$logs $arm_build=$arm_build/meson-logs/testlog.json"
	else
		broken="$broken --broken $arm_build"
	fi
}

mkdir -p "$build"
case " $parts " in
*" plain "* | *" sanitized "*)
	scripts/test-python.sh "$build"
	E2E_PYTHON=$(cd "$build" && pwd)/venv/bin/python3
	export E2E_PYTHON
	;;
esac

# A log of an earlier run must not count for this one.
rm -f "$build/meson-logs/testlog.json" "$build-clang/meson-logs/testlog.json"
for part in $parts; do
	if test "$part" = plain; then
		build_plain "$@" && test_build "$build" "$build" || broken="$broken --broken $build"
	elif test "$part" = arm64; then
		check_arm64 "$@"
	else
		build_sanitized "$@" && test_build "$build-clang" "$build-clang" ||
			broken="$broken --broken $build-clang"
	fi
done

say "result"
# shellcheck disable=SC2086 # lists of words
exec python3 scripts/summary.py $broken ${skipped:+--skipped "$skipped"} $logs
