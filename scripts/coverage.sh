#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: coverage.sh BUILD [MESON_ARGUMENT]...
#
# Which lines and branches of gdrcap, without CUDA and not of DPDK, the tests run: builds them in BUILD-coverage, runs
# what is written in C and some end-to-end tests, and prints a table by folder, of gcov's counts. DPDK is that of BUILD.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
coverage=$build-coverage
# Tests in Python that run the program. TESTS="merge options" in the environment: these tests in C instead of all.
e2e="cli loopback_ring doctor merge ready service metrics telemetry json_file save images pcap_files"

case " $* " in
*" -Dsystem_dpdk=true "*) ;;
*)
	scripts/build.sh --distribution-dpdk "$build" dpdk-archives "$@"
	mkdir -p "$coverage"
	pc=$(scripts/dpdk-stage.sh "$build" "$coverage/dpdk-stage")
	export PKG_CONFIG_PATH="$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
	set -- "$@" -Dsystem_dpdk=true
	;;
esac
# Optimised no more than functions that have to be inlined want (with 0 they are errors); counted atomically, for frames
# are many threads' work. Some of the compiler's warnings are wrong then.
set -- "$@" -Db_coverage=true -Doptimization=1 -Dwerror=false -Dc_args=-fprofile-update=atomic -Dcuda=disabled \
	-Dpython=disabled -Dgstreamer=disabled
scripts/build.sh "$coverage" checks "$@"
# What an earlier run counted.
find "$coverage" -name '*.gcda' -delete
tests=${TESTS:-$(meson introspect "$coverage" --tests | python3 scripts/coverage.py tests)}
# What tests ran counts, whether they failed or not.
# shellcheck disable=SC2086 # a list of words
meson test -C "$coverage" --no-rebuild --timeout-multiplier 4 $tests || echo "coverage: not every test passed"
if test -z "${TESTS:-}"; then
	scripts/test-python.sh "$build"
	# shellcheck disable=SC2046 # a list of words
	"$build/venv/bin/python3" -m pytest -q --build="$coverage" $(printf 'tests/e2e/test_%s.py ' $e2e) ||
		echo "coverage: not every test passed"
fi
python3 scripts/coverage.py table "$coverage" >"$coverage/coverage.txt"
sed '/^$/q' "$coverage/coverage.txt"
echo "coverage: $coverage/coverage.txt has each file"
