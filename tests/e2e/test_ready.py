# SPDX-License-Identifier: BSD-3-Clause
"""Receivers that say when frames can come (--ready), and senders that wait for it (--wait-ready)."""
import json
import os
import re
import signal
import socket
import threading

import pytest

import e2e
import processes

pytestmark = pytest.mark.sanitized

KEYS = {"schema", "version", "command", "host", "pid", "time", "ports"}
LINE = {"schema": "gdrcap.ready/1", "version": "gdrcap x", "command": "capture", "host": "rx",
        "pid": 7, "time": "2026-11-26T12:00:00Z",
        "ports": [{"port": "0000:3b:00.0", "mac": "02:00:00:00:00:01", "link": True}]}
SEND = ("replay", "--quiet", "--tx-port", "net_null0", "--frames", "100")


def write(path, content):
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else (json.dumps(content) + "\n").encode())


def read_ready(path):
    with open(path, encoding="ascii") as file:
        lines = file.readlines()
    assert len(lines) == 1 and lines[0].endswith("\n"), lines
    ready = json.loads(lines[0])
    assert set(ready) == KEYS and ready["schema"] == "gdrcap.ready/1", ready
    assert ready["host"] == socket.gethostname(), ready
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", ready["time"]), ready
    return ready


def memif(directory, role):
    return "net_memif0,role=%s,socket=%s,socket-abstract=no" % (role,
                                                               os.path.join(directory, "wire"))


def test_a_sender_waits_for_its_receiver():
    """The sender is there first, and its port's other end is not: it sends when the receiver has said
    that it is ready, and not a frame is lost."""
    with processes.folder() as directory:
        path = os.path.join(directory, "rx.json")
        write(path + ".old", LINE)
        with processes.Running("replay", "--tx-port", memif(directory, "client"), "--frames", "20000",
                               "--wait-ready", path) as sender:
            sender.wait_until(lambda: any("receivers that are ready: 0 of 1" in line and path in line
                                          for line in sender.err))
            assert not os.path.exists(path)
            with processes.Running("capture", "--port", memif(directory, "server"), "--ready",
                                   path) as receiver:
                sent, received = sender.finish(), receiver.finish()
                ready = read_ready(path)
                assert ready["pid"] == receiver.process.pid, ready
        assert sorted(os.listdir(directory))[:2] == ["rx.json", "rx.json.old"], os.listdir(directory)
    assert ready["command"] == "capture", ready
    assert [port["port"] for port in ready["ports"]] == [memif(directory, "server")], ready
    assert re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", ready["ports"][0]["mac"]), ready
    assert sent["frames"]["sent"] == 20000, sent["frames"]
    processes.check_counts(received, valid=20000, lost=0, damaged=0)


def test_on_standard_output():
    """The line comes first, then the objects; text goes elsewhere."""
    for arguments in (("--json",), ("--json-lines", "0.1"), ()):
        result = e2e.run("loopback", "--frames", "2000", "--ready", "-", *arguments)
        ready, *rest = result.out.splitlines()
        assert json.loads(ready)["schema"] == "gdrcap.ready/1", result
        assert json.loads(ready)["ports"] == [{"port": "ring:wire", "mac": None, "link": True}], ready
        if arguments:
            assert all(json.loads(line)["schema"] == "gdrcap.summary/1" for line in rest), result
            assert rest, result
        else:
            assert len(rest) == 1 and rest[0].startswith("PASS"), result


def test_errors_leave_no_file():
    """A run that does not begin: what an earlier one left is gone, and nothing else is touched."""
    with processes.folder() as directory:
        path = os.path.join(directory, "rx.json")
        for left in (LINE, b""):
            write(path, left)
            e2e.run("capture", "--port", "net_af_packet0,iface=gdrcap-none", "--ready", path, expect=1)
            assert os.listdir(directory) == [], os.listdir(directory)
        line = json.dumps(LINE).encode()
        # A line of ours has its end, and nothing follows.
        for other in (b"port: net_null0\n", b"no end", line, line + b"\n\n", b"x" * 70000):
            write(path, other)
            result = e2e.run("capture", "--port", "net_null0", "--seconds", "1", "--ready", path, expect=1)
            assert "not the line of an earlier run" in result.err and path in result.err, result
            with open(path, "rb") as file:
                assert file.read() == other
        link = os.path.join(directory, "link")
        os.symlink(path, link)
        e2e.run("capture", "--port", "net_null0", "--ready", link, expect=1)
        assert os.path.islink(link)
        result = e2e.run("loopback", "--frames", "10", "--ready",
                         os.path.join(directory, "no", "folder"), expect=1)
        assert "cannot be written" in result.err, result


