#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs the packages that building (build), testing (check), testing with sanitizers
# (check-sanitized), cross-building for arm64 and testing that (check-arm64), what a change has to pass (ci), or all
# tests (check-long) need, on Debian and Ubuntu. Without root it only looks, and prints the command
# that is missing.
set -eu

usage="usage: scripts/setup.sh build|check|check-sanitized|check-arm64|ci|check-long"
set_wanted=${1:?$usage}

# Tools count as present when the command is, wherever it came from: "package:command".
tools="gcc:gcc g++:g++ make:make meson:meson ninja-build:ninja pkg-config:pkg-config
	python3:python3 xz-utils:xz curl:curl"
libraries="libc6-dev ca-certificates python3-pyelftools libnuma-dev libibverbs-dev libpcap-dev
	libbpf-dev libyaml-dev libjansson-dev libcmocka-dev libpng-dev"
# Packages that not every release has as such: there their content is in one of the above.
if_available="libxdp-dev python3-dev libmicrohttpd-dev"

case $set_wanted in
build | check-arm64) ;;
check | check-sanitized | ci | check-long)
	tools="$tools git:git iproute2:ip cmake:cmake"
	# pytest, and other tools: frames are compared with theirs, or they judge source and man pages. What needs one that is
	# missing is skipped.
	if_available="$if_available python3-venv python3-pytest python3-pytest-timeout python3-pytest-xdist mandoc reuse
		abigail-tools tcpdump tcpreplay tshark python3-jinja2 clang-format-14 aravis-tools ffmpeg"
	if test "$set_wanted" != check; then
		tools="$tools clang:clang"
		if_available="$if_available libclang-rt-dev clang-tidy-14 cppcheck"
	fi
	if test "$set_wanted" = check-long; then
		if_available="$if_available gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
			libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev chromium openmpi-bin
			dpkg-dev debhelper dh-python lintian mmdebstrap umoci podman"
		# For promtool. Elsewhere the package would start a server that listens: there it is yours to install.
		test -d /run/systemd/system || if_available="$if_available prometheus"
	fi
	;;
*)
	echo "$usage" >&2
	exit 2
	;;
esac
# Without them that part of ci is skipped.
if test "$(uname -m)" != aarch64; then
	case $set_wanted in
	check-arm64)
		tools="$tools gcc-aarch64-linux-gnu:aarch64-linux-gnu-gcc"
		command -v qemu-aarch64-static >/dev/null || tools="$tools qemu-user:qemu-aarch64"
		;;
	ci | check-long)
		if_available="$if_available gcc-aarch64-linux-gnu"
		command -v qemu-aarch64-static >/dev/null || if_available="$if_available qemu-user"
		;;
	esac
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "setup: this is not Debian or Ubuntu; install what corresponds to these packages yourself:"
	for tool in $tools; do printf ' %s' "${tool%%:*}"; done
	echo " $libraries $if_available" | tr -s '\n\t ' '   '
	echo
	exit 0
fi

is_installed() {
	test "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed
}

missing=
for tool in $tools; do
	command -v "${tool##*:}" >/dev/null || missing="$missing ${tool%%:*}"
done
for package in $libraries; do
	is_installed "$package" || missing="$missing $package"
done
optional=
for package in $if_available; do
	is_installed "$package" || optional="$optional $package"
done

can_install=no
test "$(id -u)" -eq 0 && can_install=yes
if test "$can_install" = yes && test -n "$missing"; then
	echo "setup: fetching the package lists"
	apt-get update -q || echo "setup: not every package list could be fetched; going on"
fi
for package in $optional; do
	apt-cache show "$package" 2>/dev/null | grep -q "^Package: $package\$" || continue
	if test "$can_install" = yes; then
		missing="$missing $package"
	else
		echo "setup: $package is not installed; if the build misses it: sudo apt-get install $package"
	fi
done

if test -z "$missing"; then
	echo "setup: every package that is needed is installed"
	exit 0
fi
if test "$can_install" = no; then
	echo "setup: packages are missing. Run this, then the same command again:" >&2
	echo "    sudo apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
echo "setup: installing$missing"
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
