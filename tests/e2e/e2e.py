# SPDX-License-Identifier: BSD-3-Clause
"""What the end-to-end tests share: run gdrcap, read its JSON, check that it accounts for all.
pytest runs the tests; tests/conftest.py says how, and sets the variables that name programs.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

try:
    import pytest
except ImportError:  # tests/soak needs none
    pytest = None

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("GDRCAP", str(ROOT / "build" / "app" / "gdrcap"))
# Only so that a program that hangs fails the test; never a measure of speed.
TIMEOUT = float(os.environ.get("E2E_TIMEOUT", "300"))
# `make check-long` plays all that there is; other rhythms play fewer cases of what is alike, and shorter runs.
LONG = os.environ.get("TEST_LONG") == "1"
# Frames of the one long run; sanitized builds set fewer.
FRAMES = int(os.environ.get("E2E_FRAMES") or (10000000 if LONG else 2000000))
# Leaks of others' libraries that a sanitized build would be blamed for.
os.environ.setdefault("LSAN_OPTIONS", "print_suppressions=0:suppressions=%s" % (
    ROOT / "tests" / "e2e" / "lsan.supp"))


if pytest:
    # This machine lacks what the test needs.
    Skip = pytest.skip.Exception
else:
    class Skip(Exception):
        """This machine lacks what the test needs."""


def some(cases, *indices):
    """All of these cases in `make check-long`, else those at the indices: of cases that prove the same of other numbers."""
    cases = list(cases)
    return cases if LONG else [cases[i] for i in indices]


class DidNotEnd(AssertionError):
    """A time-out: the only failure, beside those of tests marked `rate`, after which a test is run once more."""


class Folder(tempfile.TemporaryDirectory):
    """A new folder for a `with` block. It is kept where the block fails, for a look at what is in it."""

    def __init__(self, **options):
        super().__init__(prefix="gdrcap-test-", **options)

    def __exit__(self, kind, value, trace):
        if kind is None or issubclass(kind, Skip):
            self.cleanup()
        else:
            self._finalizer.detach()
            print("kept: %s" % self.name)


class Result:
    def __init__(self, arguments, status, out, err):
        self.arguments = arguments
        self.status = status
        self.out = out
        self.err = err

    def __str__(self):
        return "gdrcap %s\n  exit status %s\n  stdout: %s\n  stderr: %s" % (
            " ".join(self.arguments), self.status, self.out[-3000:], self.err[-3000:])

    __repr__ = __str__  # what pytest shows of an assertion

    @property
    def summary(self):
        """The JSON object: exactly one line on standard output."""
        lines = self.out.splitlines()
        assert len(lines) == 1, "not exactly one line on standard output: %s" % self
        return json.loads(lines[0])


def start(*arguments, prefix=(), **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([*prefix, PROGRAM, *arguments], stdin=subprocess.DEVNULL,
                            text=True, errors="replace", **options)


def finish(process, arguments=()):
    """Waits for a started program; kills it and fails when it does not end."""
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise DidNotEnd("did not end within %g s: %s" % (
            TIMEOUT, no_sanitizer(Result(arguments, None, out or "", err or ""))))
    return no_sanitizer(Result(arguments, process.returncode, out or "", err or ""))


def no_sanitizer(result):
    """The result, of which no sanitizer has complained."""
    assert not re.search(r"(Address|Leak|Thread)Sanitizer|runtime error:", result.err), result
    return result


def run(*arguments, expect=0, **options):
    """Runs gdrcap to its end. expect: its exit status, or None for any that is no crash."""
    result = finish(start(*arguments, **options), arguments)
    if expect is None:
        assert result.status in (0, 1, 2, 3), result
    else:
        assert result.status == expect, "exit status is not %d: %s" % (expect, result)
    return result


def run_json(*arguments, expect=0, **options):
    """The same with --json: the summary, with the result that belongs to the exit status."""
    result = run(*arguments, "--json", expect=expect, **options)
    summary = result.summary
    check_summary(summary, result)
    assert (summary["result"] == "pass") == (result.status == 0), result
    return summary


KEYS = ("schema version command result ports tx_ports pattern frame_size elapsed_seconds seconds frames filtered "
        "bytes lost_by tx_stalled bits stale cut pool_empty queue_restarts clock rx_by tx_by match steering rate memory blocks "
        "cores sender sending images queues streams damage stages errors messages").split()


def check_summary(summary, context=""):
    assert summary["schema"] == "gdrcap.summary/1", context
    missing = [key for key in KEYS if key not in summary]
    assert not missing, "keys %s are missing: %s" % (missing, context)
    if summary["result"] == "fail":
        assert summary["errors"], "fails without a reason: %s" % context
    if summary["result"] == "pass":
        assert not summary["errors"], context
    if summary["sending"]:
        check_sending(summary, context)


def check_sending(summary, context=""):
    """Every frame that a caller submitted is accounted for."""
    sending = summary["sending"]
    known = sending["sent"] + sending["unsent"] + sending["refused"]
    assert sending["submitted"] == known or (summary["result"] == "running" and sending["submitted"] > known), \
        "submitted = sent + unsent + refused: %s, %s" % (sending, context)
    assert (sending["failed"] or 0) <= sending["sent"], (sending, context)
    assert 60 * sending["sent"] <= sending["bytes"], (sending, context)
    if sending["unsent"] or sending["failed"] or sending["refused"]:
        assert summary["result"] != "pass", (sending, context)


def check_identities(summary, context=""):
    """Every frame is accounted for, in total, by stream and by queue."""
    frames = summary["frames"]
    context = "%s\n%s" % (context, json.dumps(summary, indent=1)[:6000])
    assert frames, "nothing ran: %s" % context

    def equal(name, left, right):
        assert left == right, "%s: %d is not %d: %s" % (name, left, right, context)

    equal("received = valid + damaged + duplicate + filtered", frames["received"],
          frames["valid"] + frames["damaged"] + frames["duplicate"] + summary["filtered"])
    equal("sent = valid + damaged + lost", frames["sent"],
          frames["valid"] + frames["damaged"] + frames["lost"])
    known = sum(summary["lost_by"][key] or 0 for key in ("nic_missed", "nic_error"))
    causes = dict(summary["lost_by"]["causes"] or {})
    causes.update((summary["sender"] or {}).get("causes") or {})
    known += sum(causes.get(key) or 0 for key in ("card_full", "wire_crc", "wire_length",
                                                  "tx_discard"))
    # Of send queues of our own: exact, and the only one of the sender's that explains.
    known += (summary["sender"] or {}).get("errors") or 0
    assert summary["lost_by"]["unexplained"] >= max(0, frames["lost"] - known), context
    for key in ("received", "valid", "reordered"):
        equal("%s, sum of the queues" % key, sum(queue[key] for queue in summary["queues"]),
              frames[key])
    # A frame without a readable header that fills no gap is a duplicate in the total only.
    extra = sum(queue["damaged"] for queue in summary["queues"]) - frames["damaged"]
    equal("duplicate, sum of the queues",
          sum(queue["duplicate"] for queue in summary["queues"]) + extra, frames["duplicate"])
    assert extra == 0 or (extra > 0 and any(row["sequence"] is None for row in summary["damage"])
                          ), context
    equal("filtered, sum of the queues", sum(queue["filtered"] for queue in summary["queues"]),
          summary["filtered"])
    for stream in summary["streams"]:
        counts = stream["frames"]
        equal("stream %d: sent" % stream["stream"], counts["sent"],
              counts["valid"] + counts["damaged"] + counts["lost"])
    for key in ("checked", "wrong"):
        equal("bits %s, sum of the queues" % key,
              sum(queue["bits"][key] for queue in summary["queues"]), summary["bits"][key])


def check_perfect(summary, sent=None):
    """Every frame sent arrived once, in order and right."""
    check_identities(summary)
    frames = summary["frames"]
    if sent is not None:
        assert frames["sent"] == sent, "sent %d, not %d" % (frames["sent"], sent)
    assert frames["valid"] == frames["sent"] > 0, frames
    for key in ("damaged", "lost", "duplicate", "reordered"):
        assert frames[key] == 0, "%s: %s" % (key, json.dumps(summary, indent=1)[:4000])
    assert summary["lost_by"]["unexplained"] == 0, summary["lost_by"]
    assert summary["bits"]["wrong"] == 0, summary["bits"]
    assert not summary["damage"], summary["damage"]


def loopback(*arguments, frames, expect=0, **options):
    """A loopback over the wire in this process, every frame of it right."""
    summary = run_json("loopback", "--quiet", "--frames", str(frames), *arguments, expect=expect,
                       **options)
    check_perfect(summary, frames)
    assert summary["stages"], "no stage was reported"
    assert all(stage["state"] != "failed" for stage in summary["stages"]), summary["stages"]
    return summary


def interrupt_when_running(process, wait_for, number=signal.SIGINT):
    """Sends the signal once a line that matches has come on standard error."""
    seen = []
    hang = threading.Timer(TIMEOUT, process.kill)
    hang.start()
    try:
        for line in process.stderr:
            seen.append(line)
            if re.search(wait_for, line):
                process.send_signal(number)
                return
    finally:
        hang.cancel()
    raise AssertionError("ended before it was interrupted: %s" % "".join(seen))


CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_in_own_network = False


def enter_network():
    """A network namespace of this thread's own: names cannot clash, nothing is left behind."""
    global _in_own_network
    if _in_own_network:
        return
    if not shutil.which("ip"):
        raise Skip("making a veth pair needs the program ip (iproute2)")
    if _libc.unshare(CLONE_NEWNET):
        raise Skip("making a network namespace: %s (needs root)" % os.strerror(
            ctypes.get_errno()))
    _in_own_network = True


