#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: install_test.sh BUILD SOURCE
#
# Installs into an empty prefix and uses what lies there as an embedder would: through pkg-config, Meson
# and CMake, as C11 and C++17, shared and static.
set -eu
build=$1
source=$2/tests/install
embed=$source/embed.c
readme=$2/README.md

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
echo "== the helper of gdrcap report, found from where the program lies"
"$tmp/root$prefix/bin/gdrcap" report "$tmp/none.json" 2>"$tmp/log" && exit 1
grep -Eq 'none.json: No such file|lacks (jinja2|matplotlib)' "$tmp/log" || {
	cat "$tmp/log"
	exit 1
}

# usage: linked_right PROGRAM KIND - it has the library in that way, and works
linked_right() {
	kind=shared
	readelf -d "$1" | grep -q 'NEEDED.*libgdrcap\.so' || kind=static
	if test $kind != "$2"; then
		echo "$1 has the $kind library"
		exit 1
	fi
	LD_LIBRARY_PATH=$libdir "$1"
}
warnings="-Wall -Wextra -Werror"
for language in "gcc -std=c11" "g++ -std=c++17 -x c++"; do
	for kind in shared static; do
		echo "== $language, $kind"
		static=
		test $kind = shared || static="--static $(pkg-config --variable=static_needs gdrcap)"
		$language $warnings $(pkg-config --cflags gdrcap) -c "$embed" -o "$tmp/embed.o"
		${language%% *} "$tmp/embed.o" -o "$tmp/embed" $(pkg-config $static --libs gdrcap)
		linked_right "$tmp/embed" $kind
	done
done

echo "== nothing but what is installed"
PKG_CONFIG_PATH= PKG_CONFIG_LIBDIR=$(dirname "$pc") pkg-config --cflags --libs gdrcap

echo "== the README's example"
sed -n '/^```c$/,/^```$/p' "$readme" | sed '/^```/d' >"$tmp/readme.c"
gcc -std=c11 $warnings $(pkg-config --cflags gdrcap) "$tmp/readme.c" -o "$tmp/readme" $(pkg-config --libs gdrcap)
cat >"$tmp/capture.yaml" <<-END
	port: ring:readme
	tx_port: ring:readme
	gpu: host
	frames: 10000
END
said=$(LD_LIBRARY_PATH=$libdir "$tmp/readme" "$tmp/capture.yaml")
test "$said" = "10000 frames" || {
	echo "it says: $said"
	exit 1
}

echo "== pingpong, as docs/embedding.md builds it"
ln -s "$2/examples" "$tmp/examples"
line=$(sed -n 's/^    \(cc .*pingpong .*\)$/\1/p' "$2/docs/embedding.md")
(cd "$tmp" && sh -ec "$line")
LD_LIBRARY_PATH=$libdir "$tmp/pingpong" --threads 2 --rounds 10 gpu=host >"$tmp/log" || {
	cat "$tmp/log"
	exit 1
}

# usage: built_right TOOL COMMAND... - COMMAND configures and builds $source in $tmp/TOOL
built_right() {
	tool=$1
	shift
	echo "== $tool"
	"$@" >"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		exit 1
	}
	for kind in shared static; do
		linked_right "$tmp/$tool/embed-c-$kind" $kind
		linked_right "$tmp/$tool/embed-cpp-$kind" $kind
	done
}
built_right meson sh -c "meson setup '$tmp/meson' '$source' && ninja -C '$tmp/meson'"
if ! command -v cmake >/dev/null; then
	echo "no cmake here: Meson and pkg-config were tested"
	exit 77
fi
sdk=${HOLOSCAN_SDK:-/opt/nvidia/holoscan}
if test -d "$sdk"; then
	echo "== the Holoscan SDK"
	cmake -S "$2/examples/holoscan" -B "$tmp/holoscan" -DCMAKE_PREFIX_PATH="$sdk" >"$tmp/log" 2>&1 &&
		cmake --build "$tmp/holoscan" >>"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		exit 1
	}
fi
built_right cmake sh -c "cmake -S '$source' -B '$tmp/cmake' && cmake --build '$tmp/cmake'"
