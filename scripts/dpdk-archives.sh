#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: dpdk-archives.sh FOLDER
#
# Puts the static archives of the distribution's libdpdk-dev, and the configuration they were built with, into FOLDER,
# if that package has the DPDK release of dpdk.wrap. Else it prints the reason and fails: DPDK is then compiled.
# apt-get checks the package against the distribution's signature. Installs nothing; needs no root.
set -eu
folder=$1
cd "$(dirname "$0")/.."
wanted=$(sed -n 's/^directory *= *dpdk-[a-z]*-*//p' subprojects/dpdk.wrap)
cache=$PWD/subprojects/packagecache

compile() {
	echo "dpdk-archives: $*: compiling DPDK"
	exit 1
}

for tool in apt-cache apt-get dpkg dpkg-deb; do
	command -v $tool >/dev/null || compile "$tool is not here"
done
version=$(LC_ALL=C apt-cache madison libdpdk-dev 2>/dev/null |
	awk -v wanted="$wanted" '{ release = $3; sub(/-[^-]*$/, "", release) } release == wanted { print $3; exit }')
test -n "$version" || compile "the package lists have no libdpdk-dev $wanted"
hash=$(apt-cache show "libdpdk-dev=$version" | sed -n '/^SHA256: /{s///p;q}')
file=$cache/libdpdk-dev_${version}_$(dpkg --print-architecture).deb

is_right() {
	echo "$hash  $1" | sha256sum --check --status 2>/dev/null
}

mkdir -p "$cache"
tmp=$(mktemp -d "$cache/dpdk-archives.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
if ! is_right "$file"; then
	echo "dpdk-archives: fetching libdpdk-dev $version"
	(cd "$tmp" && timeout 300 apt-get -q -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=0 \
		-o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 \
		download "libdpdk-dev=$version" >log 2>&1) || compile "apt-get could not fetch libdpdk-dev $version"
	set -- "$tmp"/*.deb
	is_right "$1" || compile "the libdpdk-dev $version that was fetched has the wrong SHA-256"
	mv "$1" "$file"
fi

mkdir "$tmp/archives"
dpkg-deb --fsys-tarfile "$file" | tar -x -C "$tmp/archives" --wildcards --transform='s|.*/||' \
	'*/librte_*.a' '*/rte_build_config.h' || compile "$file cannot be unpacked"
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$tmp/archives" "$folder"
echo "dpdk-archives: linking the distribution's DPDK $version instead of compiling it"
