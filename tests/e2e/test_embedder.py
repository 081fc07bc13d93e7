# SPDX-License-Identifier: BSD-3-Clause
"""examples/embedder.cpp, the program of docs/embedding.md: two sessions in one program, which ends in
every way that a program may end."""
import contextlib
import os
import pathlib
import re
import select
import socket
import subprocess
import time

import e2e
import processes

FRAMES = 20000
FRAME = b"\xff" * 6 + b"\x02" + bytes(5) + b"\x88\xb5" + bytes(100)
RING = """
port: ring:{name}
tx_port: ring:{name}
gpu: host
pool: 8M
consumer: {{name: host}}
pattern: {{name: counter8}}
frame: {{size: {size}}}
frames: {frames}
"""
WIRE = """
port: "net_af_packet0,iface={interface}"
gpu: host
consumer: {{name: host}}
link_down: {link_down}
"""


class Files:
    """A folder with a configuration for each session."""

    def __enter__(self):
        self.folder = processes.folder()
        self.path = pathlib.Path(self.folder.__enter__())
        return self

    def __exit__(self, *error):
        return self.folder.__exit__(*error)

    def write(self, name, text):
        (self.path / name).write_text(text)
        return name

    def ring(self, name, frames=FRAMES, size=200):
        return self.write(name, RING.format(name=name, frames=frames, size=size))

    def start(self, how, *names):
        return subprocess.Popen([os.environ["EMBEDDER"], str(how), *names], cwd=self.path,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, how, *names, expect=0):
        return finish(self.start(how, *names), expect)


def finish(process, expect):
    result = e2e.finish(process, ["embedder"])
    assert result.status == expect, result
    return result


def wait_until_running(process):
    """Sessions have a control thread from start to stop."""
    while not any(name.read_text() == "gdrcap-control\n" for name in
                  pathlib.Path("/proc/%d/task" % process.pid).glob("*/comm")):
        assert process.poll() is None, process.communicate()


def counts(result):
    """Frames by session, as the program says at its end."""
    return {name: int(frames) for name, frames in
            re.findall(r"^(\w+): (\d+) frames", result.out, re.M)}


def test_end():
    with Files() as files:
        result = files.run("end", files.ring("first"), files.ring("second", 2 * FRAMES))
        assert counts(result) == {"first": FRAMES, "second": 2 * FRAMES}, result
        assert result.err == "", result


def test_exception():
    """The sessions run; their owner's destructor ends them."""
    with Files() as files:
        result = files.run("throw", files.ring("first", 0), files.ring("second", 0), expect=4)
        assert result.err == "the program's own error\n", result


def test_exit():
    with Files() as files:
        result = files.run("exit", files.ring("first", 0), files.ring("second", 0), expect=3)
        assert result.err == "", result


def test_return():
    with Files() as files:
        result = files.run("return", files.ring("first", 0), files.ring("second", 0))
        assert result.err == "", result


def test_stop_by_another_thread():
    """A thread waits for batches while another stops the sessions."""
    with Files() as files:
        result = files.run("stop", files.ring("first", 0), files.ring("second", 0))
        assert set(counts(result)) == {"first", "second"}, result
        assert result.err == "", result


def test_slow():
    """Nothing is lost on a wire that waits."""
    with Files() as files:
        result = files.run("slow", files.ring("first"))
        assert counts(result) == {"first": FRAMES}, result


def test_again():
    """Nothing is left of a session: a hundred of them, in `make check-long` a thousand, one after the other; a sanitizer
    counts."""
    times = int(os.environ.get("EMBEDDER_TIMES") or (1000 if e2e.LONG else 100))
    with Files() as files:
        result = files.run(times, files.ring("first", 64))
        assert result.out == "first: 64 frames \n" * times, result.out[-300:]
        assert result.err == "", result


def test_log_lines_are_their_sessions():
    """One session has no pool for its rings, another's configuration is wrong."""
    with Files() as files:
        files.write("wrong", "port: ring:wrong\nqueues: 99\n")
        result = files.run("end", files.ring("first", 0), "wrong", expect=4)
        assert re.fullmatch(r"wrong: .*queues.*\n", result.err), result


def test_link_goes_down_and_up():
    """It is said, and frames come again afterwards."""
    with Files() as files, e2e.VethPair() as pair:
        files.write("wire", WIRE.format(interface=pair.right, link_down="wait") + "frames: 100\n")
        process = files.start("end", "wire")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((pair.left, 0))
            wait_until_running(process)
            # One that went down before the session's first look at it is no change.
            pair.ip("link", "set", pair.left, "down")
            while not select.select([process.stderr], [], [], 1)[0]:
                pair.ip("link", "set", pair.left, "up")
                time.sleep(1)
                pair.ip("link", "set", pair.left, "down")
            line = process.stderr.readline()
            assert re.match(r"wire: .*gdrcap1.*link.*down", line), line
            pair.ip("link", "set", pair.left, "up")
            while process.poll() is None:
                with contextlib.suppress(OSError):
                    sender.send(FRAME)
        result = finish(process, 0)
        assert counts(result)["wire"] >= 100, result


def test_interface_is_deleted():
    """The session ends with an error that names it."""
    with Files() as files, e2e.VethPair() as pair:
        files.write("wire", WIRE.format(interface=pair.right, link_down="wait"))
        process = files.start("end", "wire")
        wait_until_running(process)
        pair.ip("link", "delete", pair.left)
        result = finish(process, 1)
        assert re.search(r"wire: 0 frames .*gdrcap1", result.out), result
