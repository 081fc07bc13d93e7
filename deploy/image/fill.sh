#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: fill.sh ROOT ADD USER
#
# A hook of mmdebstrap for build.sh. ROOT has the files of packages whose scripts have not run: it gets what those would
# have made that is needed, the files of ADD, and the user; it loses what nobody reads there.
set -eu
root=$1
add=$2
user=$3

cp -R "$add/." "$root/"
test -e "$root/bin/sh" || ln -s dash "$root/bin/sh"

cat >"$root/etc/passwd" <<END
root:x:0:0:root:/root:/usr/sbin/nologin
gdrcap:x:$user:$user:Frame capture:/:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/:/usr/sbin/nologin
END
cat >"$root/etc/group" <<END
root:x:0:
gdrcap:x:$user:
nogroup:x:65534:
END

# Which packages and versions these are, for those who look for known faults: a file each, as dpkg's status has it.
mkdir -p "$root/var/lib/dpkg/status.d"
for archive in "$root"/var/cache/apt/archives/*.deb; do
	test -e "$archive" || continue
	dpkg-deb -f "$archive" >"$root/var/lib/dpkg/status.d/$(dpkg-deb -f "$archive" Package)"
done

# Nobody gets rights in it.
find "$root/usr" -type f -perm /6000 -exec chmod ug-s {} +

# Licences stay, and what gdrcap is made of.
find "$root/usr/share/doc" -mindepth 2 ! -type d ! -name copyright ! -name '*.spdx.json' -delete
find "$root/usr/share/doc" -type d -empty -delete
for folder in man info locale lintian bug; do
	rm -rf "${root:?}/usr/share/$folder"
done
