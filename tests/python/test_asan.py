# SPDX-License-Identifier: BSD-3-Clause
"""The extension with gcc's address and undefined-behaviour sanitizers, on the library as it is: the other tests once more.
The interpreter is not sanitized, so the sanitizer's library is preloaded, and leaks are not looked for."""
import glob
import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

import harness

pytestmark = pytest.mark.ci

TESTS = {
    "test_arrays.py": [],
    "test_lifetime.py": ["test_release", "test_buffers_go_back", "test_session_ends_first", "test_10000_objects",
                         "test_sessions_leave_nothing", "test_exception_in_loop", "test_threads", "test_timeout", "test_copies_by_threads",
                         "test_log_and_exit", "test_exit"],
    "test_session.py": ["test_options", "test_layouts", "test_refused", "test_log", "test_events", "test_async"],
    "test_summary.py": ["test_running"],
    "test_sending.py": [],
    "test_sending_ends.py": [],
}


def gcc_file(name):
    said = subprocess.run(["gcc", "-print-file-name=" + name], check=True, capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(said):
        raise harness.Skip("gcc has no " + name)
    return os.path.realpath(said)


def build(folder):
    """The package, with an extension of its own."""
    package = os.path.join(folder, "gdrcap")
    shutil.copytree(os.path.join(harness.PACKAGE, "gdrcap"), package, ignore=shutil.ignore_patterns("*.so*"))
    library = os.path.join(os.environ.get("GDRCAP_BUILD", str(harness.ROOT / "build")), "lib")
    done = subprocess.run(
        ["gcc", "-std=gnu17", "-O1", "-g", "-shared", "-fPIC", "-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030B0000",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer",
         "-I", sysconfig.get_paths()["include"], "-I", str(harness.ROOT / "lib" / "include"),
         *glob.glob(str(harness.ROOT / "python" / "native" / "*.c")), "-o", os.path.join(package, "_native.abi3.so"),
         "-L", library, "-lgdrcap", "-Wl,-rpath," + library], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sanitized():
    if not shutil.which("gcc"):
        raise harness.Skip("there is no gcc")
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
        raise harness.Skip("there are no headers of this interpreter")
    preload = "%s %s" % (gcc_file("libasan.so"), gcc_file("libubsan.so"))
    with harness.Folder() as folder:
        build(folder)
        env = dict(os.environ, LD_PRELOAD=preload, GDRCAP_PYTHONPATH=folder, PYTHONMALLOC="malloc",
                   ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:log_path=%s/asan" % folder,
                   UBSAN_OPTIONS="print_stacktrace=1:abort_on_error=1")
        chosen = [str(harness.ROOT / "tests" / "python" / file) + (name and "::" + name)
                  for file, names in TESTS.items() for name in names or [""]]
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *chosen],
                              env=env, check=False, capture_output=True, text=True)
        reports = [open(path).read() for path in glob.glob(folder + "/asan*")]
        assert done.returncode == 0 and not reports, "%s\n%s\n%s" % (
            done.stdout[-12000:], done.stderr[-6000:], "".join(reports)[-6000:])
