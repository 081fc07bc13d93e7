# SPDX-License-Identifier: BSD-3-Clause
"""The command line: what it refuses and how it says so, signals, and the shapes of the result."""
import atexit
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

import e2e

FOREVER = ("loopback", "--frames", str(2**64 - 1))


def refused(*arguments, texts, status=2, **options):
    """Refused with the status; each text is in what it says, and nothing was promised on stdout."""
    result = e2e.run(*arguments, expect=status, **options)
    for text in texts:
        assert text in result.err, "'%s' is not in standard error: %s" % (text, result)
    assert result.out == "", "an error belongs on standard error: %s" % result
    # A script that asked for JSON gets the failure as JSON.
    summary = e2e.run_json(*arguments, expect=status, **options)
    assert summary["result"] == "fail" and summary["frames"] is None, summary
    return result


def config(text, name="test.yaml"):
    directory = tempfile.mkdtemp(prefix="gdrcap-e2e-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = os.path.join(directory, name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def test_help():
    result = e2e.run("--help")
    assert "loopback" in result.out and "capture" in result.out, result
    for command in ("loopback", "capture"):
        result = e2e.run(command, "--help")
        for word in ("--port", "--frame-size", "--json", "--json-lines", "--quiet", "--config",
                     "gdrcap %s" % command):
            assert word in result.out, "%s: %s" % (word, result)
        assert result.err == "", result
    assert "--tx-port" not in e2e.run("capture", "--help").out
    # What is about frames received.
    for flag in ("--split", "--stale-check", "--clock", "--flush"):
        assert flag in e2e.run("capture", "--help").out, flag
        assert flag in e2e.run("loopback", "--help").out, flag
        assert flag not in e2e.run("replay", "--help").out, flag


def test_version():
    result = e2e.run("--version")
    assert re.search(r"\d+\.\d+\.\d+", result.out) and len(result.out.splitlines()) == 1, result


def test_usage():
    result = e2e.run(expect=2)
    assert "Usage: gdrcap" in result.err and result.out == "", result
    assert "Did you mean 'loopback'?" in e2e.run("lopback", expect=2).err
    assert "Did you mean 'capture'?" in e2e.run("captur", expect=2).err
    assert "Did you mean" not in e2e.run("x" * 3000, expect=2).err
    refused("loopback", "--frame-sizes", "64", texts=["--frame-sizes", "--frame-size"])
    refused("loopback", "stray", texts=["stray"])
    refused("loopback", "--frames", texts=["--frames"])
    # Ports that are no ConnectX, as the words alone say.
    refused("loopback", "--split", "64", texts=["split: port ring:wire"])
    refused("loopback", "--clock", "card", "--save", os.devnull, texts=["clock: port ring:wire"])
    result = e2e.run("loopback", "--json", "--json-lines", "1", expect=2)
    assert json.loads(result.out)["result"] == "fail", result


def test_values_out_of_range():
    for option, value in (("frame-size", "0"), ("frame-size", "63"), ("frame-size", "9217"),
                          ("frame-size", "64-"), ("frame-size", "1518-64"),
                          ("frame-size", str(2**64)), ("frames", str(2**64)), ("frames", "-1"),
                          ("frames", "1e30"), ("pool", "0x"), ("pool", str(2**64)), ("pool", "1"),
                          ("queues", "0"), ("queues", "17"), ("queues", "1.5"), ("burst", "257"),
                          ("burst", ""), ("slot-bytes", "1000"), ("seconds", "-1"),
                          ("seconds", "nan"), ("seconds", "inf"), ("streams", "1025"),
                          ("pattern", "prbs8"), ("vlan", "4095"), ("cores", "0-"),
                          ("cores", "0,0"), ("gpu", "fast"), ("memory", "disk"),
                          ("src-mac", "01:00:00:00:00:00"), ("port", ""), ("port", "x" * 256),
                          ("format", "tcp"), ("ethertype", "0x5ff")):
        result = refused("loopback", "--%s" % option, value, texts=[])
        # Named as it was written, or by its key where it clashes with another option.
        assert option in result.err.replace("_", "-"), result
    for value in ("0", "-1", "1e9", "nan", ""):
        result = e2e.run("loopback", "--json-lines", value, expect=2)
        assert "--json-lines" in result.err, result
        e2e.check_summary(result.summary, result)


def test_ports():
    refused("capture", texts=["port: none is given"])
    refused("loopback", "--port", "net_null0", texts=["tx_port"])
    refused("capture", "--port", "ring:x", texts=["ring:x", "gdrcap loopback"])
    refused("replay", "--tx-port", "ring:x", texts=["ring:x", "gdrcap loopback"])
    refused("loopback", "--tx-port", "ring:a", texts=["port"])
    refused("capture", "--config", config("port: ring:x\ntx_port: ring:x\n"), texts=["tx_port"])


def test_sender_of_programs():
    for sender in ("host", "gpu"):
        with e2e.Folder() as folder:
            path = os.path.join(folder, "sender.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("sender: %s\nport: ring:x\ntx_port: ring:x\ngpu: host\n" % sender)
            result = e2e.run("loopback", "--config", path, expect=2)
            assert "leave sender out" in result.err, result


def test_config_errors_name_the_line():
    refused("loopback", "--config", "/nonexistent/x.yaml", texts=["/nonexistent/x.yaml"])
    path = config("port: ring:x\ntx_port: ring:x\nframe:\n  sice: 64\n")
    refused("loopback", "--config", path, texts=["test.yaml", "4", "sice"])
    path = config("port: ring:x\ntx_port: ring:x\nqueues: many\n")
    refused("loopback", "--config", path, texts=["test.yaml", "3", "queues"])
    path = config("port: ring:x\nqueues: [1\n")
    refused("loopback", "--config", path, texts=["test.yaml"])
    summary = e2e.run_json("loopback", "--config", path, expect=2)
    assert "test.yaml" in summary["errors"][0], summary["errors"]
    summary = e2e.run_json("loopback", "--framse", "4", expect=2)
    assert "--framse" in summary["errors"][0], summary["errors"]


def test_hostile_configs():
    for text in (b"\0" * 100, os.urandom(4096), b"\xff\xfe" + os.urandom(4096), b"",
                 b"a: &a [*a, *a]\n", b"[" * 100000, b"- " * 50000, b"port: " + b"x" * 1000000,
                 b"%" * 10000, b"a: 1\n" * 1000):
        result = e2e.run("capture", "--config", config(text), expect=2)
        assert result.err.strip(), result
        assert len(result.err) < 4000, "%d bytes of error text" % len(result.err)
    large = config(b"# comment\n" * 1000000 + b"queues: none\n")  # 10 MB
    assert e2e.run("capture", "--config", large, expect=2).err.strip()
    os.unlink(large)
    refused("capture", "--config", "/dev/zero", texts=["/dev/zero"])
    refused("capture", "--config", "/", texts=["/"])


def test_config_works():
    path = config("port: ring:x\ntx_port: ring:x\nframe:\n  size: 64-128\nframes: 2000\n")
    summary = e2e.run_json("loopback", "--config", path)
    e2e.check_perfect(summary, 2000)
    assert summary["frame_size"] == "64-128", summary
    summary = e2e.run_json("loopback", "--config", path, "--frames", "1000")
    e2e.check_perfect(summary, 1000)


def test_cannot_run():
    refused("loopback", "--gpu", "250", "--frames", "10", status=1, texts=["250"])
    refused("capture", "--port", "net_af_packet0,iface=nosuch0", status=1, texts=["nosuch0"])
    refused("capture", "--port", "0000:ff:1f.7", status=1, texts=["0000:ff:1f.7"])
    refused("capture", "--port", "net_nosuchdriver0", status=1, texts=["net_nosuchdriver0"])
    refused("capture", "--port", "net_pcap0,rx_pcap=/nonexistent.pcap", status=1,
            texts=["/nonexistent.pcap"])
    refused("loopback", "--cores", "8191", "--frames", "10", status=1, texts=["8191"])


def test_impossible_memory():
    """The text names the port and what it can."""
    result = refused("capture", "--port", "net_af_packet0,iface=lo", "--memory", "device",
                     "--gpu", "host", "--guard", status=2, texts=["net_af_packet", "memory"])
    assert "host" in result.err or "pinned" in result.err, result


def test_interrupt():
    """Ctrl-C in the middle: ends soon, in order, every frame accounted for."""
    for number in (signal.SIGINT, signal.SIGTERM):
        process = e2e.start(*FOREVER, "--json")
        e2e.interrupt_when_running(process, r"Mpps", number)
        result = e2e.finish(process, FOREVER)
        assert result.status == 0, result
        summary = result.summary
        e2e.check_summary(summary, result)
        e2e.check_perfect(summary)


def test_interrupt_at_any_time():
    """Also while the ports and the memory are set up: never a crash, always an object."""
    for step in e2e.some(range(20), *range(0, 20, 2)):
        process = e2e.start(*FOREVER, "--json", "--quiet")
        try:
            process.wait(timeout=step * 0.05)
        except subprocess.TimeoutExpired:
            pass
        process.send_signal(signal.SIGINT)
        result = e2e.finish(process, FOREVER)
        # Before the handler is there, the signal ends the program as it ends any other.
        if result.status == -signal.SIGINT:
            continue
        assert result.status in (0, 1, 3), result
        e2e.check_summary(result.summary, result)
        if result.status == 0:
            e2e.check_perfect(result.summary)


def test_signal_pair():
    """timeout(1) signals the program and then its group: that is one wish to end, not two."""
    arguments = ("30", e2e.PROGRAM, *FOREVER, "--json")
    process = subprocess.Popen(["timeout", *arguments], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    e2e.interrupt_when_running(process, r"Mpps", signal.SIGTERM)
    result = e2e.finish(process, arguments)
    e2e.check_summary(result.summary, result)
    e2e.check_perfect(result.summary)


def test_second_interrupt():
    """A reader that no longer reads holds the program; a second Ctrl-C ends it at once."""
    process = e2e.start(*FOREVER, "--quiet", "--json-lines", "0.1", "--streams", "1024",
                        "--frame-size", "64")
    # Once the pipe has a line, which is more than half of it, the program cannot end in order: its last
    # finds no room. Of a longer line the kernel adds only what is over whole pages, and not always to the brim.
    capacity = fcntl.fcntl(process.stdout, 1031, 4096)  # F_SETPIPE_SZ
    waiting = bytearray(4)
    for _ in range(int(e2e.TIMEOUT * 100)):
        fcntl.ioctl(process.stdout, termios.FIONREAD, waiting)
        if int.from_bytes(waiting, sys.byteorder) > capacity // 2:
            break
        time.sleep(0.01)
    else:
        process.kill()
        raise AssertionError("the pipe did not fill: %s" % e2e.finish(process, FOREVER))
    for _ in range(int(e2e.TIMEOUT * 10)):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            pass
    result = e2e.finish(process, FOREVER)
    assert result.status == 128 + signal.SIGINT, result
    assert "counts of this run are lost" in result.err, result


def test_seconds():
    summary = e2e.run_json("loopback", "--seconds", "1.5")
    e2e.check_perfect(summary)
    assert 0 < summary["seconds"] < 60, summary["seconds"]


def test_json_lines():
    result = e2e.run("loopback", "--seconds", "2", "--json-lines", "0.5", "--quiet")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert len(lines) >= 2, result
    for line in lines[:-1]:
        assert line["result"] == "running", line
    assert lines[-1]["result"] == "pass", lines[-1]
    for line in lines:
        e2e.check_summary(line)
    for before, after in zip(lines, lines[1:]):
        for key in ("sent", "received", "valid"):
            assert before["frames"][key] <= after["frames"][key], (key, before, after)
    e2e.check_perfect(lines[-1])
    assert result.err == "", result


def test_quiet():
    result = e2e.run("loopback", "--quiet", "--frames", "2000")
    assert result.out == "PASS: 2,000 frames sent, every one valid\n", result
    assert result.err == "", result


def test_table():
    result = e2e.run("loopback", "--frames", "12345", "--queues", "2", "--streams", "20")
    assert result.out.splitlines()[-1] == "PASS: 12,345 frames sent, every one valid", result
    for pattern in (r"^  sent +12,345  frames$", r"^  valid +12,345  frames$",
                    r"^  damaged +0  frames$", r"bit error ratio +< \d", r"^  queue ",
                    r"^  stream ", r"and 4 more", r"^  memory +\S", r"passed",
                    r"ring:wire -> ring:wire"):
        assert re.search(pattern, result.out, re.M), "%s: %s" % (pattern, result)
    assert "\033" not in result.out and "\r" not in result.out, "colour without a terminal"


COMPLETED = """
source "$SCRIPT"
COMP_WORDS=("$GDRCAP" "$@")
COMP_CWORD=$#
_gdrcap
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words, cwd=None):
    """What bash offers for the last of the words after "gdrcap"."""
    script = e2e.ROOT / "app" / "completion" / "gdrcap"
    result = subprocess.run(["bash", "-c", COMPLETED, "bash", *words], cwd=cwd, text=True,
                            capture_output=True, check=True,
                            env=dict(os.environ, GDRCAP=e2e.PROGRAM, SCRIPT=str(script)))
    # compopt has no completion to change here, and says so where it is let.
    assert result.stderr == "", result.stderr
    return set(filter(None, result.stdout.split("\n")))


def test_completion():
    """In bash: commands, options as --help has them, words that are values, files."""
    assert completed("") >= {"loopback", "capture", "replay", "doctor", "bench", "merge", "--help"}
    assert completed("c") == {"capture"}
    for command in ("loopback", "capture", "replay", "doctor", "bench"):
        help_text = e2e.run(command, "--help").out
        shown = set()
        for negatable, flag in re.findall(r"^  --(\[no-\])?([a-z-]+)", help_text, re.M):
            shown |= {"--" + flag, "--no-" + flag} if negatable else {"--" + flag}
        assert len(shown) > 5 and completed(command, "--") == shown, (command, shown)
    assert completed("report", "--") == {"--output", "--title", "--text", "--plot", "--help"}
    assert completed("capture", "--queues", "2", "--que") == {"--queues"}
    assert completed("replay", "--spl") == set()
    assert completed("capture", "--memory", "") == {"auto", "device", "pinned", "host"}
    assert completed("capture", "--memory", "=", "p") == {"pinned"}
    assert completed("capture", "--memory", "=") == {"auto", "device", "pinned", "host"}
    assert completed("loopback", "--pattern", "prbs1") == {"prbs11", "prbs15"}
    assert completed("loopback", "--queues", "") == set()
    # After a switch, the next option.
    assert "--memory" in completed("loopback", "--guard", "")
    path = config("port: ring:a\n", name="wire one.yaml")
    folder = os.path.dirname(path)
    assert completed("capture", "--config", "wi", cwd=folder) == {"wire one.yaml"}
    assert completed("doctor", "--write-config", "wi", cwd=folder) == {"wire one.yaml"}
    assert completed("report", "wi", cwd=folder) == completed("report", "one.yaml", "--output", "wi", cwd=folder) == {"wire one.yaml"}
    assert completed("capture", "--port", "wi", cwd=folder) == set()
    # Files are what merge is given.
    assert completed("merge", "wi", cwd=folder) == {"wire one.yaml"}
    assert completed("merge", "a.json", "wi", cwd=folder) == {"wire one.yaml"}
    assert completed("merge", "--") == {"--json", "--help"}


def test_reader_gone():
    """`gdrcap ... | head -1`: ends by itself, with a status that says so."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = e2e.start(*FOREVER, stdout=write_end)
    os.close(write_end)
    result = e2e.finish(process, FOREVER)
    assert result.status == 1, result
    with open("/dev/full", "w") as full:
        process = e2e.start("loopback", "--frames", "100", "--json", stdout=full)
        assert e2e.finish(process).status == 1


def test_started_without_descriptors():
    """What is printed goes into no file or socket that took the number of one that was closed."""
    for closed, status in (("<&- >&-", 1), (">&-", 1), ("<&-", 0), ("<&- 2>&-", 0), ("<&- >&- 2>&-", 1)):
        done = subprocess.run(["sh", "-c", '"$@" ' + closed, "sh", e2e.PROGRAM, "loopback", "--frames", "100", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == status, (closed, done)
        if ">&-" not in closed.replace("2>&-", ""):
            e2e.check_perfect(json.loads(done.stdout), 100)


def test_several_at_once():
    """Processes of one machine do not clash."""
    processes = [e2e.start("loopback", "--frames", "5000", "--json", "--quiet") for _ in range(3)]
    for process in processes:
        result = e2e.finish(process)
        assert result.status == 0, result
        e2e.check_perfect(result.summary, 5000)
