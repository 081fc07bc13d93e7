# SPDX-License-Identifier: BSD-3-Clause
"""capture --image of frames that bring nothing: each has a reason, with what the first of them had."""
import os
import struct

import pytest

import connectx
import e2e
import processes
import test_images as images

pytestmark = pytest.mark.sanitized

GVSP, RTP, SPEAD = "gvsp,bytes=2560,piece=500", "rtp-raw,width=16,height=8,sampling=YCbCr-4:2:2", "spead,bytes=4096"


def gvsp(packet_id=1, kind=3, data=bytes(500), block=1, status=0):
    return images.udp(struct.pack(">HHI", status, block, kind << 24 | packet_id) + data)


def rtp(field=0, line=0, version=2, length=32):
    return images.udp(struct.pack(">BBHIIHHHH", version << 6, 96, 0, 1, 2, 0, length, field << 15 | line, 0) + bytes(32))


def spead(flavour=0x0206, items=(1, 2, 3, 4), payload=64, heap=64):
    head = {1: 7, 2: heap, 3: 0, 4: payload}
    return images.spead({item: head[item] for item in items}, bytes(64), flavour)


def tagged(*types):
    frame = gvsp()
    return frame[:12] + b"".join(struct.pack(">HH", kind, 5) for kind in types) + frame[12:]


def fragment(offset, more):
    frame = bytearray(gvsp())
    frame[20:22] = struct.pack(">H", more << 13 | offset)
    return bytes(frame)


def ipv6(*headers):
    """The frame over IPv6, with extension headers of 8 bytes."""
    frame = gvsp()
    data = b"".join(bytes([after]) + bytes(7) for after in (*headers[1:], 17)) + frame[34:] if headers else frame[34:]
    return (frame[:12] + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(data), headers[0] if headers else 17, 64) +
            bytes(32) + data)


# name, misfit, layout, frame, words
REFUSED = (
    ("tag", False, GVSP, tagged(0x9100), "0x9100 behind 0 VLAN tags"),
    ("tag", False, GVSP, tagged(0x88a8, 0x8100, 0x8100), "0x8100 behind 2 VLAN tags"),
    ("fragment", True, GVSP, fragment(0, 1), "are not put together"),
    ("fragment", False, GVSP, fragment(64, 0), "are not put together"),
    ("not_udp", False, GVSP, bytes(12) + b"\x08\x06" + bytes(46), "EtherType 0x0806"),
    ("ipv6_header", False, GVSP, ipv6(0), "next header 0, which is not UDP (17); extension headers are not followed"),
    ("ipv6_header", False, GVSP, ipv6(60, 43), "next header 60,"),
    ("ipv6_header", False, GVSP, ipv6(58), "next header 58,"),
    ("fragment", False, GVSP, ipv6(44), "are not put together"),
    ("udp_length", True, GVSP, gvsp()[:-100], "says 516 bytes, and 416 are there"),
    ("gvsp_format", False, GVSP, gvsp(kind=4), "packet format 4"),
    ("gvsp_format", False, GVSP, gvsp(kind=7), "packet format 7"),
    ("gvsp_status", True, GVSP, gvsp(status=0x800c), "status 0x800c"),
    ("number", True, GVSP, gvsp(block=0), "cannot be"),
    ("payload", True, GVSP, gvsp(data=bytes(501)), "payloads of 501 bytes; the layout's piece is 500"),
    ("place", True, GVSP, gvsp(packet_id=7), "up to byte 3500 of their image; the layout's images end at byte 2560"),
    ("pieces", True, GVSP, gvsp(packet_id=8, kind=2, data=bytes(8)), "has 7 pieces; the layout has room for 6"),
    ("short", True, GVSP, images.udp(bytes(7)), "at byte 49"),
    ("rtp", True, RTP, rtp(version=1), "first byte 0x40"),
    ("rtp_field", True, RTP, rtp(field=1), "second field"),
    ("place", True, RTP, rtp(line=8), "images end at byte 256"),
    ("short", True, RTP, rtp(length=34), "at byte"),
    ("spead_flavour", True, SPEAD, spead(flavour=0x0305), "SPEAD-64-40"),
    ("spead", True, SPEAD, images.udp(b"none of them at all"), "first bytes 0x6e6f"),
    ("spead_item", True, SPEAD, spead(items=(1, 2, 4)), "item 3"),
    ("spead_heap", True, SPEAD, spead(heap=56), "up to byte 64 of a heap that has 56 by its item 2"),
    ("no_rule", False, GVSP + ",match=dst_port=77", gvsp(), "no rule"),
)


