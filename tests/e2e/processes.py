# SPDX-License-Identifier: BSD-3-Clause
"""Two programs at once, other tools beside ours, and what the summaries of both ends must say."""
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import e2e

NEW_KEYS = "sender lock_lost saved match ended_by_sender".split()
SENDER_KEYS = "asked gbps mpps seconds frames bytes gap_error_ns starved errors causes".split()


def scaled(count, least=1000):
    """`count` frames in a plain build, fewer where E2E_FRAMES says that all is slower."""
    return max(min(count, least), min(count, count * e2e.FRAMES // 10000000))


@contextlib.contextmanager
def folder():
    """A directory that anybody may use, for the block; in memory where it can be, since a disk that
    others write to may hold up who writes a frame for seconds."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with e2e.Folder(dir=memory) as path:
        os.chmod(path, 0o777)
        yield path


def tool(name, package=None):
    if not shutil.which(name):
        raise e2e.Skip("the program %s is not installed%s" % (
            name, ": apt-get install " + package if package else ""))
    return name


def output(*command, timeout=e2e.TIMEOUT):
    """Another tool's standard output; its failure is ours."""
    tool(command[0])
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout)
    assert done.returncode == 0, "%s: exit status %d: %s" % (
        " ".join(command), done.returncode, done.stderr)
    return done.stdout


class Running:
    """gdrcap in the background, both of its outputs read as they come."""

    def __init__(self, *arguments, **options):
        self.arguments = (*arguments, "--json-lines", "0.1")
        self.out, self.err, self.ended = [], [], 0
        self.news = threading.Condition()
        self.process = e2e.start(*self.arguments, **options)
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True) for pair in
                        ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()

    def read(self, stream, lines):
        with stream:
            for line in stream:
                with self.news:
                    lines.append(line)
                    self.news.notify_all()
        with self.news:
            self.ended += 1
            self.news.notify_all()

    def wait_until(self, what):
        """Until what() is true; fails when the program ends before."""
        with self.news:
            self.news.wait_for(lambda: what() or self.ended == 2, e2e.TIMEOUT)
            if what():
                return self
        self.kill()
        raise AssertionError("ended before what was waited for: %s" % self.result())

    def wait_until_running(self):
        """The first line of counts comes after the start."""
        return self.wait_until(lambda: self.out)

    def wait_until_running_on(self, driver):
        """The same on a kernel interface: not every kernel has AF_XDP."""
        try:
            self.wait_until_running()
        except AssertionError as error:
            if driver == "af_xdp":
                raise e2e.Skip("no AF_XDP on this kernel: %s" % error)
            raise

    def wait_for_frames(self, key, count):
        """Until it counted so many of them."""
        return self.wait_until(lambda: self.out and (
            json.loads(self.out[-1])["frames"] or {}).get(key, 0) >= count)

    def wait_for_all(self, count):
        """Until so many frames came, or the kernel says that it dropped them before."""
        def came():
            last = json.loads(self.out[-1])
            return last["frames"]["received"] + (last["lost_by"]["nic_missed"] or 0) >= count

        return self.wait_until(lambda: self.out and came())

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()

    def result(self):
        """When it has ended."""
        for reader in self.readers:
            reader.join(e2e.TIMEOUT)
        return e2e.Result(self.arguments, self.process.wait(), "".join(self.out[-1:]),
                          "".join(self.err))

    def finish(self, expect=0):
        """The summary, with the exit status that is expected, or one of several (None: 0 or 3)."""
        try:
            self.process.wait(e2e.TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("did not end: %s" % self.result())
        result = self.result()
        e2e.no_sanitizer(result)
        wanted = (0, 3) if expect is None else expect if isinstance(expect, tuple) else (expect,)
        assert result.status in wanted, "exit status is not %s: %s" % (wanted, result)
        summary = result.summary
        check_summary(summary, result)
        assert (summary["result"] == "pass") == (result.status == 0), result
        return summary

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.wait()


def check_summary(summary, context=""):
    e2e.check_summary(summary, context)
    missing = [key for key in NEW_KEYS if key not in summary]
    assert not missing, "keys %s are missing: %s" % (missing, context)
    if summary["sender"]:
        missing = [key for key in SENDER_KEYS if key not in summary["sender"]]
        assert not missing, "keys sender.%s are missing: %s" % (missing, context)


def run_json(*arguments, expect=0, **options):
    result = e2e.run(*arguments, "--json", expect=expect, **options)
    summary = result.summary
    check_summary(summary, result)
    assert (summary["result"] == "pass") == (result.status == 0), result
    return summary


def text_of(summary):
    return json.dumps(summary, indent=1)[:5000]


def check_counts(summary, **expected):
    """The counts are these, and nothing is unaccounted for."""
    actual = {key: summary["filtered"] if key == "filtered" else summary["frames"][key]
              for key in expected}
    assert actual == expected, "counted %s, not %s: %s" % (actual, expected, text_of(summary))
    e2e.check_identities(summary)


def check_sender(summary, sent=None):
    """A replay's own books."""
    sender = summary["sender"]
    assert sender, text_of(summary)
    assert summary["command"] == "replay", summary["command"]
    assert sender["frames"] == summary["frames"]["sent"], text_of(summary)
    if sent is not None:
        assert sender["frames"] == sent, "sent %d, not %d: %s" % (
            sender["frames"], sent, text_of(summary))
    assert not sender["errors"], text_of(summary)
    gaps = sender["gap_error_ns"]
    if gaps:
        assert 0 <= gaps["p50"] <= gaps["p99"] <= gaps["max"], gaps
    return sender


def messages(summary):
    return "\n".join(summary["messages"])


def send_raw(pair, frames):
    """Sends them from the pair's left end; returns how many come to the right one, or to a socket of its that is full."""
    dropped, count = pair.dropped(), 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
        port.bind((pair.left, 0))
        for frame in frames:
            count += 1
            port.send(frame)
    return count - (pair.dropped() - dropped)


class Tcpdump:
    """The other tool's capture of `interface`, for a `with` block."""

    def __init__(self, interface, path, count=None, direction="in", live=False):
        tool("tcpdump", "tcpdump")
        self.path, self.at, self.frames = path, 24, 0  # behind the file's header
        self.process = subprocess.Popen(
            ["tcpdump", "-i", interface, "-Q", direction, "-Z", "root", "-n", "-s", "0", "-B", "65536",
             "--time-stamp-precision", "nano", "-w", str(path), *(["-U"] if live else []),
             *(("-c", str(count)) if count else ())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = ""
        while "listening on" not in self.said:
            line = self.process.stderr.readline()
            if not line:
                raise e2e.Skip("tcpdump: %s" % self.said)
            self.said += line

    def finish(self, patience=20):
        """Ends when all frames came, or `patience` seconds after the last call."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        return self.interrupt()

    def written(self):
        """Frames in its file so far, if it is live."""
        with open(self.path, "rb") as file:
            file.seek(self.at)
            data, at = file.read(), 0
        while at + 16 <= len(data):
            end = at + 16 + struct.unpack_from("=I", data, at + 8)[0]
            if end > len(data):
                break
            self.frames, at = self.frames + 1, end
        self.at += at
        return self.frames

    def end(self, count):
        """Ends once it wrote so many frames, or none came for a minute. Returns how many the kernel dropped before it."""
        before = -1
        while before < self.written() < count:
            before = self.frames
            wait_until(lambda: self.written() >= count, 60)
        return int(re.search(r"^(\d+) packets? dropped by kernel", self.interrupt(), re.M)[1])

    def interrupt(self):
        """Ends with what it has; what it says of it."""
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.communicate(timeout=e2e.TIMEOUT)[1]
        return self.said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@functools.lru_cache(maxsize=None)
def nobody():
    """Popen() options of a user without rights who can run the program, and its path."""
    if os.geteuid():
        raise e2e.Skip("dropping to another user needs root")
    environment = {**os.environ, "HOME": "/nonexistent"}
    environment.pop("XDG_RUNTIME_DIR", None)
    options = {"user": 65534, "group": 65534, "extra_groups": [], "env": environment}
    try:
        done = subprocess.run([e2e.PROGRAM, "--version"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/",
                              **options)
    except OSError as error:
        raise e2e.Skip("user 65534 cannot run %s: %s" % (e2e.PROGRAM, error))
    if done.returncode:
        raise e2e.Skip("user 65534 cannot run %s: %s" % (e2e.PROGRAM, done.stdout))
    return {**options, "cwd": "/"}


def wait_until(what, seconds=e2e.TIMEOUT):
    """True once what() is; False after so long."""
    for _ in range(int(seconds * 100)):
        if what():
            return True
        time.sleep(0.01)
    return False

# ---- a run that goes on until it is told to stop ----

FOREVER = ("loopback", "--seconds", "0", "--rate", "1000pps", "--frame-size", "64")


def wait_for(condition, process, what):
    """What the condition finds. Only so that a program that hangs fails the test is there a limit."""
    for _ in range(int(e2e.TIMEOUT * 100)):
        found = condition()
        if found:
            return found
        assert process.poll() is None, "%s: ended: %s" % (what, e2e.finish(process, FOREVER))
        time.sleep(0.01)
    process.kill()
    raise AssertionError("%s: %s" % (what, e2e.finish(process, FOREVER)))


def stop(process, expect=0, number=signal.SIGINT):
    process.send_signal(number)
    result = e2e.finish(process, FOREVER)
    # On a busy machine the end may come before the first frame, which is no pass.
    if expect or "no frame was received" not in result.out + result.err:
        assert result.status == expect, result
    return result


# ---- what a process may do ----

def read_terminal(reader):
    """All that was written to a pseudo terminal, until its other side was closed by all who had it.

    One read may return a part of what was written before it: the kernel passes the rest on later.
    """
    shown = bytearray()
    with open(reader, "rb", buffering=0) as file, contextlib.suppress(OSError):
        while part := file.read(65536):
            shown += part
    return bytes(shown)


def capabilities(pid):
    """[(permitted, bounding, no new privileges)], one for each thread."""
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/status" % (pid, task)) as status:
                text = status.read()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        found.append(tuple(int(re.search(r"^%s:\s*(\w+)$" % name, text, re.M).group(1), 16)
                           for name in ("CapPrm", "CapBnd", "NoNewPrivs")))
    return found


def check_dropped(runner, permitted, bounding=0):
    """bounding None: whoever has no CAP_SETPCAP cannot empty that set, which means nothing without new privileges."""
    found = capabilities(runner.process.pid)
    assert len(found) > 4, found
    wanted = {(permitted, has if bounding is None else bounding, 1) for _, has, _ in found}
    assert set(found) == wanted, [tuple(map(hex, each)) for each in found]
