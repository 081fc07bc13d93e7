#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: sysroot.sh ARCHITECTURE FOLDER PACKAGE...
#
# Puts PACKAGE... and what they depend on, of this machine's release and another ARCHITECTURE of Debian's, into FOLDER, as
# files to compile and link with. They come from the machine's own package sources; the machine's list of architectures and
# its packages stay as they are, and no root is needed. Exits 77 where no source has packages of ARCHITECTURE.
set -eu
usage="usage: scripts/sysroot.sh ARCHITECTURE FOLDER PACKAGE..."
architecture=${1:?$usage}
folder=${2:?$usage}
shift 2

for tool in apt-get:apt dpkg-deb:dpkg; do
	command -v "${tool%%:*}" >/dev/null && continue
	echo "sysroot: ${tool%%:*} is not there: libraries for $architecture come as packages of Debian's or Ubuntu's." \
		"Elsewhere make such a folder yourself and name it in GDRCAP_SYSROOT" >&2
	exit 1
done

# What is there already is asked for once.
wanted="$(. /etc/os-release && echo "$VERSION_CODENAME") $architecture $*"
if test "$(cat "$folder/.packages" 2>/dev/null)" = "$wanted"; then
	exit 0
fi

mkdir -p "$folder"
work=$(cd "$folder" && pwd).new
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
root=$work/root
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$root/usr"
: >"$work/status"

# An apt of its own, to which nothing is installed.
apt_private() {
	apt-get -q -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" \
		-o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o APT::Install-Recommends=false \
		-o Debug::NoLocking=true "$@"
}

echo "sysroot: fetching the package lists of $architecture"
apt_private update >"$work/log" 2>&1 || true # not every source has every architecture
if ! apt_private install -y --download-only "$@" >>"$work/log" 2>&1; then
	tail -n 20 "$work/log" >&2
	echo "sysroot: this machine's package sources have not all of these for $architecture: $*." \
		"Add one that has (Ubuntu keeps $architecture on its mirrors of ports) to /etc/apt/sources.list.d" >&2
	exit 77
fi

# One folder for each kind of file, as on an installed system.
for name in bin lib sbin; do
	mkdir -p "$root/usr/$name"
	ln -s "usr/$name" "$root/$name"
done
for package in "$work"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --no-same-owner ./lib ./usr \
		2>/dev/null || true # of the two one may have none
done
if ! ls "$root"/usr/lib/*/libc.so >"$work/log"; then
	echo "sysroot: the packages were fetched but not unpacked into $root: is the disk full?" >&2
	exit 1
fi
# A linker follows links from the real root.
find "$root" -type l -lname '/*' | while read -r link; do
	target=$(readlink "$link")
	test -e "$root$target" && ln -sf "$(realpath -m --relative-to="$(dirname "$link")" "$root$target")" "$link"
done
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale"
echo "$wanted" >"$root/.packages"
rm -rf "$folder"
mv "$root" "$folder"
echo "sysroot: $(du -sh "$folder" | cut -f1) in $folder"
