#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: deb-check.sh [FOLDER [MMDEBSTRAP_ARGUMENT]...]
#
# Installs the packages that deb.sh left in FOLDER (build/deb) in a clean root of this machine's release, with what apt
# finds that they depend on; runs them there as an ordinary user; removes them, and looks whether anything stays; runs
# debian/tests on what is installed. Where lintian is it judges the packages before. Exit status 77: they cannot be tried
# here. Needs no root where there are user namespaces; leaves nothing behind.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$root/build/deb
if test $# -gt 0; then
	folder=$(cd "$1" && pwd)
	shift
fi

skip() {
	echo "deb-check: $*"
	exit 77
}

changes=$(find "$folder" -maxdepth 1 -name 'gdrcap_*.changes' | head -n 1)
test -n "$changes" || skip "there are no packages in $folder: scripts/deb.sh makes them"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed: sudo apt-get install mmdebstrap"
if test "$(id -u)" != 0 && ! unshare --user --map-auto --map-root-user true 2>/dev/null; then
	skip "without root it takes user namespaces, and lines of yours in /etc/subuid and /etc/subgid"
fi

if command -v lintian >/dev/null; then
	echo "==== lintian"
	lintian --allow-root --fail-on error,warning,info,pedantic,experimental -EI --pedantic "$changes"
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$tmp" # without root the hook runs as another user
mkdir -p "$tmp/packages" "$tmp/source/tests"
find "$folder" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' -exec cp {} "$tmp/packages" \;
cp -R "$root/debian" "$tmp/source"
cp -R "$root/tests/install" "$tmp/source/tests"

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
echo "==== a clean root of $release"
mmdebstrap --quiet --variant=minbase --customize-hook="'$root/scripts/deb-check-root.sh' \"\$1\" '$tmp'" \
	"$@" "$release" /dev/null
echo "deb-check: all is well"
