#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: dpdk-stage.sh BUILD STAGE
#
# Copies the DPDK that was built in BUILD to STAGE, as an installed one, so that a second build with
# other compiler flags can take it with -Dsystem_dpdk=true instead of compiling DPDK again. Prints
# the folder for PKG_CONFIG_PATH.
set -eu
build=$1
stage=$2

# Build folders may be newer than what was staged from them.
rm -rf "$stage"
mkdir -p "$stage"
stage=$(cd "$stage" && pwd)
DESTDIR="$stage" meson install -C "$build" --no-rebuild --tags devel >"$stage/install.log" 2>&1 || {
	cat "$stage/install.log" >&2
	exit 1
}
find "$stage" -name 'gdrcap*' -o -name 'libgdrcap*' | xargs rm -rf
pc=$(find "$stage" -name libdpdk.pc)
find "$stage" -name '*.pc' -exec sed -i "s|^prefix=|prefix=$stage|" {} +
dirname "$pc"
