# SPDX-License-Identifier: BSD-3-Clause
"""The rooms of the house: who may include whom, and that a file's name says which file it is.

usage: check_includes.py ROOT
"""
import collections
import pathlib
import re
import sys

# A room includes from itself and from those before it.
ROOMS = ("base pattern gpu memory port capture kernels replay send config save image verdict summary "
         "session selftest app doctor bench merge page").split()
PUBLIC = "include"
# The library's insides that app itself may use: what knows nothing of sessions.
APP_USES = {"base/input_list.h", "base/json_line.h", "base/nearest.h", "base/output_file.h", "base/parse.h", "base/text.h",
            "config/config_files.h", "port/devargs.h", "summary/results.h"}
# Files that are one subject, and may include each other: the definitions that C and CUDA share stand
# at the end of their headers. So may files of one room whose names begin with the shortest of them.
SUBJECTS = ({"pattern/frame", "pattern/frame_check", "pattern/phase"},)
INCLUDE = re.compile(r'^#\s*include\s+"([^"]+)"', re.M)
SOURCES = {".c", ".h", ".cu", ".cuh"}


def room_of(path):
    """The folder; of what lies in app itself, app."""
    in_folder = path.parts[0] == "lib" or path.parts[0] == "app" and len(path.parts) > 2
    return path.parts[1] if in_folder else path.parts[0]


def name_of(path):
    """As others include it."""
    return str(path if path.parts[0] == "kernels" else pathlib.Path(*path.parts[1:]))


def circles(edges):
    """Sets of more than one node that reach each other (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            circle = set(stack[stack.index(node):])
            del stack[stack.index(node):]
            if len(circle) > 1:
                found.append(circle)

    for node in list(edges):
        if node not in index:
            visit(node)
    return found


def main(root):
    files = [path.relative_to(root) for top in ("lib", "kernels", "app", "tests")
             for path in sorted((root / top).rglob("*")) if path.suffix in SOURCES]
    wrong = []
    names = collections.defaultdict(list)
    for path in files:
        names[path.name].append(str(path))
    wrong += ["the same name twice: " + ", ".join(paths) for paths in names.values()
              if len(paths) > 1]
    edges = collections.defaultdict(set)
    for path in files:
        if path.parts[0] == "tests" or room_of(path) == PUBLIC:
            continue
        for included in INCLUDE.findall((root / path).read_text()):
            target = pathlib.Path(included)
            if included.startswith("gdrcap"):
                continue
            if not any((root / base / included).is_file() for base in ("lib", "app", ".")):
                wrong.append("%s: \"%s\" is not named from the root" % (path, included))
                continue
            theirs = target.parts[0] if len(target.parts) > 1 else "app"
            ours = room_of(path)
            if ours == "app" and theirs != "app" and included not in APP_USES:
                wrong.append("%s: includes %s; what is in app itself sees gdrcap.h only" %
                             (path, included))
            if ROOMS.index(theirs) > ROOMS.index(ours):
                wrong.append("%s: includes %s, which is above %s" % (path, included, ours))
            edges[str(pathlib.Path(name_of(path)).with_suffix(""))].add(
                str(target.with_suffix("")))
    for node in edges:
        edges[node].discard(node)
    wrong += ["a circle of files: " + ", ".join(sorted(circle)) for circle in circles(edges)
              if not any(circle <= subject for subject in SUBJECTS) and
              not all(node.startswith(min(circle, key=len)) for node in circle)]
    print("\n".join(wrong) or "%d files, no include upwards, no circle" % len(files))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
