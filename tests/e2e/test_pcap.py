# SPDX-License-Identifier: BSD-3-Clause
"""Capture of a pcap file with planted faults: each is found, counted once and named.

The frames come from an independent implementation (frames.py), so this also says that an FPGA
engineer who follows docs/frame-format.md is understood.
"""
import os
import struct

import pytest

import e2e
import frames

pytestmark = pytest.mark.sanitized

SIZES = (64, 65, 512, 777, 1024, 1518)
PAYLOAD = frames.ETHERNET_BYTES + frames.HEADER_BYTES
ARP = b"\xff" * 6 + frames.SOURCE + b"\x08\x06" + bytes(46)
IPV6 = b"\x33\x33\0\0\0\x01" + frames.SOURCE + b"\x86\xdd" + bytes(62)


def capture(sent, *arguments, expect):
    with e2e.Folder() as directory:
        path = os.path.join(directory, "frames.pcap")
        frames.write_pcap(path, sent)
        # The file has an end, a port has none: the number of frames in it ends the run.
        return e2e.run_json("capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s" % path,
                            "--frames", str(len(sent)), "--seconds", "30", *arguments,
                            expect=expect)


def frames_of(pattern, count, stream=0):
    source = frames.Stream(stream, pattern)
    return [source.frame(SIZES[i % len(SIZES)]) for i in range(count)]


def flipped(frame, offset, mask):
    return frame[:offset] + bytes([frame[offset] ^ mask]) + frame[offset + 1:]


PATTERN = frames.prbs31(sum(SIZES) * 60)


def check_counts(summary, **expected):
    actual = {key: summary["filtered"] if key == "filtered" else summary["frames"][key]
              for key in expected}
    assert actual == expected, "counted %s, planted %s: %s" % (actual, expected, summary)
    e2e.check_identities(summary)


def test_clean():
    summary = capture(frames_of(PATTERN, 300), expect=0)
    check_counts(summary, sent=300, received=300, valid=300, damaged=0, lost=0, duplicate=0,
                 reordered=0, filtered=0)
    bits = sum(8 * (SIZES[i % len(SIZES)] - 4 - PAYLOAD) for i in range(300))
    assert summary["bits"] == {"checked": bits, "wrong": 0, "ratio": 0.0}, summary["bits"]
    assert summary["lost_by"]["unexplained"] == 0


def test_custom_frames_never_fail():
    sent = []
    for frame in frames_of(PATTERN, 60):
        sent += [frame, ARP, IPV6]
    check_counts(capture(sent, expect=0), sent=60, received=180, valid=60, damaged=0, lost=0,
                 duplicate=0, reordered=0, filtered=120)


def test_two_streams_that_begin_anywhere():
    first, second = frames_of(PATTERN, 100, stream=3), frames_of(PATTERN, 100, stream=65535)[40:]
    mixed = [frame for pair in zip(first, second) for frame in pair] + first[len(second):]
    summary = capture(mixed, expect=0)
    check_counts(summary, sent=160, received=160, valid=160, lost=0, reordered=0)
    assert [stream["stream"] for stream in summary["streams"]] == [3, 65535], summary["streams"]
    assert [stream["frames"]["sent"] for stream in summary["streams"]] == [100, 60]


def test_one_wrong_bit():
    """Each byte of a payload, at its ends and within: the frame, the offset and the byte."""
    for offset in (PAYLOAD, PAYLOAD + 1, PAYLOAD + 63, PAYLOAD + 64, 300, 507):
        sent = frames_of(PATTERN, 12)
        good = sent[8][offset]
        sent[8] = flipped(sent[8], offset, 0x10)
        summary = capture(sent, expect=3)
        check_counts(summary, sent=12, received=12, valid=11, damaged=1, lost=0, duplicate=0)
        assert summary["bits"]["wrong"] == 1, summary["bits"]
        assert summary["damage"] == [{
            "kind": "payload", "sequence": 8, "stream": 0, "queue": 0, "wrong_bits": 1,
            "offset": offset, "expected": good, "got": good ^ 0x10}], summary["damage"]


def test_loss():
    sent = frames_of(PATTERN, 100)
    del sent[50], sent[20:23]
    check_counts(capture(sent, expect=3), sent=100, received=96, valid=96, damaged=0, lost=4,
                 duplicate=0, reordered=0)