def test_what_is_no_receiver():
    """Whatever else is in such a file is refused at once, with the file and what is wrong."""
    deep = b"[" * 60000 + b"\n"
    bad = [
        (b"\n", "gdrcap.ready/1"), (b"hello\n", "gdrcap.ready/1"), (deep, "gdrcap.ready/1"),
        (b"\xff\xfe\x00\n", "gdrcap.ready/1"), (b"x" * 70000, "no end"),
        ({**LINE, "schema": "gdrcap.ready/2"}, "gdrcap.ready/1"),
        ({**LINE, "schema": "gdrcap.summary/1"}, "gdrcap.ready/1"),
        ({**LINE, "schema": {}}, "gdrcap.ready/1"),
        (json.dumps(LINE)[:-1].encode() + b', "pid": 8}\n', "gdrcap.ready/1"),
        ({**LINE, "host": ""}, "'host'"), ({**LINE, "host": 5}, "'host'"),
        ({**LINE, "pid": 0}, "'pid'"), ({**LINE, "pid": "7"}, "'pid'"),
        ({**LINE, "ports": []}, "'ports'"), ({**LINE, "ports": {}}, "'ports'"),
        ({**LINE, "ports": [7]}, "'ports'"), ({**LINE, "ports": 9 * LINE["ports"]}, "'ports'"),
        ({**LINE, "ports": [{**LINE["ports"][0], "mac": "02:00"}]}, "'ports'"),
        ({**LINE, "ports": [{**LINE["ports"][0], "link": None}]}, "'ports'"),
        ({key: LINE[key] for key in KEYS - {"time"}}, "'time'"),
    ]
    with processes.folder() as directory:
        path = os.path.join(directory, "rx.json")
        for content, text in bad:
            write(path, content)
            result = e2e.run(*SEND, "--wait-ready", path, expect=1)
            assert path in result.err and text in result.err, (content[:80], result)
        os.remove(path)
        os.mkfifo(path)
        result = e2e.run(*SEND, "--wait-ready", path, expect=1)
        assert "no regular file" in result.err, result
        os.remove(path)
        os.mkdir(path)
        assert path in e2e.run(*SEND, "--wait-ready", path, expect=1).err


def test_those_that_do_not_come():
    """The limit names who is missing; half a line is none; Ctrl-C ends the wait in order."""
    with processes.folder() as directory:
        here, half, none = (os.path.join(directory, name) for name in ("a.json", "b.json", "c.json"))
        write(here, LINE)
        write(half, json.dumps(LINE).encode())
        summary = processes.run_json(*SEND, "--wait-ready", "%s,%s" % (here, half), "--wait-ready",
                                     none, "--wait-seconds", "0.2", expect=1)
        assert summary["errors"][0].startswith("receivers that were not ready after 0.2 s: %s, %s;" % (
            half, none)), summary["errors"]
        process = e2e.start("replay", "--tx-port", "net_null0", "--json", "--wait-ready",
                            "%s,%s" % (here, none), "--wait-seconds", "0")
        e2e.interrupt_when_running(process, "receivers that are ready: 1 of 2", signal.SIGINT)
        out, _ = process.communicate(timeout=e2e.TIMEOUT)
        assert process.returncode == 1, process.returncode
        assert none in json.loads(out)["errors"][0], out
        # The rest of the line comes, and what comes after it is none of the sender's.
        with open(half, "ab") as file:
            file.write(b'\n{"schema": "gdrcap.summary/1"}\n')
        e2e.run(*SEND, "--wait-ready", "%s,%s" % (here, half))


def test_never_half_a_line():
    """Receivers come and go while somebody looks: a file that is there is a whole line."""
    with processes.folder() as directory:
        path, over, bad = os.path.join(directory, "rx.json"), threading.Event(), []

        def look():
            while not over.is_set():
                try:
                    with open(path, "rb") as file:
                        json.loads(file.read())
                except FileNotFoundError:
                    pass
                except ValueError as error:
                    bad.append(error)

        looker = threading.Thread(target=look)
        looker.start()
        try:
            for _ in range(3):
                e2e.run("loopback", "--quiet", "--frames", "10", "--ready", path)
        finally:
            over.set()
            looker.join()
        assert not bad, bad
        read_ready(path)


def test_refused():
    """What means nothing here, or would write over something."""
    with processes.folder() as directory:
        path = os.path.join(directory, "x")
        config = os.path.join(directory, "rx.yaml")
        write(config, b"port: net_null0\n")
        for arguments, text in (
                (("capture", "--port", "net_null0", "--wait-ready", path), "--wait-ready"),
                (("replay", "--tx-port", "net_null0", "--ready", path), "--ready"),
                ((*SEND, "--wait-ready", path + ",,b"), "no list of files"),
                ((*SEND, "--wait-ready", ""), "no list of files"),
                ((*SEND, "--wait-ready", ",".join(["a"] * 257)), "256"),
                ((*SEND, "--wait-seconds", "5"), "--wait-ready"),
                ((*SEND, "--wait-ready", path, "--wait-seconds", "-1"), "--wait-seconds"),
                ((*SEND, "--wait-ready", path, "--wait-seconds", "86401"), "86400"),
                # Before it waits, what is wrong otherwise.
                ((*SEND, "--wait-ready", path, "--loops", "2"), "loops"),
                (("capture", "--port", "net_null0", "--ready", path, "--save", path), "one file"),
                (("capture", "--port", "net_null0", "--ready", "-", "--save", "/dev/stdout"),
                 "standard output"),
                (("capture", "--config", config, "--ready", config), "overwrite")):
            result = e2e.run(*arguments, expect=2)
            assert text in result.err, result
        assert sorted(os.listdir(directory)) == ["rx.yaml"], os.listdir(directory)
