# SPDX-License-Identifier: BSD-3-Clause
"""--json-file under logrotate, full disks and files that cannot be had, and --json-compact."""
import fcntl
import json
import os
import pathlib
import signal
import stat
import subprocess

import pytest

import e2e
import processes
from processes import FOREVER, stop, wait_for

pytestmark = pytest.mark.sanitized


def whole_lines(path):
    text = path.read_text()
    assert text.endswith("\n"), text[-300:]
    return [json.loads(line) for line in text.splitlines()]


def lines_so_far(path):
    """Of a file that is being written: its last line may be half there. The first may lack its beginning, if the file was emptied
    meanwhile; no other one."""
    text = path.read_text()
    lines = text[:text.rfind("\n") + 1].splitlines()
    return [json.loads(line) for line in lines[bool(lines) and not lines[0].startswith('{"schema"'):]]


def wait_for_a_frame(path, process):
    """A run that is stopped before one came has failed."""
    wait_for(lambda: path.exists() and any(line["frames"]["received"] for line in lines_so_far(path)), process, "no line with a frame")


def test_file():
    with e2e.Folder() as folder:
        path = pathlib.Path(folder) / "run.json"
        path.write_text('{"before": 1}\n')
        for _ in range(2):
            result = e2e.run("loopback", "--frames", "1000", "--json", "--json-file", str(path))
            assert "PASS" in result.out and not result.out.startswith("{"), result
        lines = whole_lines(path)
        assert len(lines) == 3 and lines[0] == {"before": 1}, lines
        e2e.check_perfect(lines[2], 1000)
        # What cannot run says so there too; a command line that is wrong does not.
        result = e2e.run("capture", "--json", "--json-file", str(path), expect=2)
        assert result.summary["errors"] and len(whole_lines(path)) == 3, result
        e2e.run("capture", "--port", "net_af_packet0,iface=none0", "--json", "--json-file", str(path), expect=1)
        assert whole_lines(path)[3]["errors"], path.read_text()
        new = pathlib.Path(folder) / "new.json"
        old = os.umask(0)
        try:
            e2e.run("loopback", "--frames", "10", "--json", "--json-file", str(new))
        finally:
            os.umask(old)
        assert stat.S_IMODE(new.stat().st_mode) == 0o640, new.stat()


def test_rotated():
    """Renamed under the run again and again, with a signal each: every line is in one file, whole."""
    with e2e.Folder() as folder:
        path = pathlib.Path(folder) / "run.jsonl"
        process = e2e.start(*FOREVER, "--json-lines", "0.1", "--json-file", str(path))
        kept = []
        for number in range(3):
            wait_for(lambda: path.exists() and path.stat().st_size, process, "no line")
            kept.append(pathlib.Path(folder) / ("run.jsonl.%d" % number))
            path.rename(kept[-1])
            process.send_signal(signal.SIGHUP)
            wait_for(path.exists, process, "not opened anew")
        size = kept[-1].stat().st_size
        wait_for(lambda: path.stat().st_size, process, "no line in the new file")
        assert kept[-1].stat().st_size == size
        wait_for_a_frame(path, process)
        stop(process)
        lines = [line for part in (*kept, path) for line in whole_lines(part)]
        assert [line["result"] for line in lines] == ["running"] * (len(lines) - 1) + ["pass"]
        received = [line["frames"]["received"] for line in lines]
        assert received == sorted(received), received
        e2e.check_perfect(lines[-1])


def test_not_opened_anew():
    with e2e.Folder() as folder:
        path = pathlib.Path(folder) / "run.jsonl"
        process = e2e.start(*FOREVER, "--json-lines", "0.1", "--json-file", str(path))
        wait_for(lambda: path.exists() and path.stat().st_size, process, "no line")
        old = path.with_suffix(".old")
        path.rename(old)
        path.mkdir()
        errors = []
        process.send_signal(signal.SIGHUP)
        for line in process.stderr:
            errors.append(line)
            if "opened anew" in line:
                break
        size = old.stat().st_size
        wait_for(lambda: old.stat().st_size > size, process, "the old file does not go on")
        wait_for_a_frame(old, process)
        stop(process)
        assert "warning: --json-file: %s cannot be opened anew: Is a directory" % path in errors[-1], errors
        assert whole_lines(old)[-1]["result"] == "pass"


