# SPDX-License-Identifier: BSD-3-Clause
"""examples/raw-c and examples/two_gpus.c."""
import os
import re
import subprocess

import e2e
import processes
import test_images as images


def run(variable, *arguments, expect=0):
    """The program that the variable names: its two outputs."""
    if not os.environ.get(variable):
        raise e2e.Skip(variable + " is not set")
    done = subprocess.run([os.environ[variable], *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=e2e.TIMEOUT)
    assert done.returncode == expect, done
    return done.stdout, done.stderr


def test_raw():
    """By EtherType, those of a file that holds three of them, and one frame without one."""
    frames = [bytes(12) + kind + bytes(size) for kind, size in (
        (b"\x08\0", 50), (b"\x88\xb5", 60), (b"\x08\0", 1400), (b"\x86\xdd", 100))] * 100
    with processes.folder() as folder:
        path = images.write_pcap(folder, "in.pcap", frames + [bytes(12)])
        out, _ = run("RAW_EXAMPLE", "port=net_pcap0,rx_pcap=" + path, "frames=401")
    assert out.splitlines() == ["0x0800: 200 frames, %d bytes" % (100 * (64 + 1414)),
                                "0x86dd: 100 frames, 11400 bytes", "0x88b5: 100 frames, 7400 bytes"], out


def test_raw_of_its_own():
    out, _ = run("RAW_EXAMPLE", "port=ring:raw", "tx_port=ring:raw", "frames=20000", "frame.size=100")
    assert out.splitlines()[0] == "0x88b5: 20000 frames, %d bytes" % (20000 * 96), out


def test_raw_wrong():
    _, err = run("RAW_EXAMPLE", "prot=ring:raw", expect=1)
    assert "did you mean 'port'" in err, err
    _, err = run("RAW_EXAMPLE", expect=1)
    assert err.startswith("raw: ") and "port" in err, err


def test_two_sessions():
    """On the CPU twice: each alone and both at once have every frame right, on CPUs of their own where
    there are enough."""
    out, _ = run("TWO_GPUS", "200k", "host", "host")
    lines = re.findall(r"^(\w+) +host +([\d.]+) Mpps, (\d+) frames, 0 lost, 0 damaged: (.*) on (\d+) CPUs",
                       out, re.M)
    assert [line[0] for line in lines] == ["alone", "alone", "together", "together"], out
    assert all(int(frames) >= 200000 for _, _, frames, _, _ in lines) and "at once" in out, out
    _, err = run("TWO_GPUS", "1000", "host", "host@100000", expect=1)
    assert "cores" in err, err
