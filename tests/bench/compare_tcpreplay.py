#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap replay and tcpreplay on the same veth pair with the same file, in one run: frames a
second each, as the kernel counts them on the interface. Numbers to read, not to pass or fail.

  GDRCAP=build/app/gdrcap python3 tests/bench/compare_tcpreplay.py [--frames N] [--sizes 64,1518]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import e2e  # noqa: E402
import custom_stream  # noqa: E402
import pcapfile  # noqa: E402
import processes  # noqa: E402


def counter(interface, name):
    """The interface's, in this process's network namespace: tx_packets and the like."""
    text = subprocess.run(["ip", "-s", "-j", "link", "show", interface], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    side, key = name.split("_")
    return json.loads(text)[0]["stats64"][side][key]


def measure(pair, command):
    """(frames that left, frames that arrived, seconds of the whole program)."""
    before = [counter(pair.left, "tx_packets"), counter(pair.right, "rx_packets")]
    started = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=600)
    seconds = time.monotonic() - started
    if done.returncode:
        raise SystemExit("%s: %s%s" % (" ".join(command), done.stdout, done.stderr))
    left = counter(pair.left, "tx_packets") - before[0]
    right = counter(pair.right, "rx_packets") - before[1]
    return left, right, seconds, done.stdout


def own_seconds(name, out):
    """What the program itself says of the time from its first frame to its last."""
    if name == "gdrcap":
        return json.loads(out)["sender"]["seconds"]
    for line in out.splitlines():
        # Actual: 100000 packets (...) sent in 0.42 seconds
        if line.startswith("Actual:"):
            return float(line.split(" sent in ")[1].split()[0])
    return None


def commands(pair, path, loops):
    yield "gdrcap", [e2e.PROGRAM, "replay", "--quiet", "--json", "--tx-port",
                     "net_af_packet0,iface=%s" % pair.left, "--pcap", path, "--loops", str(loops),
                     "--rate", "max", "--end", "never"]
    yield "tcpreplay", ["tcpreplay", "--topspeed", "--preload-pcap", "--loop=%d" % loops,
                        "--intf1=%s" % pair.left, path]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100000, help="in the file")
    parser.add_argument("--loops", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=custom_stream.numbers, default=[64, 594, 1518])
    options = parser.parse_args()
    try:
        processes.tool("tcpreplay")
        with e2e.VethPair() as pair, processes.folder() as directory:
            compare(options, pair, directory)
    except e2e.Skip as reason:
        print(reason)
        sys.exit(77)


def compare(options, pair, directory):
    print("%-6s %-10s %10s %10s %12s %14s  %s" % (
        "size", "sender", "left", "arrived", "seconds", "frames/s", "frames/s by its own clock"))
    for size in [*options.sizes, "mixed"]:
        sizes = ([size] * options.frames if size != "mixed" else
                 [64 + i * 37 % 1455 for i in range(options.frames)])
        frames = custom_stream.Sender().frames(sizes)
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), frames)
        for _ in range(options.rounds):
            for name, command in commands(pair, path, options.loops):
                left, right, seconds, out = measure(pair, command)
                own = own_seconds(name, out)
                print("%-6s %-10s %10d %10d %12.3f %14.0f  %s" % (
                    size, name, left, right, seconds, left / seconds,
                    "%.0f" % (left / own) if own else "unknown"), flush=True)


if __name__ == "__main__":
    main()
