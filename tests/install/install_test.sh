#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: install_test.sh BUILD SOURCE
#
# Installs into an empty prefix and uses what lies there as an embedder would: through pkg-config,
# as C11 and C++17, shared and static.
set -eu
build=$1
embed=$2/tests/install/embed.c

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

DESTDIR=$tmp/root meson install -C "$build" --no-rebuild --skip-subprojects >"$tmp/log" 2>&1 || {
	cat "$tmp/log"
	exit 1
}
if find "$tmp/root" -name '*rte_*' | grep .; then
	echo "the files above are DPDK's: they must not be installed"
	exit 1
fi

# As if the build had been configured with this prefix.
pc=$(find "$tmp/root" -name gdrcap.pc)
prefix=$(sed -n 's/^prefix=//p' "$pc")
PKG_CONFIG_PATH=$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
sed -i "s|^prefix=.*|prefix=$tmp/root$prefix|" "$(dirname "$pc")"/*.pc
libdir=$(pkg-config --variable=libdir gdrcap)

"$tmp/root$prefix/bin/gdrcap" --version

uses_shared() {
	readelf -d "$1" | grep -q 'NEEDED.*libgdrcap\.so'
}
warnings="-Wall -Wextra -Werror"
for language in "gcc -std=c11" "g++ -std=c++17 -x c++"; do
	for kind in shared static; do
		echo "== $language, $kind"
		static=
		test $kind = shared || static=--static
		$language $warnings $(pkg-config --cflags gdrcap) -c "$embed" -o "$tmp/embed.o"
		${language%% *} "$tmp/embed.o" -o "$tmp/embed" $(pkg-config $static --libs gdrcap)
		if test $kind = shared && ! uses_shared "$tmp/embed" ||
			test $kind = static && uses_shared "$tmp/embed"; then
			echo "pkg-config $static did not give the $kind library"
			exit 1
		fi
		LD_LIBRARY_PATH=$libdir "$tmp/embed"
	done
done
