#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: cross.sh arm64 [BUILD [MESON_ARGUMENT]...]
#
# Builds program, libraries and the unit tests of suite "emulated" for aarch64 in BUILD (build-arm64), with Debian's cross
# compiler, the bundled DPDK and a sysroot of its own (scripts/sysroot.sh), and runs them, `loopback` and `doctor` under
# qemu-user. Exits 77, with a last line that says why, where a tool is missing or the machine's package sources have
# nothing for arm64.
set -eu
cd "$(dirname "$0")/.."
usage="usage: scripts/cross.sh arm64 [BUILD [MESON_ARGUMENT]...]"
architecture=${1:?$usage}
if test "$architecture" != arm64; then
	echo "cross: $architecture is not known here; arm64 is. $usage" >&2
	exit 2
fi
shift
build="build-arm64"
if test $# -gt 0; then
	build=$1
	shift
fi
triple=aarch64-linux-gnu
libraries="libc6-dev libnuma-dev libibverbs-dev libpcap-dev libbpf-dev libxdp-dev libyaml-dev libjansson-dev
	libcmocka-dev libpng-dev libmicrohttpd-dev"

if test "$(uname -m)" = aarch64; then
	echo "cross: this machine is an arm64 itself: make check builds and tests there"
	exit 77
fi
for tool in $triple-gcc:gcc-$triple pkg-config:pkg-config meson:meson ninja:ninja-build; do
	command -v "${tool%%:*}" >/dev/null && continue
	echo "cross: ${tool%%:*} is not installed: sudo apt-get install ${tool##*:}" >&2
	exit 77
done
# Static or not: the one that is there.
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if test -z "$emulator"; then
	echo "cross: qemu-aarch64 is not installed: sudo apt-get install qemu-user" >&2
	exit 77
fi

mkdir -p "$build"
build=$(cd "$build" && pwd)
rm -f "$build/meson-logs/testlog.json" # of an earlier run
if test -n "${GDRCAP_SYSROOT:-}"; then
	sysroot=$(cd "$GDRCAP_SYSROOT" && pwd)
else
	sysroot=$build/sysroot
	# shellcheck disable=SC2086 # a list of words
	scripts/sysroot.sh "$architecture" "$sysroot" $libraries
fi

# ccache as for a native build.
ccache=$(command -v ccache || true)
cat >"$build/cross.ini.new" <<END
[binaries]
c = [${ccache:+'$ccache', }'$triple-gcc']
ar = '$triple-gcc-ar'
strip = '$triple-strip'
objcopy = '$triple-objcopy'
pkgconfig = 'pkg-config'
exe_wrapper = ['$emulator', '-L', '$sysroot']

[built-in options]
c_args = ['--sysroot=$sysroot']
c_link_args = ['--sysroot=$sysroot']

[properties]
sys_root = '$sysroot'
pkg_config_libdir = ['$sysroot/usr/lib/$triple/pkgconfig', '$sysroot/usr/lib/pkgconfig', '$sysroot/usr/share/pkgconfig']
platform = 'generic'
emulator = '$emulator -L $sysroot'

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'armv8-a'
endian = 'little'
END
if ! cmp -s "$build/cross.ini.new" "$build/cross.ini"; then
	rm -f "$build/build.ninja" # of another compiler or sysroot
	mv "$build/cross.ini.new" "$build/cross.ini"
fi
rm -f "$build/cross.ini.new"
if ! test -f "$build/build.ninja"; then
	set -- "--cross-file=$build/cross.ini" -Dcuda=disabled -Dpython=disabled -Dgstreamer=disabled "$@"
fi
scripts/build.sh "$build" emulated "$@"

echo "cross: meson test -C $build --no-rebuild --suite emulated"
exec meson test -C "$build" --no-rebuild --suite emulated --print-errorlogs --timeout-multiplier 4