def test_hangup():
    """Without a file SIGHUP ends the run, as ever."""
    process = e2e.start(*FOREVER, "--json-lines", "0.1")
    while json.loads(process.stdout.readline())["frames"]["received"] == 0:
        pass
    assert stop(process, number=signal.SIGHUP).out.count('"result":"pass"') == 1
    # nohup(1), and a file.
    with e2e.Folder() as folder:
        path = pathlib.Path(folder) / "run.jsonl"
        process = subprocess.Popen(["nohup", e2e.PROGRAM, *FOREVER, "--json-lines", "0.1", "--json-file", path],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        wait_for(lambda: path.exists() and path.stat().st_size, process, "no line")
        path.rename(path.with_suffix(".old"))
        process.send_signal(signal.SIGHUP)
        wait_for_a_frame(path, process)
        stop(process)


def test_full():
    result = e2e.run("loopback", "--frames", "500", "--rate", "1000pps", "--json-lines", "0.1", "--json-file", "/dev/full",
                     expect=1)
    assert result.err.count("warning: --json-file: a line could not be written to /dev/full: "
                            "No space left") == 1, result
    assert "lines that could not be written to /dev/full" in result.out, result


def test_full_disk():
    """A disk with room for a part of a line: that part is taken back, and lines go on when there is room."""
    with e2e.Folder() as folder:
        script = "mount -t tmpfs -o size=16k none %s && echo mounted && exec \"$@\"" % folder
        process = e2e.start(*FOREVER, "--json-lines", "0.1", "--json-file", "%s/run.jsonl" % folder,
                            prefix=("unshare", "--mount", "sh", "-c", script, "sh"))
        if process.stdout.readline() != "mounted\n":
            process.communicate()
            raise e2e.Skip("no tmpfs can be mounted here")
        inside = pathlib.Path("/proc/%d/root%s/run.jsonl" % (process.pid, folder))
        for line in process.stderr:
            if "could not be written" in line:
                break
        assert "No space left" in line, line
        # Each further line is tried, too: the part of it that fits is there for a moment.
        wait_for(lambda: inside.stat().st_size % 4096, process, "the part of a line stays")
        before = lines_so_far(inside)
        assert before
        # As logrotate's copytruncate does.
        os.truncate(inside, 0)
        wait_for_a_frame(inside, process)
        assert lines_so_far(inside)[0]["frames"]["received"] >= before[-1]["frames"]["received"]
        result = stop(process, expect=1)
        assert "lines that could not be written" in result.out, result


def test_pipe():
    """A reader that does not read holds nothing up; of what does not fit a line is cut, and the next one begins anew."""
    with e2e.Folder() as folder:
        path = os.path.join(folder, "pipe")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reader, 1031, 4096)  # F_SETPIPE_SZ
        process = e2e.start(*FOREVER, "--streams", "64", "--json-lines", "0.1", "--json-file", path)
        for line in process.stderr:
            if "could not be written" in line:
                break
        assert "Resource temporarily unavailable" in line, line
        text = bytearray()

        def three_lines():
            try:
                text.extend(os.read(reader, 65536))
            except BlockingIOError:
                pass
            return text.count(b"\n") >= 3
        wait_for(three_lines, process, "no line after one that was cut")
        stop(process, expect=1)
        os.close(reader)
        for line in text.split(b"\n"):
            assert not line or line.startswith(b'{"schema":"gdrcap.summary/1"'), line
            assert line.count(b'"schema"') <= 1, line


def test_refused():
    with e2e.Folder() as folder:
        path = os.path.join(folder, "x")
        pipe, link = os.path.join(folder, "pipe"), os.path.join(folder, "link")
        os.mkfifo(pipe)
        os.symlink("/etc/hostname", link)
        for file, text in ((folder, "Is a directory"), (os.path.join(folder, "no", "x"), "No such file"),
                           (pipe, "start its reader before"), (link, "symbolic link")):
            result = e2e.run("loopback", "--json", "--json-file", file, expect=2)
            assert text in result.err and text in result.summary["errors"][0], result
        for arguments, text in ((("--json-file", path), "--json"),
                                (("--json", "--json-compact"), "--json-lines"),
                                (("--json", "--json-file", path, "--save", path), "are one file")):
            result = e2e.run("loopback", *arguments, expect=2)
            assert text in result.err, result
        assert not os.path.exists(path)


def test_compact():
    with processes.Running("loopback", "--json-compact", "--quiet", "--streams", "16") as process:
        process.wait_until(lambda: len(process.out) > 2)
        process.wait_for_frames("received", 1)
        process.signal(signal.SIGINT)
        process.finish()
    *running, last = process.out
    e2e.check_perfect(json.loads(last))
    for line in map(json.loads, running):
        left_out = set(json.loads(last)) - set(line)
        assert left_out == {"ports", "tx_ports", "pattern", "frame_size", "clock", "rx_by", "tx_by", "match",
                            "memory", "blocks", "cores", "queues", "streams", "damage", "stages"}, left_out
        assert line["result"] == "running" and line["frames"]["received"] >= 0, line
        assert line["messages"] == [], line
    times = [json.loads(line)["elapsed_seconds"] for line in (*running, last)]
    assert times[0] > 0 and times == sorted(set(times)), times
    # All frames came in the run, whose end is there; the clocks are two.
    assert times[-1] * 1.01 > json.loads(last)["seconds"] > 0, (times, last)
    assert max(map(len, running)) < 1500, max(map(len, running))
