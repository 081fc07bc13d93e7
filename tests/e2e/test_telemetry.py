# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's telemetry clients: what they are answered, who they may be, and that no run minds them."""
import atexit
import contextlib
import json
import os
import pathlib
import re
import socket
import stat
import subprocess
import sys

import pytest

import e2e
import frames
import metrics_text
import pcapfile
import processes
from processes import FOREVER, stop, wait_for

pytestmark = pytest.mark.sanitized

NAME = "dpdk/gdrcap/dpdk_telemetry.v2"
RUN = (*FOREVER, "--idle-sleep", "1000")


@contextlib.contextmanager
def base():
    """A folder that anybody may use, as /tmp is."""
    with processes.folder() as folder:
        os.chmod(folder, 0o1777)
        yield folder


def start(folder, *arguments, **options):
    options.setdefault("env", dict(os.environ, RUNTIME_DIRECTORY=str(folder)))
    process = e2e.start(*(arguments or RUN), "--json", "--telemetry", **options)
    atexit.register(process.kill)  # where a test fails
    return process


def path_of(process):
    """What the program says that it listens at."""
    for line in process.stderr:
        found = re.search(r"progress: telemetry: (.*)$", line)
        if found:
            return found[1]
    raise AssertionError("no path: %s" % e2e.finish(process, FOREVER))


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(e2e.TIMEOUT)
        self.socket.connect(path)

    def greet(self):
        return json.loads(self.socket.recv(1024))

    def ask(self, request):
        """The value; the answer has the command's name."""
        self.socket.send(request if isinstance(request, bytes) else request.encode())
        answer = json.loads(self.socket.recv(65536))
        assert len(answer) == 1, answer
        (self.name, value), = answer.items()
        return value

    def ended(self):
        """True when the other end has let go."""
        try:
            return self.socket.recv(65536) == b""
        except ConnectionError:
            return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def greeted(path):
    client = Client(path)
    client.greet()
    return client


def wait_running(process, client):
    """Until frames may come: a signal before is a run that did not begin."""
    wait_for(lambda: (client.ask("/gdrcap/metrics") or {}).get("gdrcap_running") == 1, process, "it does not run")


