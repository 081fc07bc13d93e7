# SPDX-License-Identifier: BSD-3-Clause
"""What a service manager is told (NOTIFY_SOCKET, WATCHDOG_USEC), and a run of an ordinary user with some rights."""
import contextlib
import os
import re
import shutil
import signal
import socket
import struct

import e2e
import processes
from processes import FOREVER

FAULTY = os.environ.get("GDRCAP_FAULTY")
STATUS = re.compile(r"STATUS=\d+ s  [\d,]+ frames?  .*in flight or lost \d+$")


class Manager:
    """A service manager's socket."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind("\0" + address[1:] if address[0] == "@" else address)
        self.socket.settimeout(e2e.TIMEOUT)
        self.environment = {**os.environ, "NOTIFY_SOCKET": address}
        self.told, self.pids = [], set()

    def watched(self, usec, pid=None):
        environment = {**self.environment, "WATCHDOG_USEC": str(usec)}
        if pid:
            environment["WATCHDOG_PID"] = str(pid)
        return environment

    def next(self):
        lines, extra, _, _ = self.socket.recvmsg(4096, 1024)
        self.pids.add(struct.unpack("3i", extra[0][2][:12])[0])
        self.told.append(lines.decode("ascii"))
        return self.told[-1]

    def until(self, what):
        """What was told on the way to a datagram that begins so, and that."""
        told = [self.next()]
        while not told[-1].startswith(what):
            told.append(self.next())
        return told

    def rest(self):
        """Of a process that has ended."""
        told = []
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                told.append(self.next())
        return told


@contextlib.contextmanager
def manager(name="notify"):
    with processes.folder() as directory:
        made = Manager(os.path.join(directory, name))
        with contextlib.closing(made.socket):
            yield made, directory


def test_a_run():
    """READY=1 when --ready says it and not before, counts now and then, and the end."""
    with manager() as (told, directory):
        ready = os.path.join(directory, "ready.json")
        with processes.Running(*FOREVER, "--ready", ready, env=told.watched(40000)) as runner:
            assert told.next() == "READY=1", told.told
            assert os.path.exists(ready)
            told.until("WATCHDOG=1")
            status = told.until("STATUS=")[-1]
            assert STATUS.match(status), status
            told.until("WATCHDOG=1")
            runner.wait_for_frames("received", 1)
            runner.signal(signal.SIGINT)
            runner.finish()
            assert told.pids == {runner.process.pid}, told.pids
        end = [line for line in told.rest() if not STATUS.match(line)]
        stopping = end.index("STOPPING=1")
        assert set(end[:stopping]) <= {"WATCHDOG=1"}, end
        assert len(end) == stopping + 2 and re.match(r"STATUS=PASS: [\d,]+ frames? sent, every one valid$",
                                                     end[-1]), end


def test_without_a_watchdog():
    """None is told that nobody asked for, nor another process's; and the live line goes to the manager."""
    with manager() as (told, _):
        for environment in (told.environment, told.watched(1000, pid=1)):
            result = e2e.run("loopback", "--seconds", "3", "--rate", "1000pps", env=environment)
            lines = told.rest()
            assert lines[0] == "READY=1" and lines[-2] == "STOPPING=1", lines
            assert all(STATUS.match(line) for line in lines[1:-2]) and len(lines) > 3, lines
            assert "Gb/s  " not in result.out and "PASS" in result.out, result


def test_what_cannot_run():
    """Never ready, and the manager shows why."""
    with manager() as (told, _):
        e2e.run("capture", "--port", "net_af_packet0,iface=gdrcap-none", env=told.environment, expect=1)
        lines = told.rest()
        assert lines[0] == "STOPPING=1" and len(lines) == 2, lines
        assert lines[1].startswith("STATUS=FAIL: ") and "gdrcap-none" in lines[1], lines
        e2e.run("capture", "--port", "net_null0", "--quiet", "--frames", "100", "--pattern", "prbs31",
                env=told.environment, expect=3)
        lines = told.rest()
        assert lines[0] == "READY=1" and lines[-1].startswith("STATUS=FAIL: "), lines


def test_a_consumer_that_stands_still():
    """The watchdog is fed until the session says so, and not after."""
    if not FAULTY:
        raise e2e.Skip("GDRCAP_FAULTY is not set")
    program, e2e.PROGRAM = e2e.PROGRAM, FAULTY
    try:
        with manager() as (told, _):
            environment = {**told.watched(40000), "GDRCAP_FAULTS": "abandon=5"}
            with processes.Running(*FOREVER, "--gpu", "host", "--watchdog", "0.3", env=environment):
                assert told.until("STATUS=the consumer has made no progress for 300 ms").count("WATCHDOG=1")
                # Its next line comes seconds later: of a hundred times that it would have been fed, none was used.
                assert told.until("STATUS=")[0].startswith("STATUS=the consumer stands still: "), told.told
            environment["GDRCAP_FAULTS"] = "stall=5"
            told.told.clear()
            told.rest()
            with processes.Running(*FOREVER, "--gpu", "host", "--watchdog", "0.3", env=environment):
                told.socket.settimeout(e2e.TIMEOUT)
                told.until("STATUS=the consumer has made no progress for 300 ms")
                assert told.until("STATUS=the consumer moves again")[:-1] == [], told.told
                told.until("WATCHDOG=1")
    finally:
        e2e.PROGRAM = program


