# SPDX-License-Identifier: BSD-3-Clause
"""pytest of the tests in e2e, python and gpu: where the programs of a build folder are, and what a failed test leaves.

  pytest tests -k replay                        one kind of tests, on ./build (`make check` builds it)
  pytest tests/e2e/test_cli.py::test_help       one test
  pytest tests --build=build-clang              on another build folder
"""
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "python")]


def pytest_addoption(parser):
    parser.addoption("--build", default=os.environ.get("GDRCAP_BUILD", str(ROOT / "build")),
                     help="build folder whose programs are tested (default: $GDRCAP_BUILD, else ./build)")


def pytest_configure(config):
    build = pathlib.Path(config.getoption("--build")).resolve()
    programs = build / "tests" / "programs.env"
    if not programs.exists():
        raise pytest.UsageError("%s is not there: build the tests first: scripts/build.sh %s checks" % (programs, build))
    os.environ["GDRCAP_BUILD"] = str(build)
    for line in programs.read_text().splitlines():
        name, _, value = line.partition("=")
        os.environ.setdefault(name, value)
    # A program that looks for a Python finds the one with what the tests compare with (scripts/test-python.sh).
    os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
    # A shell ignores them for what runs in the background, and programs would inherit that.
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def module_state(request):
    """Each file of tests begins in the same network namespace and with the program that it names; PATCHES are (module, name,
    value) of other modules while its tests run."""
    import e2e
    module = request.module
    e2e.PROGRAM = getattr(module, "PROGRAM", os.environ["GDRCAP"])
    if not os.access(e2e.PROGRAM, os.X_OK):
        pytest.fail("%s is not there: build the tests first: scripts/build.sh BUILD checks" % e2e.PROGRAM)
    with pytest.MonkeyPatch.context() as patch, e2e.own_network():
        for owner, name, value in getattr(module, "PATCHES", ()):
            patch.setattr(owner, name, value)
        yield


def said_by_programs(traceback):
    """What the programs said that a test ran: of what an assertion shows pytest keeps 240 characters."""
    import e2e
    values = [value for entry in traceback for value in entry.frame.f_locals.values()
              if isinstance(getattr(value, "__dict__", {}).get("result", value), e2e.Result)]
    return ["%s\n" % value for value in {id(value): value for value in values}.values()]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Marks in the JUnit file which failure may be run again: a time-out, or of a test marked `rate` what its own file
    asserts. Helpers assert counts, exit statuses and that no sanitizer complained."""
    import e2e
    if call.excinfo is not None and not call.excinfo.errisinstance(e2e.Skip):
        if call.excinfo.errisinstance((e2e.DidNotEnd, subprocess.TimeoutExpired)) or str(call.excinfo.value).startswith("Timeout >"):
            item.user_properties.append(("again", "time-out"))
        elif (item.get_closest_marker("rate") and call.excinfo.errisinstance(AssertionError) and
              str(call.excinfo.traceback[-1].path) == str(item.fspath)):
            item.user_properties.append(("again", "rate"))
    report = (yield).get_result()
    if report.failed and call.excinfo is not None:
        report.sections += [("Captured stdout call", text) for text in said_by_programs(call.excinfo.traceback)]
