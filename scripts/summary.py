#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up test runs: summary.py [--broken STEP]... BUILD=RESULTS...
Or writes one line of RESULTS, of a command that ended: summary.py --record NAME --status STATUS LOG

RESULTS are files of scripts/run_tests.py, or a log of `meson test` (testlog.json). A step that broke before its tests ran
counts as one failure, and so do more than two unsteady tests. What failed tests printed comes last, whole. Exit status 1
when something failed or nothing ran.
"""
import argparse
import json
import os
import sys

import run_tests

# A CI often keeps only the end of its log: of one test no more than that.
MOST_LINES = 1500
MOST_UNSTEADY = 2


def lines_of(test):
    return [line.rstrip()[:1000] for line in test["output"].splitlines() if line.strip()]


def last_line(test):
    """What a test printed last, which for a skipped one is the reason."""
    return (lines_of(test) or ["gave no reason"])[-1].strip()


def read(path):
    with open(path, encoding="utf-8") as file:
        for line in filter(str.strip, file):
            test = json.loads(line)
            yield run_tests.case_of_meson(test) if "duration" in test else test


def record(name, status, path):
    with open(path, encoding="utf-8", errors="replace") as log:
        print(json.dumps({"name": name, "result": {0: "passed", 77: "skipped"}.get(status, "failed"), "output": log.read()}))
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--broken", action="append", default=[])
    parser.add_argument("--record")
    parser.add_argument("--status", type=int)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if options.record:
        return record(options.record, options.status, options.files[0])

    failed = [f"{step}: did not get as far as its tests" for step in options.broken]
    printed, unsteady, skipped, passed = [], [], [], 0
    for entry in options.files:
        build, path = entry.split("=", 1)
        tests = list(read(path)) if os.path.exists(path) else []
        if not tests:
            failed.append(f"{build}: no test ran: {path}")
        for test in tests:
            name = f"{build}: {test['name']}"
            if test.get("unsteady"):
                unsteady.append(f"{name} ({' / '.join(lines_of(test)[-5:])})")
            if test["result"] == "passed":
                passed += 1
            elif test["result"] == "skipped":
                skipped.append(f"{name}: {last_line(test)}")
            else:
                failed.append(name)
                printed.append((name, lines_of(test)[-MOST_LINES:]))
    if len(unsteady) > MOST_UNSTEADY:
        failed.append(f"{len(unsteady)} tests are unsteady, more than {MOST_UNSTEADY}")

    print()
    for name in skipped:
        print(f"skipped  {name}")
    for name, lines in printed:
        print(f"\n{name}, what it printed:", *lines, sep="\n  ")
    for name in unsteady:
        print(f"unsteady: {name}")
    for name in failed:
        print(f"FAILED  {name}")
    line = f"{passed} passed, {len(failed)} failed"
    if skipped:
        line += f", {len(skipped)} skipped"
    print(line)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
