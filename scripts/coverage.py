# SPDX-License-Identifier: BSD-3-Clause
"""For coverage.sh.

coverage.py tests < INTROSPECTION: names of the tests that are programs of ours.
coverage.py table BUILD: lines and branches that ran, by folder and by file, as gcov counts them.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys

SUITES = {"unit", "api", "softmlx5"}
ROOMS = ("app", "kernels", "lib")
AT_ONCE = 100  # files of counts for one gcov


def tests():
    """Others look at source, or build with sanitizers of their own."""
    for test in json.load(sys.stdin):
        suites = {each.split(":")[-1] for each in test["suite"]}
        if suites & SUITES and os.path.basename(test["cmd"][0]).startswith("test_"):
            print(test["name"])


def counted(build):
    """File -> line -> how often, and how often each of its branches: in whatever program."""
    root, build = os.getcwd(), os.path.abspath(build)
    found = collections.defaultdict(dict)
    paths = [str(path) for path in pathlib.Path(build).rglob("*.gcda")]
    for at in range(0, len(paths), AT_ONCE):
        told = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *paths[at:at + AT_ONCE]], cwd=build,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        for text in told.splitlines():
            for file in json.loads(text)["files"]:
                name = os.path.relpath(os.path.join(build, file["file"]), root)
                if name.split("/")[0] in ROOMS:
                    add(found[name], file["lines"])
    return found


def add(lines, more):
    for line in more:
        counts = [line["count"], *(branch["count"] for branch in line["branches"])]
        before = lines.get(line["line_number"], [])
        longer, shorter = sorted((counts, before), key=len, reverse=True)
        lines[line["line_number"]] = [a + b for a, b in zip(longer, shorter)] + longer[len(shorter):]


def row(name, of):
    ran, lines, taken, branches = of
    print("| %s | %d | %s | %s |" % (name, lines, percent(ran, lines), percent(taken, branches)))


def percent(ran, of):
    return "%.1f %%" % (100 * ran / of) if of else "-"


def table(build):
    files, folders = {}, collections.defaultdict(lambda: [0] * 4)
    for name, lines in counted(build).items():
        branches = [count for counts in lines.values() for count in counts[1:]]
        files[name] = (sum(counts[0] > 0 for counts in lines.values()), len(lines), sum(count > 0 for count in branches), len(branches))
        for folder in (os.path.dirname(name), "all"):
            folders[folder] = [a + b for a, b in zip(folders[folder], files[name])]
    for head, rows in (("folder", sorted(folders.items(), key=lambda each: (each[0] == "all", each[0]))),
                       ("file, least first", sorted(files.items(), key=lambda each: each[1][0] / max(each[1][1], 1)))):
        print("| %s | lines | of them ran | branches |\n|---|---|---|---|" % head)
        for name, of in rows:
            row(name, of)
        print()


if __name__ == "__main__":
    {"tests": tests, "table": table}[sys.argv[1]](*sys.argv[2:])
