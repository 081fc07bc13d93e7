#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: deb.sh [FOLDER [COMMIT]]
#
# Makes the source package and the packages of what is committed, in FOLDER (build/deb), which is emptied before. With
# CUDA: DEB_BUILD_PROFILES=pkg.gdrcap.cuda. Needs no root.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/deb}
commit=${2:-HEAD}
version=$(git show "$commit:lib/include/gdrcap.h" | sed -n 's/^#define GDRCAP_VERSION "\(.*\)"$/\1/p')
source=$folder/gdrcap-$version

for tool in dpkg-buildpackage:dpkg-dev dh:debhelper dh_python3:dh-python; do
	command -v "${tool%%:*}" >/dev/null && continue
	echo "deb: ${tool%%:*} is not installed: sudo apt-get install ${tool##*:}" >&2
	exit 1
done
scripts/dpdk-source.sh
dpdk=subprojects/packagecache/$(sed -n 's/^source_filename *= *//p' subprojects/dpdk.wrap)
hash=$(sed -n 's/^source_hash *= *//p' subprojects/dpdk.wrap)
if ! echo "$hash  $dpdk" | sha256sum --check --status 2>/dev/null; then
	echo "deb: $dpdk is not there or another; remove the folder of DPDK in subprojects, and it is fetched anew" >&2
	exit 1
fi

rm -rf "$folder"
mkdir -p "$source/dpdk"
git archive --prefix="gdrcap-$version/" "$commit" . ':!debian' | gzip -n >"$folder/gdrcap_$version.orig.tar.gz"
cp "$dpdk" "$folder/gdrcap_$version.orig-dpdk.tar.xz"
tar -xf "$folder/gdrcap_$version.orig.tar.gz" -C "$folder"
tar -xf "$dpdk" --strip-components=1 -C "$source/dpdk"
git archive "$commit" debian | tar -xf - -C "$source"
cd "$source"
if ! dpkg-buildpackage --unsigned-source --unsigned-changes >../build.log 2>&1; then
	tail -40 ../build.log >&2
	exit 1
fi
cd ..
rm -rf "gdrcap-$version"
ls -l ./*.deb
