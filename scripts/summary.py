#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up test runs: summary.py [--broken STEP]... [--skipped STEP: WHY]... BUILD=testlog.json...

A step that broke before its tests ran counts as one failure. Exit status 1 when something failed
or nothing ran.
"""
import argparse
import json
import os
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}
# Of what a failed test printed, which comes last: a CI often keeps only the end of its log.
TOLD_LINES = 40


def last_line(test):
    """What a test said last, which for a skipped one is the reason."""
    for stream in ("stdout", "stderr"):
        lines = [line.strip() for line in (test.get(stream) or "").splitlines() if line.strip()]
        if lines:
            return lines[-1]
    return "gave no reason"


def told(test):
    """The end of what a failed test printed, each line short."""
    lines = [line.rstrip()[:300] for stream in ("stdout", "stderr")
             for line in (test.get(stream) or "").splitlines() if line.strip()]
    return lines[-TOLD_LINES:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--broken", action="append", default=[])
    parser.add_argument("--skipped", action="append", default=[])
    parser.add_argument("logs", nargs="*")
    options = parser.parse_args()

    failed = [f"{step}: did not get as far as its tests" for step in options.broken]
    printed = []
    skipped = list(options.skipped)
    passed = 0
    for entry in options.logs:
        build, path = entry.split("=", 1)
        if not os.path.exists(path):
            failed.append(f"{build}: no test log at {path}")
            continue
        with open(path, encoding="utf-8") as log:
            tests = [json.loads(line) for line in log if line.strip()]
        if not tests:
            failed.append(f"{build}: no test ran")
        for test in tests:
            # Meson writes "project:suite / name".
            name = f"{build}: {test['name'].split(' / ')[-1]}"
            if test["result"] in PASSED:
                passed += 1
            elif test["result"] in SKIPPED:
                skipped.append(f"{name}: {last_line(test)}")
            else:
                failed.append(f"{name}: {test['result']}")
                printed.append((name, told(test)))

    print()
    for name in skipped:
        print(f"skipped  {name}")
    for name, lines in printed:
        print(f"\n{name}, its last lines:", *lines, sep="\n  ")
    for name in failed:
        print(f"FAILED  {name}")
    line = f"{passed} passed, {len(failed)} failed"
    if skipped:
        line += f", {len(skipped)} skipped"
    print(line)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
