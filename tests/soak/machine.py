# SPDX-License-Identifier: BSD-3-Clause
"""What a soak test asks of the machine: a place of its own for files, and what processes have and leave behind."""
import collections
import contextlib
import ctypes
import os
import pathlib
import re
import subprocess
import tempfile
import time

import e2e

CLONE_NEWNS = 0x20000
Usage = collections.namedtuple("Usage", "rss_kb huge_kb threads descriptors")
SHARED = ("/dev/hugepages", "/dev/shm", "/run", "/tmp")


def enter_mounts():
    """A mount namespace of this process's own, in which /run and /dev/shm are empty: what is there at the end was
    left by what ran here. False where this takes rights that are not there."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        return False
    for command in (("--make-rprivate", "/"), ("-t", "tmpfs", "none", "/run"), ("-t", "tmpfs", "none", "/dev/shm")):
        if subprocess.run(["mount", *command], stderr=subprocess.DEVNULL).returncode:
            return False
    return True


@contextlib.contextmanager
def small_disk(megabytes):
    """A file system of so many MiB, for a `with` block. None where none can be mounted."""
    with tempfile.TemporaryDirectory(prefix="gdrcap-soak-") as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % megabytes, "none", folder],
                          stderr=subprocess.DEVNULL).returncode:
            yield None
            return
        try:
            yield pathlib.Path(folder)
        finally:
            # Who wrote there may need a moment to be gone.
            for _ in range(100):
                if subprocess.run(["umount", folder], stderr=subprocess.DEVNULL).returncode == 0:
                    break
                time.sleep(0.05)


def fill(path):
    """Takes all the room that is left, in a file of this name."""
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


def usage(pid):
    status = pathlib.Path("/proc/%d/status" % pid).read_text()
    kb = {key: int(number) for key, number in re.findall(r"^(\w+):\s+(\d+)", status, re.M)}
    return Usage(kb["VmRSS"], kb.get("HugetlbPages", 0), kb["Threads"], len(os.listdir("/proc/%d/fd" % pid)))


def defunct_children(pid):
    """Helpers that ended and were not waited for."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = path.read_text().rsplit(")", 1)
            state, parent = rest.split()[:2]
            if int(parent) == pid and state == "Z":
                found.append(name + ")")
    return found


class Leftovers:
    """What was in the shared folders before; check() fails on what our processes left there."""

    def __init__(self, own_mounts):
        self.own_mounts = own_mounts
        self.before = self.look()

    @staticmethod
    def look():
        found = set()
        for folder in SHARED:
            for path, folders, files in os.walk(folder):
                found.update(os.path.join(path, name) for name in files + folders)
                if path.count("/") > 3:
                    folders.clear()
        return found

    def check(self, pids):
        """Others use /tmp and hugepages too: there a name with the number of a process of ours counts."""
        new = sorted(self.look() - self.before)
        ours = re.compile(r"(?<![0-9A-Za-z])(%s)(?![0-9A-Za-z])" % "|".join(map(str, pids or [0])))
        own = ("/run/", "/dev/shm/") if self.own_mounts else ()
        left = [path for path in new if ours.search(path) or (path.startswith(own) and not os.path.isdir(path))]
        assert not left, "left behind: %s" % ", ".join(left)


def wait_until(what, text, seconds=e2e.TIMEOUT):
    """Only so that what hangs fails is there a limit."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "did not happen: %s" % text() if callable(text) else text
        time.sleep(0.02)
