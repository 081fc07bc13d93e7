#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: dpdk-stage.sh BUILD STAGE
#
# Copies what of DPDK was built in BUILD (target "dpdk-archives"), or is linked there from another
# folder, and its headers, to STAGE, as an installed one, so that a second build with other compiler flags can take it with
# -Dsystem_dpdk=true instead of compiling DPDK again. Prints the folder for PKG_CONFIG_PATH.
set -eu
build=$1
stage=$2

# Build folders may be newer than what was staged from them.
rm -rf "$stage"
mkdir -p "$stage"
stage=$(cd "$stage" && pwd)
meson introspect --installed "$build" | python3 -c '
import json, os, re, shutil, sys
wanted = re.compile(r"/librte_\w+\.a$|/libdpdk(-libs)?\.pc$|/include/(?!gdrcap).*\.h$")
with open(sys.argv[2] + "/build.ninja") as ninja:  # what is built there has no absolute path
    linked = {os.path.basename(archive): archive for archive in re.findall(r"(?<![^\s,])/[^\s,]*/librte_\w+\.a", ninja.read())}
for source, target in json.load(sys.stdin).items():
    source = linked.get(os.path.basename(source), source)
    if wanted.search(target) and os.path.isfile(source):
        os.makedirs(os.path.dirname(sys.argv[1] + target), exist_ok=True)
        shutil.copy(source, sys.argv[1] + target)
' "$stage" "$build"
find "$stage" -name '*.pc' -exec sed -i "s|^prefix=|prefix=$stage|" {} +
dirname "$(find "$stage" -name libdpdk.pc)"