def test_duplicate():
    sent = frames_of(PATTERN, 100)
    sent.insert(40, sent[30])
    check_counts(capture(sent, expect=3), sent=100, received=101, valid=100, damaged=0, lost=0,
                 duplicate=1)


def test_swap():
    sent = frames_of(PATTERN, 100)
    sent[40], sent[41] = sent[41], sent[40]
    check_counts(capture(sent, expect=3), sent=100, received=100, valid=100, damaged=0, lost=0,
                 duplicate=0, reordered=1)


def test_bad_headers():
    """Wrong magic, wrong CRC, too long a claim, truncated, another pattern: damaged, not lost."""
    source = frames.Stream(0, PATTERN)
    sent = []
    for i in range(100):
        size = SIZES[i % len(SIZES)]
        if i == 10:
            sent.append(source.frame(size, magic=0x6744))
        elif i == 20:
            sent.append(source.frame(size, crc_flip=1))
        elif i == 30:
            sent.append(source.frame(size, claim=1))
        elif i == 40:
            sent.append(source.frame(size, claim=0xFFFF - (size - 4 - PAYLOAD)))
        elif i == 50:
            sent.append(source.frame(size)[:frames.ETHERNET_BYTES + 20])
        else:
            sent.append(source.frame(size))
    summary = capture(sent, expect=3)
    check_counts(summary, sent=100, received=100, valid=95, damaged=5, lost=0, duplicate=0,
                 filtered=0)
    named = [(damage["kind"], damage["sequence"]) for damage in summary["damage"]]
    assert named == [("header", None), ("header", None), ("length", 30), ("length", 40),
                     ("length", None)], named


def test_truncated_to_anything():
    """One frame cut to each length: never a crash, always accounted for."""
    whole = frames_of(PATTERN, 2)
    sent = [whole[0]] + [whole[1][:length] for length in range(1, len(whole[1]))]
    summary = capture(sent, expect=3)
    e2e.check_identities(summary)
    assert summary["frames"]["received"] == len(sent), summary["frames"]
    # Too short for an EtherType and an own header's place: nobody can say whose it was.
    assert summary["filtered"] == frames.ETHERNET_BYTES - 1, summary["filtered"]


def test_everything_at_once():
    sent = frames_of(PATTERN, 300)
    good = sent[10][PAYLOAD + 3]
    sent[10] = flipped(sent[10], PAYLOAD + 3, 0x01)
    sent[50] = flipped(sent[50], frames.ETHERNET_BYTES + 32, 0x80)  # its CRC32C
    sent[40], sent[41] = sent[41], sent[40]
    repeated = sent[30]
    del sent[20]
    sent.insert(60, repeated)
    sent.insert(70, ARP)
    summary = capture(sent, expect=3)
    check_counts(summary, sent=300, received=301, valid=297, damaged=2, lost=1, duplicate=1,
                 filtered=1)
    first = summary["damage"][0]
    assert (first["sequence"], first["offset"], first["expected"], first["got"]) == (
        10, PAYLOAD + 3, good, good ^ 1), first
    assert summary["damage"][1]["kind"] == "header", summary["damage"]


def test_hostile_sequence_numbers():
    """Headers with a right CRC and mad numbers: counted in bounded time and memory."""
    sent = []
    for sequence in (0, 2**64 - 1, 2**63, 1, 2**32, 2**64 - 2, 5):
        header = frames.own_header(1, sequence, 2**64 - 5, 32)
        sent.append(frames.DESTINATION + frames.SOURCE + struct.pack(">H", frames.ETHERTYPE) +
                    header + bytes(32))
    for stream in range(3000):
        header = frames.own_header(stream * 21 % 65536, 7, 0, 10)
        sent.append(frames.DESTINATION + frames.SOURCE + struct.pack(">H", frames.ETHERTYPE) +
                    header + PATTERN[:10])
    summary = capture(sent, expect=None)
    assert summary["frames"]["received"] == len(sent), summary["frames"]
    assert len(summary["streams"]) <= 1024


def test_empty_file():
    with e2e.Folder() as directory:
        path = os.path.join(directory, "empty.pcap")
        frames.write_pcap(path, [])
        summary = e2e.run_json("capture", "--port", "net_pcap0,rx_pcap=%s" % path, "--seconds",
                               "1", expect=3)
        assert summary["frames"]["received"] == 0, summary
