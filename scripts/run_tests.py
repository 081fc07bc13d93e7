#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of a build folder: those in C by `meson test`, those in Python by pytest.

usage: run_tests.py BUILD check|ci|sanitized|long --results FILE [--python PYTHON] [--workers N]

check is what `make check` runs, ci what `make ci` runs without sanitizers, sanitized with, long all there is. A test that ran into
its time limit, or that is marked `rate`, is run once more, alone; if it then passes it counts as passed, and is listed
as unsteady. FILE gets one JSON object a test; scripts/summary.py adds up such files. Exit status 0 when FILE is written.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Suites of Meson's (tests/meson.build) and marks of pytest's (tests/pytest.ini).
SUITES = {
    "check": ["--suite", "unit", "--suite", "api", "--suite", "softmlx5", "--suite", "gpu", "--suite", "install",
              "--no-suite", "long"],
    "sanitized": ["--suite", "unit", "--suite", "api", "--suite", "fuzz", "--suite", "lint", "--no-suite", "long"],
    "long": [],
}
SUITES["ci"] = SUITES["check"]
MARKS = {"check": "not long and not ci", "ci": "not long", "sanitized": "sanitized and not long", "long": ""}
# Time limits end what hangs: on a machine that is busy with other things nothing does.
MESON_PATIENCE = "4"
PASSED, SKIPPED = {"OK", "EXPECTEDFAIL"}, {"SKIP", "IGNORED"}


def case_of_meson(test):
    """{name, result, seconds, output, again} of a line of Meson's testlog.json."""
    result = test["result"]
    said = [test.get("stdout"), test.get("stderr"), None if result in SKIPPED else result]
    return {"name": test["name"].split(" / ")[-1],  # "project:suite / name"
            "result": "passed" if result in PASSED else "skipped" if result in SKIPPED else "failed",
            "seconds": test["duration"],
            "output": "\n".join(filter(None, said)),
            "again": "time-out" if result == "TIMEOUT" else None}


def meson(build, arguments):
    """Runs tests of Meson's; what came of each."""
    log = build / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    subprocess.run(["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs", "--timeout-multiplier",
                    MESON_PATIENCE, *arguments], check=False)
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else ()
    return [case_of_meson(json.loads(line)) for line in lines]


def case_of(element):
    """The same of a test case in pytest's JUnit file."""
    skipped = element.find("skipped")
    faults = element.findall("failure") + element.findall("error")
    said = [part.text or "" for part in (*faults, *element.findall("system-out"), *element.findall("system-err"))]
    again = [found.get("value") for found in element.iter("property") if found.get("name") == "again"]
    return {"name": "%s::%s" % (element.get("file"), element.get("name")),
            "result": "failed" if faults else "skipped" if skipped is not None else "passed",
            "seconds": float(element.get("time", "0")),
            "output": "\n".join(said) if faults else skipped.get("message", "") if skipped is not None else "",
            "again": again[0] if faults and again else None}


def pytest(build, python, arguments, workers=0):
    report = build / "meson-logs" / "pytest.xml"
    report.unlink(missing_ok=True)
    spread = ["--dist", "load", "--tx", "%d*popen//python=%s -X dev" % (workers, python)] if workers else ["-p", "no:xdist"]
    status = subprocess.run(
        [python, "-X", "dev", "-m", "pytest", "-q", "--build=%s" % build, "--junit-xml", str(report), "-o", "junit_family=xunit1",
         "-o", "junit_logging=all", "-o", "junit_log_passing_tests=false", "-o", "cache_dir=%s" % (build / "pytest_cache"),
         "--durations", "20", *spread, *arguments], cwd=ROOT / "tests", check=False).returncode
    if not report.exists():
        return [{"name": "pytest", "result": "failed", "seconds": 0, "output": "exit status %d" % status, "again": None}]
    cases = [case_of(element) for element in xml.etree.ElementTree.parse(report).getroot().iter("testcase")]
    # 1: tests failed, 5: none was chosen. Others are its own trouble, which no case may show.
    if status not in (0, 1, 5) and not any(case["result"] == "failed" for case in cases):
        cases.append({"name": "pytest", "result": "failed", "seconds": 0, "output": "exit status %d" % status, "again": None})
    return cases


def run_again(build, python, results):
    """Those that may be: each alone, once. Their first output is kept."""
    for test in results:
        if test["result"] != "failed" or not test["again"]:
            continue
        print("\nrunning %s again, alone (%s)" % (test["name"], test["again"]), flush=True)
        second = pytest(build, python, [test["name"]]) if "::" in test["name"] else meson(
            build, ["--num-processes", "1", test["name"]])
        if second and all(case["result"] == "passed" for case in second):
            test.update(result="passed", unsteady=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("rhythm", choices=SUITES)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--python", help="that has pytest (default: BUILD/venv/bin/python3, of scripts/test-python.sh)")
    parser.add_argument("--workers", type=int, default=min(8, 2 + (os.cpu_count() or 2)),
                        help="tests in Python that run beside each other (default: two more than cores, 8 at most: they wait half of their time)")
    options = parser.parse_args()
    build, marks = options.build, MARKS[options.rhythm]
    python = os.path.abspath(options.python or build / "venv" / "bin" / "python3")
    if options.rhythm == "long":
        os.environ["TEST_LONG"] = "1"

    def marked(how):
        return ["-m", " and ".join(filter(None, (marks, how)))]

    options.results.unlink(missing_ok=True)
    results = meson(build, SUITES[options.rhythm])
    if not results:
        results.append({"name": "meson test", "result": "failed", "seconds": 0, "output": "no test ran", "again": None})
    results += pytest(build, python, marked("not alone"), options.workers)
    results += pytest(build, python, marked("alone"))
    run_again(build, python, results)
    with options.results.open("w", encoding="utf-8") as file:
        for test in results:
            print(json.dumps(test), file=file)


if __name__ == "__main__":
    sys.exit(main())
