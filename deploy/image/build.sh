#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: build.sh FROM [FOLDER [MMDEBSTRAP_ARGUMENT]...]
#
# Makes an image of gdrcap, from Debian's packages and without a base image. FROM is gdrcap's .deb (scripts/deb.sh), or a
# folder that `DESTDIR=FOLDER meson install` has filled. In FOLDER (build/image), which is emptied before:
#   gdrcap/             OCI layout; its tag is the version
#   gdrcap-VERSION.tar  the same as an archive
# The packages are of this machine's release, from Debian's mirror or from what is given to mmdebstrap.
set -eu
usage="usage: deploy/image/build.sh FROM [FOLDER [MMDEBSTRAP_ARGUMENT]...]"
from=${1:?$usage}
shift
folder=build/image
if test $# -gt 0; then
	folder=$1
	shift
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# What rank.sh and the manifests of deploy/kubernetes run beside gdrcap; base-files has the folders.
always=base-files,dash,coreutils,sed
user=65532

for tool in mmdebstrap:mmdebstrap umoci:umoci dpkg-shlibdeps:dpkg-dev strip:binutils; do
	command -v "${tool%%:*}" >/dev/null && continue
	echo "image: ${tool%%:*} is not installed: sudo apt-get install ${tool##*:}" >&2
	exit 1
done

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$tmp" # without root the hook runs as another user
mkdir -p "$tmp/add/usr/bin" "$tmp/add/usr/share/doc/gdrcap" "$tmp/from/debian"

# Sets depends and version; leaves program and licence in $tmp/add.
from_package() {
	package=$(dpkg-deb -f "$from" Package)
	case $package in
	gdrcap | gdrcap-cuda) ;;
	*)
		echo "image: $from is neither the package gdrcap nor gdrcap-cuda" >&2
		exit 1
		;;
	esac
	dpkg-deb -x "$from" "$tmp/from"
	cp "$tmp/from/usr/bin/gdrcap" "$tmp/add/usr/bin"
	cp "$tmp/from/usr/share/doc/$package/copyright" "$tmp/from/usr/share/doc/$package/gdrcap.spdx.json" \
		"$tmp/add/usr/share/doc/gdrcap"
	depends=$(dpkg-deb -f "$from" Depends)
	version=$(dpkg-deb -f "$from" Version | sed 's/^[0-9]*://; s/-[^-]*$//')
}

from_folder() {
	program=$(find "$from" -path '*/bin/gdrcap' -type f | head -n 1)
	if test -z "$program"; then
		echo "image: there is no bin/gdrcap in $from: DESTDIR=$from meson install -C build --no-rebuild --skip-subprojects" >&2
		exit 1
	fi
	strip --strip-unneeded -o "$tmp/add/usr/bin/gdrcap" "$program"
	chmod 755 "$tmp/add/usr/bin/gdrcap"
	cp "$root/debian/copyright" "$tmp/add/usr/share/doc/gdrcap"
	python3 "$root/scripts/sbom.py" "$tmp/add/usr/bin/gdrcap" >"$tmp/add/usr/share/doc/gdrcap/gdrcap.spdx.json"
	printf 'Source: gdrcap\n\nPackage: gdrcap\nArchitecture: any\n' >"$tmp/from/debian/control"
	if ! depends=$(cd "$tmp/from" && dpkg-shlibdeps -O "$tmp/add/usr/bin/gdrcap" 2>"$tmp/log"); then
		cat "$tmp/log" >&2
		exit 1
	fi
	depends=${depends#*=}
	version=$(sed -n 's/^#define GDRCAP_VERSION "\(.*\)"$/\1/p' "$root/lib/include/gdrcap.h")
}

if test -f "$from"; then
	from_package
else
	from_folder
fi
# The first of each alternative, without versions. No service manager: the container's runtime is it.
names=$(echo "$depends" | tr ',' '\n' | sed -e 's/|.*//; s/(.*//; s/[[:space:]]//g; /^systemd/d; /^$/d' | sort -u | paste -sd,)

created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
if ! mmdebstrap --variant=extract --include="$always,$names" \
	--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
	--extract-hook="'$here/fill.sh' \"\$1\" '$tmp/add' $user" \
	"$@" "$release" "$tmp/layer.tar" >"$tmp/log" 2>&1; then
	cat "$tmp/log" >&2
	exit 1
fi

rm -rf "$folder"
mkdir -p "$folder"
layout=$folder/gdrcap
image=$layout:$version
umoci init --layout "$layout"
umoci new --image "$image"
umoci raw add-layer --image "$image" --history.created "$created" --history.created_by deploy/image/build.sh "$tmp/layer.tar"
# Whose GPU it sees says who starts it: NVIDIA_VISIBLE_DEVICES is not set.
umoci config --image "$image" --no-history --created "$created" \
	--os linux --architecture "$(dpkg --print-architecture)" \
	--config.user "$user:$user" --config.workingdir / --config.entrypoint gdrcap --config.cmd --help \
	--config.env PATH=/usr/sbin:/usr/bin --config.env XDG_RUNTIME_DIR=/tmp \
	--config.env NVIDIA_DRIVER_CAPABILITIES=compute,utility \
	--config.label "org.opencontainers.image.title=gdrcap" \
	--config.label "org.opencontainers.image.description=raw Ethernet frames into GPU memory, every byte accounted for" \
	--config.label "org.opencontainers.image.version=$version" \
	--config.label "org.opencontainers.image.created=$created" \
	--config.label "org.opencontainers.image.licenses=BSD-3-Clause"
umoci gc --layout "$layout"
tar -C "$layout" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
	-cf "$folder/gdrcap-$version.tar" .
ls -l "$folder/gdrcap-$version.tar"
