# SPDX-License-Identifier: BSD-3-Clause
"""Files that cannot be used: a clear error each, for --pcap and for --expect, that names the file
and the cause; never a crash, a hang, or a run with something else than what is in the file."""
import os
import re
import struct

import pytest

import e2e
import pcapfile
import processes

pytestmark = pytest.mark.sanitized

FRAMES = [bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xB5]) + bytes([i]) * (50 + i)
          for i in range(10)]
PCAP = pcapfile.pcap_bytes(FRAMES)
PCAPNG = pcapfile.pcapng_bytes(FRAMES)
MISSING = "/nonexistent/file.pcap"
TIME = pcapfile.START_NS
COMMANDS = (("replay", "--tx-port", "net_null0", "--rate", "max", "--pcap"),
            ("capture", "--port", "net_null0", "--expect"))


def refused(name, data, *causes):
    """Both commands refuse the file; one of the words of each cause is in what they say."""
    with processes.folder() as directory:
        path = os.path.join(directory, name)
        if data is not None:
            pcapfile.write(path, data)
        check_refused(path, causes)


def check_refused(path, causes):
    for command in COMMANDS:
        result = e2e.run(*command, path, expect=None)
        assert result.status in (1, 2), "not refused: %s" % result
        assert os.path.basename(path) in result.err, "the file is not named: %s" % result
        for cause in causes:
            assert re.search(cause, result.err, re.I), "nothing about '%s': %s" % (cause, result)
        assert result.out == "", "an error belongs on standard error: %s" % result
        assert len(result.err) < 3000, "%d bytes of error text" % len(result.err)
    # A script that asked for JSON gets it there.
    summary = e2e.run_json(*COMMANDS[0], path, "--quiet", expect=result.status)
    assert os.path.basename(path) in " ".join(summary["errors"]), summary["errors"]