def test_reload():
    """SIGHUP: the file is opened anew between the two."""
    with manager() as (told, directory):
        path = os.path.join(directory, "run.jsonl")
        process = e2e.start(*FOREVER, "--quiet", "--json-lines", "0.1", "--json-file", path, env=told.environment)
        told.until("READY=1")
        os.rename(path, path + ".1")
        process.send_signal(signal.SIGHUP)
        assert re.match(r"RELOADING=1\nMONOTONIC_USEC=\d+$", told.until("RELOADING=1")[-1]), told.told
        told.until("READY=1")
        assert os.path.exists(path)
        processes.stop(process)


def test_hostile_environment():
    """Values that no manager gives are named, and the run is none of theirs."""
    run = ("loopback", "--frames", "10")
    with manager() as (told, directory):
        plain = os.path.join(directory, "plain")
        with open(plain, "w", encoding="ascii"):
            pass
        for value, text in (("notify", "neither a path"), ("@", "neither a path"), ("/", "neither a path"),
                            ("vsock:2:1", "neither a path"), ("/" * 108, "longer than an address"),
                            ("@" + "x" * 100000, "longer than an address"), ("/%s%n\x1b[31m", "cannot be told"),
                            ("@" + "x" * 107, "cannot be told: Connection refused"),
                            (os.path.join(directory, "none"), "cannot be told: No such file"),
                            (directory, "cannot be told"), (plain, "cannot be told")):
            result = e2e.run(*run, env={**os.environ, "NOTIFY_SOCKET": value, "WATCHDOG_USEC": "1"})
            assert result.err.count("NOTIFY_SOCKET: ") == 1 and text in result.err, (value[:80], result)
            assert len(result.err) < 3000, result
        result = e2e.run(*run, env={**os.environ, "NOTIFY_SOCKET": "", "WATCHDOG_USEC": "x"})
        assert "warning" not in result.err, result
        for usec, pid in (("", None), ("x", None), ("-1", None), ("0", None), ("1 ", None), ("9" * 20, None),
                          ("1" * 100000, None), ("1000", "x"), ("1000", "99999999999")):
            result = e2e.run(*run, env=told.watched(usec, pid))
            assert ("WATCHDOG_PID" if pid else "WATCHDOG_USEC") in result.err, (usec[:80], result)
            assert "WATCHDOG=1" not in told.rest(), (usec[:80], pid)


def test_a_manager_that_does_not_read():
    """Its socket is full before the run has begun: nobody waits for it."""
    with manager() as (told, _):
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as filler:
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    filler.sendto(b"X=1", told.environment["NOTIFY_SOCKET"])
        with processes.Running(*FOREVER, env=told.watched(1000)) as runner:
            runner.wait_for_frames("received", 1)
            # Said again until it was taken.
            told.until("READY=1")
            told.until("WATCHDOG=1")
            runner.signal(signal.SIGINT)
            runner.finish()


def test_abstract_socket():
    told = Manager("@gdrcap-e2e-%d" % os.getpid())
    with contextlib.closing(told.socket):
        e2e.run("loopback", "--frames", "10", env=told.environment)
        assert told.rest()[0] == "READY=1", told.told


def test_watchdog_too_short():
    """Taken, with one warning that says what helps; none of a time that is long enough, nor of another process's."""
    run = ("loopback", "--frames", "10")
    with manager() as (told, _):
        for usec, pid, warns in ((1, None, True), (999999, None, True), (1000000, None, False), (1, 1, False)):
            result = e2e.run(*run, env=told.watched(usec, pid))
            assert result.err.count("WATCHDOG_USEC: ") == warns == result.err.count("WatchdogSec=1s"), (usec, pid, result)
            assert ("nothing for %d us" % usec in result.err) == warns, (usec, pid, result)


def test_an_ordinary_user_with_some_rights():
    """As the unit does it: ambient capabilities, which the program gives up when its ports are open."""
    options = processes.nobody()
    if not shutil.which("setpriv"):
        raise e2e.Skip("the program setpriv is not installed: apt-get install util-linux")
    rights = "+net_raw,+net_admin"
    prefix = ("setpriv", "--reuid", str(options["user"]), "--regid", str(options["group"]), "--clear-groups",
              "--inh-caps", rights, "--ambient-caps", rights, "--no-new-privs")
    with e2e.VethPair() as pair, processes.Running(
            "loopback", "--tx-port", "net_af_packet0,iface=%s" % pair.left, "--port",
            "net_af_packet1,iface=%s" % pair.right, "--rate", "200pps", prefix=prefix, env=options["env"],
            cwd="/") as runner:
        runner.wait_for_frames("received", 20)
        with open("/proc/%d/status" % runner.process.pid, encoding="ascii") as status:
            assert re.search(r"^Uid:\s+%d\s" % options["user"], status.read(), re.M)
        processes.check_dropped(runner, 0, bounding=None)
        runner.signal(signal.SIGINT)
        runner.finish(expect=None)  # a busy machine's kernel may lose some
        # And without them it says what is missing.
        result = e2e.run("capture", "--port", "net_af_packet1,iface=%s" % pair.right, expect=1, **options)
        assert "CAP_NET_RAW" in result.err or "not permitted" in result.err, result