@contextlib.contextmanager
def own_network():
    """Back in the first namespace after the block, if the block entered another."""
    global _in_own_network
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        if _in_own_network and _libc.setns(before, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        _in_own_network = False
        os.close(before)


class VethPair:
    """Two interfaces with a wire between them, without IPv6's chatter, for a `with` block."""

    def __init__(self, left="gdrcap0", right="gdrcap1", mtu=1500, index=None):
        self.index = index  # of the left interface; None: the next one
        self.left = left
        self.right = right
        self.mtu = mtu

    @staticmethod
    def ip(*arguments):
        done = subprocess.run(["ip", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Skip("ip %s: %s" % (" ".join(arguments), done.stdout.strip()))
        return done.stdout

    def __enter__(self):
        enter_network()
        index = ["index", str(self.index)] if self.index else []
        self.ip("link", "add", self.left, *index, "type", "veth", "peer", "name", self.right)
        for name in (self.left, self.right):
            ipv6 = pathlib.Path("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % name)
            try:
                ipv6.write_text("1")
            except OSError:
                pass  # then IPv6's frames come and are counted as filtered
            self.ip("link", "set", name, "mtu", str(self.mtu), "up")
        self.wait_for_carrier()
        return self

    def dropped(self):
        """Frames from left to right that the pair itself lost, before any socket: the kernel's
        queue of packets that no core has looked at was full."""
        return json.loads(self.ip("-s", "-j", "link", "show", self.left))[0]["stats64"]["tx"][
            "dropped"]

    def wait_for_carrier(self):
        for name in (self.left, self.right):
            for _ in range(500):
                if "state UP" in self.ip("link", "show", name):
                    break
                time.sleep(0.01)
            else:
                raise Skip("%s did not come up" % name)

    def __exit__(self, *_):
        subprocess.run(["ip", "link", "del", self.left], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