def test_our_writer_against_wireshark():
    """What this test believes about the formats, another tool believes too."""
    with processes.folder() as directory:
        for name, data in (("a.pcap", PCAP), ("b.pcapng", PCAPNG),
                           ("c.pcap", pcapfile.pcap_bytes(FRAMES, order=">", nano=False)),
                           ("d.pcapng", pcapfile.pcapng_bytes(FRAMES, order=">"))):
            path = pcapfile.write(os.path.join(directory, name), data)
            text = processes.output("tshark", "-r", path, "-T", "fields", "-e", "frame.len", "-e",
                                    "frame.time_epoch", "-e", "eth.type")
            # What is below a microsecond is not in all of them, and no multiple is.
            assert text.splitlines() == ["%d\t%d.%09d\t0x88b5" % (
                len(frame), TIME // 10**9, i * 1000) for i, frame in enumerate(FRAMES)], text
            got = [frame.data for frame in pcapfile.read(path)]
            assert pcapfile.differ(got, FRAMES) is None, pcapfile.differ(got, FRAMES)


def test_good_ones():
    """The files from which the bad ones are made are taken."""
    with processes.folder() as directory:
        for name, data in (("a.pcap", PCAP), ("b.pcapng", PCAPNG),
                           ("c.pcap", pcapfile.pcap_bytes(FRAMES, order=">", nano=False)),
                           ("d.pcapng", pcapfile.pcapng_bytes(FRAMES, order=">"))):
            path = pcapfile.write(os.path.join(directory, name), data)
            summary = processes.run_json("replay", "--tx-port", "net_null0", "--quiet", "--pcap",
                                         path)
            processes.check_sender(summary, len(FRAMES))
            assert summary["sender"]["bytes"] == sum(map(len, FRAMES)), summary["sender"]


def test_not_there():
    refused("missing.pcap", None, "no such file")


def test_not_a_file():
    with processes.folder() as directory:
        path = os.path.join(directory, "folder.pcap")
        os.mkdir(path)
        check_refused(path, [])
    check_refused("/dev/zero", [])


def test_not_readable():
    with processes.folder() as directory:
        path = pcapfile.write(os.path.join(directory, "secret.pcap"), PCAP)
        os.chmod(path, 0)
        for command in COMMANDS:
            result = e2e.run(*command, path, "--quiet", expect=None, **processes.nobody())
            assert result.status in (1, 2) and "secret.pcap" in result.err, result
            assert re.search("permission", result.err, re.I), result


def test_empty():
    refused("empty.pcap", b"", "empty|no frame|truncated|too short")
    refused("header.pcap", pcapfile.pcap_header(), "no frame|empty")
    refused("section.pcapng", pcapfile.section(), "no frame|empty|no interface|interface")
    refused("interface.pcapng", pcapfile.section() + pcapfile.interface(), "no frame|empty")


def test_truncated():
    """At each place where a writer that died may have left it."""
    for length in (3, 10, 23):
        refused("cut%d.pcap" % length, PCAP[:length], "truncat|too short|incomplete|unknown|format")
    for length in (30, 24 + 16 + 20, len(PCAP) - 1):
        refused("cut%d.pcap" % length, PCAP[:length], "truncat|incomplete|ends|short")
    for length in (5, 20, 40, len(PCAPNG) - 1, len(PCAPNG) - 40):
        refused("cut%d.pcapng" % length, PCAPNG[:length], "truncat|incomplete|ends|short|format")


def test_corrupt():
    refused("text.pcap", b"this is no capture file, but a text\n" * 100, "format|unknown|not a")
    refused("zeros.pcap", bytes(10000), "format|unknown|not a")
    # Blocks whose lengths disagree, are no multiple of four, or less than a block.
    good = pcapfile.section() + pcapfile.interface()
    for name, lengths in (("tail", {"tail": 44}), ("odd", {"total": 83}), ("small", {"total": 8})):
        refused("%s.pcapng" % name, good + pcapfile.enhanced(FRAMES[0], TIME, **lengths) +
                pcapfile.enhanced(FRAMES[1], TIME))
    refused("nobody.pcapng", good + pcapfile.enhanced(FRAMES[0], TIME, number=7), "interface")
    refused("runs-out.pcapng", good + pcapfile.enhanced(FRAMES[0], TIME, length=1000,
                                                        original=1000))


def test_lengths_of_gigabytes():
    """A length field of 4 GiB, or nearly: refused at once, without the memory."""
    head = pcapfile.pcap_header()
    for length in (0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x10000000):
        refused("long%x.pcap" % length, head + pcapfile.pcap_record(FRAMES[0], TIME) +
                pcapfile.pcap_record(FRAMES[1], TIME, length=length, original=length))
        refused("snap%x.pcap" % length, pcapfile.pcap_header(snap=0xFFFFFFFF) +
                pcapfile.pcap_record(FRAMES[1], TIME, length=length, original=length))
    good = pcapfile.section() + pcapfile.interface()
    body = struct.pack("<IIIII", 0, 0, 0, 0xFFFFFFFC, 0xFFFFFFFC) + FRAMES[0]
    refused("long.pcapng", good + pcapfile.block(pcapfile.ENHANCED, body, total=0xFFFFFFFC))
    refused("inside.pcapng", good + pcapfile.block(pcapfile.ENHANCED, body))


def test_frames_that_no_port_takes():
    head = pcapfile.pcap_header()
    for length in (0, 1, 13):
        refused("short%d.pcap" % length, head + pcapfile.pcap_record(FRAMES[0], TIME) +
                pcapfile.pcap_record(bytes(length), TIME), r"frame 2|second|2\b", str(length))
    refused("jumbo.pcap", head + pcapfile.pcap_record(bytes(9213), TIME), "9,?213")
    # Cut by whoever captured it: what was on the wire is not known.
    refused("snapped.pcap", head + pcapfile.pcap_record(FRAMES[0], TIME, original=1514),
            "cut|truncat|snap|1,?514|whole")


def test_wrong_link_types():
    for link, name in ((101, "raw"), (113, "cooked|sll"), (105, "802.?11"), (0, "null|loopback"),
                       (64000, "64000|link|ethernet")):
        refused("link%d.pcap" % link, pcapfile.pcap_bytes(FRAMES, link=link), "ethernet", name +
                "|%d" % link)
        refused("link%d.pcapng" % link, pcapfile.pcapng_bytes(FRAMES, link=link), "ethernet", name +
                "|%d" % link)
    second = (PCAPNG + pcapfile.interface(link=101) +
              pcapfile.enhanced(FRAMES[0], TIME, number=1))
    refused("second.pcapng", second)


def test_garbage_after_good_frames():
    """What is whole before must not hide what follows."""
    refused("tail.pcap", PCAP + b"\xff" * 100)
    refused("tail.pcapng", PCAPNG + b"\xff" * 100)


def test_options_that_need_a_file():
    for arguments, word in ((("--speed", "2x"), "speed"),
                            (("--pcap", MISSING, "--speed", "2x", "--rate", "1mbit"), "rate")):
        result = e2e.run("replay", "--tx-port", "net_null0", *arguments, expect=2)
        assert word in result.err, result
    for option, values in (("--speed", ("0", "-1", "nan", "fast", "2y", "1e9")),
                           ("--rate", ("0", "-1mbit", "1", "1furlong", "nanmbit")),
                           ("--loops", ("0", "-1", "often", str(2**32)))):
        for value in values:
            result = e2e.run("replay", "--tx-port", "net_null0", "--pcap", MISSING, option,
                             value, expect=2)
            assert option.strip("-") in result.err, result
