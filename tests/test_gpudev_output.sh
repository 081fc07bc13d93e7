#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs DPDK's own gpudev test on one of our drivers and reads what it printed, since its exit status
# does not say whether its tests passed.
# usage: test_gpudev_output.sh DPDK-TEST-GPUDEV VDEV      exit: 0, 1, or 77 without a CUDA device
set -u

if [ $# -ne 2 ]; then
	echo "usage: $0 DPDK-TEST-GPUDEV VDEV" >&2
	exit 2
fi
binary=$1
vdev=$2

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT INT TERM
output=$scratch/stdout
log=$scratch/stderr

# DPDK keeps its run-time files below RUNTIME_DIRECTORY: none are left behind.
RUNTIME_DIRECTORY=$scratch "$binary" --no-huge -m 256 --no-pci --no-telemetry \
	--file-prefix "gdrcap-test-gpudev-$$" --vdev "$vdev" >"$output" 2>"$log"
status=$?
cat "$log" "$output"

case $vdev in
gpu_cuda*)
	why=$(grep -m 1 '^no CUDA device: ' "$log")
	if [ -n "$why" ]; then
		echo "skipped: $why"
		exit 77
	fi
	;;
esac

if [ $status -ne 0 ]; then
	echo "FAIL: exit status $status"
	exit 1
fi

count() {
	grep -c "^=======> TEST: $1\$" "$output"
}
passed=$(count PASSED)
failed=$(count FAILED)

if [ "$passed" -eq 5 ] && [ "$failed" -eq 0 ]; then
	exit 0
fi

# The CPU reaches GPU memory through GDRCopy only: the test of that, and no other, may fail, and
# only when the driver said that GDRCopy is what it lacks.
case $vdev in
gpu_cuda*)
	mapping=$(grep '^=======> TEST: ' "$output" |
		sed -n '/Map GPU memory for CPU visibility/{n;p;}')
	if [ "$passed" -eq 4 ] && [ "$failed" -eq 1 ] &&
		[ "$mapping" = "=======> TEST: FAILED" ] &&
		grep -q 'gpu_cuda: no CPU mapping of GPU memory: GDRCopy' "$log"; then
		exit 0
	fi
	;;
esac

echo "FAIL: $passed of 5 tests passed, $failed failed"
exit 1
