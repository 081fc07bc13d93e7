#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: check.sh BUILD check|ci|long|sanitized|arm64 [MESON_ARGUMENT]...
#
# Builds and tests, and ends with "N passed, N failed":
#   check      BUILD, with the default compiler: what each change has to pass
#   ci         that; orderings and kernels, if what they are made of changed; BUILD-clang, with clang and its address and
#              undefined-behaviour sanitizers: units, the library's interface, faults, hostile input, fuzz targets, linters
#   long       all tests with both compilers, mutants, every GPU architecture, arm64, packages
#   sanitized  all tests in BUILD-clang. DPDK is that of BUILD
#   arm64      BUILD-arm64, cross-built, what of the tests runs under an emulator
set -u
cd "$(dirname "$0")/.." || exit
build=$1
rhythm=$2
shift 2
started=$(date +%s)
broken=
logs=

say() {
	echo
	echo "==== $* ($(($(date +%s) - started)) s since the start)"
}

# usage: test_build NAME RHYTHM BUILD - runs the tests of a build folder, as scripts/run_tests.py means RHYTHM
test_build() {
	say "tests in $3"
	results=$3/results.jsonl
	"$build/venv/bin/python3" scripts/run_tests.py "$3" "$2" --python "$build/venv/bin/python3" --results "$results"
	logs="$logs $1=$results"
}

# usage: step NAME COMMAND... - one more test: status 77 is a skip. What it prints is shown while it runs, and kept.
step() {
	step_name=$1
	shift
	say "$step_name"
	{ "$@" 2>&1; echo $? >"$build/step.status"; } | tee "$build/step.log"
	python3 scripts/summary.py --record "$step_name" --status "$(cat "$build/step.status")" "$build/step.log" \
		>>"$build/steps.jsonl"
}

build_plain() {
	say "building program and tests in $build"
	scripts/build.sh --distribution-dpdk "$build" "$targets" "$@"
}

# usage: build_with_dpdk_of_build FOLDER TARGET [MESON_ARGUMENT]... - a second build, which takes DPDK from BUILD
build_with_dpdk_of_build() {
	second=$1
	target=$2
	shift 2
	case " $* " in
	*" -Dsystem_dpdk=true "*) ;;
	*)
		scripts/build.sh --distribution-dpdk "$build" dpdk-archives || return 1
		pc=$(scripts/dpdk-stage.sh "$build" "$build/dpdk-stage") || return 1
		PKG_CONFIG_PATH="$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
		export PKG_CONFIG_PATH
		set -- "$@" -Dsystem_dpdk=true
		;;
	esac
	scripts/build.sh "$second" "$target" "$@"
}

build_sanitized() {
	say "building with clang and sanitizers in $build-clang"
	CC=clang CXX=clang++ build_with_dpdk_of_build "$build-clang" checks "$@" -Dsanitize=true -Doptimization=1 \
		-Dcuda=disabled -Dfuzzers=enabled
}

plain() {
	if build_plain "$@"; then test_build "$build" "$tests" "$build"; else broken="$broken --broken $build"; fi
}

sanitized() {
	if build_sanitized "$@"; then
		test_build "$build-clang" "$sanitized_tests" "$build-clang"
	else
		broken="$broken --broken $build-clang"
	fi
}

# Kernels for each GPU that the toolkit knows. They are compiled and linked, not run.
every_gpu() {
	command -v nvcc >/dev/null || {
		echo "nvcc is not installed"
		return 77
	}
	build_with_dpdk_of_build "$build-archs" product "$@" -Dgpu_archs=all -Dtests=false
}

packages() {
	scripts/deb.sh "$build/deb" && scripts/deb-check.sh "$build/deb"
}

# What takes minutes runs again when its inputs are not those that it last passed with.
changed_parts() {
	changed=" $(python3 tests/check_orderings.py changed | tr '\n' ' ')"
	for part in $(python3 tests/check_orderings.py names); do
		case $changed in
		*" $part "*) ;;
		*)
			echo "left out: $part: its inputs are those of its last pass (tests/check_orderings.py)"
			continue
			;;
		esac
		case $part in
		arm64) arm64 ;;
		cuda_archs) step "kernels for every GPU architecture" every_gpu "$@" ;;
		*) step "$part" meson test -C "$build" --no-rebuild --verbose --timeout-multiplier 4 "$part" ;;
		esac
	done
}

arm64() {
	step "arm64" scripts/cross.sh arm64 "$build-arm64"
	test ! -s "$build-arm64/meson-logs/testlog.json" || logs="$logs $build-arm64=$build-arm64/meson-logs/testlog.json"
}

mkdir -p "$build"
rm -f "$build/steps.jsonl"
test "$rhythm" = arm64 || scripts/test-python.sh "$build" || exit 1
tests=check
targets=checks
sanitized_tests=sanitized
case $rhythm in
check) plain "$@" ;;
ci)
	tests=ci
	plain "$@"
	changed_parts "$@"
	sanitized "$@"
	;;
long)
	tests=long
	targets=all-checks
	sanitized_tests=long
	plain "$@"
	sanitized "$@"
	arm64
	step "kernels for every GPU architecture" every_gpu "$@"
	step "packages" packages
	;;
sanitized)
	sanitized_tests=long
	sanitized "$@"
	;;
arm64) arm64 ;;
*)
	sed -n '3,14s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
test ! -s "$build/steps.jsonl" || logs="$logs $build=$build/steps.jsonl"

say "result"
# shellcheck disable=SC2086 # lists of words
exec python3 scripts/summary.py $broken $logs
