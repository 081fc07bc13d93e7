#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: python-dist.sh BUILD
#
# Makes BUILD/dist: a wheel for all versions of Python from 3.11 on, and an sdist. The wheel wants libgdrcap where the
# loader finds it (make install).
set -eu
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
stage=$build/python-stage
python=$build/venv/bin/python3
scripts/test-python.sh "$build"
test -x "$python" || python=python3

rm -rf "$stage" "$build/dist"
DESTDIR=$stage meson install -C "$build" --no-rebuild --skip-subprojects >"$build/python-stage.log" 2>&1 || {
	cat "$build/python-stage.log" >&2
	exit 1
}
pc=$(dirname "$(find "$stage" -name gdrcap.pc)")
prefix=$(sed -n 's/^prefix=//p' "$pc/gdrcap.pc")
sed -i "s|^prefix=.*|prefix=$stage$prefix|" "$pc"/*.pc
# What is built must not lie in the source.
cp -r python "$stage/source"
export PKG_CONFIG_PATH="$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" GDRCAP_RPATH=
cd "$stage/source"
"$python" - "$build/dist" <<-END
	import os, sys
	from setuptools import build_meta
	to = sys.argv[1]  # which it writes over
	os.makedirs(to, exist_ok=True)
	for build in (build_meta.build_sdist, build_meta.build_wheel):
	    print("python-dist:", os.path.join(to, build(to)))
END
