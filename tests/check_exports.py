# SPDX-License-Identifier: BSD-3-Clause
"""Each library shows the functions of the public headers and nothing else, and needs no libarchive.

usage: check_exports.py SHARED STATIC [WRAPPED]... -- HEADER...

WRAPPED: what the static library shows beside them, for drivers that are linked by the embedder.
"""
import pathlib
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def shown(*command):
    """Defined names, without the version's own."""
    rows = [line.split() for line in output("nm", "--defined-only", *command).splitlines()]
    return {row[2].split("@")[0] for row in rows if len(row) == 3 and row[1] != "A"}


def main(shared, static, *rest):
    wrapped, headers = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    text = "\n".join(pathlib.Path(header).read_text() for header in headers)
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    inline = set(re.findall(r"static inline [^(]*?(\w+)\(", text))
    # Independent of scripts/exports.py: whatever is followed by a bracket.
    declared = set(re.findall(r"\b(gdrcap_\w+)\(", text)) - inline
    wrong = 0
    for library, names, right in (
            (shared, shown("-D", shared), declared),
            (static, shown("-g", static), declared | set(wrapped))):
        for what, some in (("shows", names - right), ("lacks", right - names)):
            if some:
                print("%s %s: %s" % (library, what, " ".join(sorted(some))))
                wrong = 1
    needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", shared))
    if any("archive" in library for library in needed):
        print("%s needs %s" % (shared, " ".join(needed)))
        wrong = 1
    print("%d functions declared" % len(declared))
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
