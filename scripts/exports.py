#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The functions that the public headers declare, one a line: all that the libraries show.

usage: exports.py [--map] HEADER...      --map: as a linker's version script
"""
import pathlib
import re
import sys


def main(arguments):
    headers = [pathlib.Path(name).read_text() for name in arguments if name != "--map"]
    text = re.sub(r"/\*.*?\*/", "", "\n".join(headers), flags=re.S)
    # A declaration begins its line; calls are indented, inline functions begin with static.
    names = sorted(re.findall(r"^(?!static|#|typedef)\w[\w\s*]*?\b(gdrcap_\w+)\(", text, re.M))
    if "--map" in arguments:
        print("GDRCAP_0 {\nglobal:")
        print("".join("\t%s;\n" % name for name in names) + "local:\n\t*;\n};")
    else:
        print("\n".join(names))


if __name__ == "__main__":
    main(sys.argv[1:])
