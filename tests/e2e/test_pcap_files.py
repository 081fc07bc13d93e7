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