def prometheus(path):
    """NAME{LABELS} -> value of the textfile."""
    lines = [line for line in pathlib.Path(path).read_text().splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_counts():
    """As in the JSON and the metrics of the same run, with what was planted."""
    with base() as folder:
        pcap, prom = os.path.join(folder, "frames.pcap"), os.path.join(folder, "x.prom")
        pattern = frames.prbs31(100 * 300)
        sources = [frames.Stream(stream, pattern) for stream in (3, 9)]
        sent = [source.frame(100) for _ in range(300) for source in sources]
        del sent[100:104]
        sent[200] = sent[200][:90] + bytes([sent[200][90] ^ 1]) + sent[200][91:]
        os.mkfifo(pcap)
        process = start(folder, "capture", "--seconds", "0", "--port", "net_pcap0,rx_pcap=" + pcap,
                        "--metrics-textfile", prom)
        # A pipe that nobody closes: the run goes on after its last frame.
        with open(pcap, "wb") as pipe, greeted(path_of(process)) as client:
            pipe.write(pcapfile.pcap_bytes(sent))
            pipe.flush()
            wait_for(lambda: ((client.ask("/gdrcap/summary") or {}).get("frames") or {}).get("received") == len(sent),
                     process, "not all frames are counted")
            # The second that followed the last frame.
            summary, metrics = client.ask("/gdrcap/summary"), client.ask("/gdrcap/metrics")
            streams = {number: client.ask("/gdrcap/streams,%d" % number) for number in client.ask("/gdrcap/streams")}
            assert client.name == "/gdrcap/streams", client.name
            final = stop(process, expect=3).summary
        assert final["frames"]["received"] == len(sent) and final["frames"]["damaged"] == 1, final
        assert final["frames"]["lost"] == 4, final
        assert summary["result"] == "running" and "messages" not in summary, summary
        for key in ("schema", "version", "command", "run", "frames", "bits", "bytes", "filtered", "stale"):
            assert summary[key] == final[key], (key, summary[key], final[key])
        assert streams == {stream["stream"]: stream for stream in final["streams"]} and len(streams) == 2, streams
        after = prometheus(prom)
        for key in ("gdrcap_received_frames_total", 'gdrcap_frames_total{verdict="damaged"}', "gdrcap_streams",
                    "gdrcap_bits_wrong_total", "gdrcap_frames_in_flight_or_lost"):
            assert metrics[key] == after[key], (key, metrics[key], after[key])
        assert set(metrics) - set(after) == set(), set(metrics) - set(after)


def test_protocol():
    with base() as folder:
        process = start(folder)
        path = path_of(process)
        assert path == os.path.join(folder, NAME), path
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        for part in ("dpdk", "dpdk/gdrcap"):
            assert stat.S_IMODE(os.stat(os.path.join(folder, part)).st_mode) == 0o700, part
        with Client(path) as client:
            info = client.greet()
            assert info["pid"] == process.pid and info["max_output_len"] == 65536, info
            assert info["version"].startswith("gdrcap "), info
            assert client.ask("/info") == info
            commands = client.ask("/")
            assert commands == ["/", "/gdrcap/metrics", "/gdrcap/streams", "/gdrcap/summary", "/help", "/info"], commands
            for command in commands:
                assert client.ask("/help," + command)[command], command
            wait_running(process, client)
            told = metrics_text.documented()
            for name in client.ask("/gdrcap/metrics"):
                assert name.partition("{")[0] in told, name
            # What is no command, or has no such parameter.
            for request, name in (("x", "x"), (",", ""), ("/ethdev/list", "/ethdev/list"), ("/gdrcap/streams,-1", None),
                                  ("/gdrcap/streams,0x0", None), ("/help,nothing", "/help"), (b"/info\x00,,,", "/info"),
                                  (b'/\xff"\\\x01,', '/?"\\?'), ("/" + "x" * 54, "/" + "x" * 54), ("/" + "y" * 1022, "/" + "y" * 54),
                                  ("/" + "z" * 4000, "/" + "z" * 54), ("/help," + "z" * 4000, "/help")):
                value = client.ask(request)
                assert value == (info if name == "/info" else None), (request, value)
                assert client.name == name or name is None, (request, client.name)
        e2e.check_perfect(stop(process).summary)
        assert os.listdir(os.path.dirname(path)) == []


def test_bad_clients():
    """Silent ones, ones that do not read, more than there is room for: others are answered, and the run is perfect."""
    with base() as folder:
        process = start(folder)
        path = path_of(process)
        with contextlib.ExitStack() as stack:
            bad = [stack.enter_context(Client(path)) for _ in range(10)]
            deaf = stack.enter_context(Client(path))
            deaf.socket.settimeout(0)

            def let_go():
                with contextlib.suppress(BlockingIOError):
                    try:
                        deaf.socket.send(b"/gdrcap/metrics")
                    except ConnectionError:
                        return True
            wait_for(let_go, process, "who does not take its answers is kept")
            for number in range(40):
                client = stack.enter_context(Client(path))
                client.greet()
                assert client.ask("/info")["pid"] == process.pid, number
            # The silent have made room.
            for silent in bad:
                silent.greet()
                assert silent.ended()
            wait_running(process, client)
            # With 16 connected, one of them with a request under way.
            client.socket.send(b"/gdrcap/summary")
            summary = stop(process).summary
            assert client.ended() or client.ended()  # behind its answer, or without
        e2e.check_perfect(summary)
        assert os.listdir(os.path.dirname(path)) == []


def test_two_runs():
    """Each has its socket, and what a killed run left is replaced."""
    with base() as folder:
        os.makedirs(os.path.join(folder, "dpdk/gdrcap"), 0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stale:
            stale.bind(os.path.join(folder, NAME))
        runs = [start(folder), start(folder)]
        paths = [path_of(process) for process in runs]
        assert sorted(paths) == [os.path.join(folder, NAME), os.path.join(folder, NAME + ":1")], paths
        for process, path in zip(runs, paths):
            with greeted(path) as client:
                assert client.ask("/info")["pid"] == process.pid
                wait_running(process, client)
        for process in runs:
            stop(process)
        assert os.listdir(os.path.join(folder, "dpdk/gdrcap")) == []


def test_folder_refused():
    """Nothing runs where the socket cannot be, or might be another user's."""
    def refused(text, folder, **options):
        result = e2e.run("loopback", "--json", "--telemetry", expect=2, env=dict(os.environ, RUNTIME_DIRECTORY=folder), **options)
        assert "--telemetry: " in result.summary["errors"][0] and re.search(text, result.summary["errors"][0]), result

    with base() as folder:
        refused("none: No such file.*name a folder of your own in RUNTIME_DIRECTORY", folder + "/none:" + folder)
        os.chmod(folder, 0o777)
        refused("all may write", folder)
        os.chmod(folder, 0o1777)
        inner = pathlib.Path(folder) / "dpdk"
        inner.write_text("")
        refused("cannot be opened: Not a directory", folder)
        inner.unlink()
        inner.symlink_to(folder)
        refused("cannot be opened", folder)
        inner.unlink()
        inner.mkdir()
        inner.chmod(0o777)
        refused("all may write", folder)
        inner.chmod(0o700)
        (inner / "gdrcap/dpdk_telemetry.v2").mkdir(parents=True)
        refused("is no socket; remove it", folder)
        (inner / "gdrcap/dpdk_telemetry.v2").rmdir()
        long = pathlib.Path(folder) / ("x" * 80)
        long.mkdir()
        refused("107 characters", str(long))
        if os.geteuid() == 0:
            os.chown(inner / "gdrcap", 65534, 65534)
            refused("another user's", folder)


def test_ordinary_user():
    options = dict(processes.nobody())
    with base() as folder:
        options["env"] = dict(options["env"], XDG_RUNTIME_DIR=folder)
        options["env"].pop("RUNTIME_DIRECTORY", None)
        process = start(folder, **options)
        path = path_of(process)
        assert path == os.path.join(folder, NAME) and os.stat(path).st_uid == 65534, path
        with greeted(path) as client:
            wait_running(process, client)
        stop(process)
        assert os.listdir(os.path.dirname(path)) == []


def test_dpdk_tool():
    tools = sorted(e2e.ROOT.glob("subprojects/dpdk-*/usertools/dpdk-telemetry.py")) + [
        pathlib.Path(folder) / "dpdk-telemetry.py" for folder in os.environ.get("PATH", "").split(":")]
    tool = next((path for path in tools if path.exists()), None)
    if not tool:
        raise e2e.Skip("dpdk-telemetry.py is not here: it is in DPDK's source")
    with base() as folder:
        process = start(folder)
        path = path_of(process)
        with greeted(path) as client:
            wait_running(process, client)
        done = subprocess.run([sys.executable, str(tool), "-f", "gdrcap"], input="/info\n/gdrcap/summary\n/help,/info\n", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=e2e.TIMEOUT,
                              env=dict(os.environ, RUNTIME_DIRECTORY=folder))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [list(answer) for answer in answers] == [["/info"], ["/gdrcap/summary"], ["/help"]], done
        assert answers[1]["/gdrcap/summary"]["schema"] == "gdrcap.summary/1", done
        stop(process)