def capture(folder, layout, frames, *arguments, expect=3, **options):
    layout, _, match = layout.partition(",match=")
    path = images.write_pcap(folder, "in.pcap", frames)
    return e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" + path, "--frames", str(len(frames)),
                        "--image", layout, *(("--match", match) if match else ()), *arguments, expect=expect, **options)


@pytest.mark.parametrize("name, misfit, layout, frame, words", REFUSED, ids=[row[0] for row in REFUSED])
def test_reason(name, misfit, layout, frame, words):
    with processes.folder() as folder:
        summary = capture(folder, layout, [frame] * 3)
    found, = summary["images"]
    refused, = found["refused"]
    assert (refused["reason"], refused["misfit"], refused["frames"]) == (name, misfit, 3), refused
    assert words in refused["text"], refused
    assert any(words in text for text in summary["errors"]), summary["errors"]
    assert found["frames"]["misfit" if misfit else "filtered"] == 3, found


def test_many_reasons():
    """Counted apart, whatever comes between them; and --allow-misfits passes over them."""
    picture = [gvsp(0, 1, bytes(36)), *[gvsp(1 + i) for i in range(5)], gvsp(6, data=bytes(60)), gvsp(7, 2, bytes(8))]
    wrong = [gvsp(block=0), gvsp(kind=7), gvsp(status=0x8001), gvsp(data=bytes(501)), gvsp(kind=7)]
    frames = [frame for pair in zip(picture, wrong * 2) for frame in pair]
    with processes.folder() as folder:
        summary = capture(folder, GVSP, frames)
        passed = capture(folder, GVSP, frames, "--allow-misfits", expect=0)
    counts = {row["reason"]: row["frames"] for row in summary["images"][0]["refused"]}
    assert counts == {"number": 2, "gvsp_status": 2, "payload": 1, "gvsp_format": 3}, counts
    assert passed["images"][0]["complete"] == summary["images"][0]["complete"] == 1, passed
    assert any("5 frames matched and did not fit the layout" in text for text in summary["errors"]), summary["errors"]


def test_cut():
    """The reason says what came. A message names the remedy, but not --frame-size where that is at its maximum."""
    for size, remedy in (((), "--frame-size, 9216 at most"), (("--frame-size", "9216"), "more than 9216 bytes, with FCS, cannot")):
        with connectx.Faulty(), processes.folder() as folder:
            summary = capture(folder, GVSP, [gvsp()] * 3, *size, env=dict(os.environ, GDRCAP_FAULTS="grow=1:100"))
        refused, = summary["images"][0]["refused"]
        assert (refused["reason"], refused["misfit"], refused["frames"]) == ("cut", True, 1), refused
        assert refused["text"] == "of which only the first %d bytes came" % len(gvsp()), refused
        assert remedy in processes.messages(summary), summary["messages"]


def test_fields_as_streams():
    """The second field of interlaced video is a misfit unless the layout tells the fields apart."""
    frames = [rtp(field=field, line=line) for field in (0, 1) for line in range(8)]
    with processes.folder() as folder:
        summary = capture(folder, RTP, frames)
        assert summary["images"][0]["frames"]["misfit"] == 8, summary["images"]
        summary = capture(folder, RTP + ",stream.at=16,stream.bit=0,stream.bits=1", frames, expect=0)
    assert [stream["complete"] for stream in summary["images"][0]["streams"]] == [1, 1], summary["images"]


def test_streams_beyond_64():
    """Their frames are counted, in no stream, and fail the run; images of streams that have no place are in no count."""
    layout = ("{base: frame, number: {at: 14, bytes: 4}, stream: {at: 18, bytes: 2}, place: {at: 20, bytes: 2}, piece: 100, "
              "bytes: 300, data: {payload: 24, length: {at: 22, bytes: 2}}, ring: 256, timeout: 60},match=ethertype=0x88b6")
    for streams in (64, 80):
        frames = [bytes(12) + struct.pack(">HIHHH", 0x88b6, number, stream, 100 * piece, 100) + bytes(100)
                  for number in range(2) for stream in range(streams) for piece in range(3)]
        with processes.folder() as folder:
            summary = capture(folder, layout, frames, expect=3 if streams > 64 else 0)
        found, = summary["images"]
        assert found["begun"] == found["complete"] == 128 and found["dropped"] == 0, found
        assert found["frames"]["no_room"] == 6 * (streams - 64), found["frames"]
        assert len(found["streams"]) == 64 and not any(stream["frames"]["no_room"] for stream in found["streams"]), found
        said = "\n".join(summary["errors"])
        assert ("96 frames of streams beyond the first 64" in said) == (streams > 64), said
