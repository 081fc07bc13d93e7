# SPDX-License-Identifier: BSD-3-Clause
"""GigE Vision from aravis' fake camera (arv-fake-gv-camera), which loses packets when it is told to, while
aravis' own receiver takes the same packets. What was on the wire tcpdump says; each pixel has a formula."""
import collections
import os
import re
import struct

import pytest

import e2e
import other_sender
import processes

PIECE = 1364  # of a packet of 1400 bytes, 36 are headers
LEADER, TRAILER, DATA = 1, 2, 3
STREAM_PORT = 50010  # else the camera's answers to who controls it would be taken for its stream
# Only the wire says what is missing: no time-out while the sender waits for a core.
PRESET = "gvsp,bytes=%d,piece=%d,ring=%d,fill=%d,timeout=60"

# The preset, as a user writes it for 16-bit ids.
FIELDS = """image:
  name: gvsp
  base: udp
  kind:   {at: 4, bytes: 1, mask: 0x7f}
  number: {at: 2, bytes: 2, wrap: 65535, first: 1}
  index:  {at: 5, bytes: 3, subtract: 1}
  begin:  {kind: 1}
  data:   {kind: 3, payload: 8}
  end:    {kind: 2, pieces: {at: 5, bytes: 3, subtract: 1}}
  timestamp: {at: 12, bytes: 8}
  fields: [{at: 24, bytes: 4}, {at: 28, bytes: 4}]
  piece: 1364
  bytes: %d
  ring: %d
  fill: 255
  timeout: 60
match: ["src_port=%d"]
"""


class Size:
    """Of pictures."""

    def __init__(self, width, height):
        self.width, self.height, self.bytes = width, height, width * height
        self.pieces = -(-self.bytes // PIECE)
        self.ring = min(1024, (40 << 20) // self.bytes)  # a run's, however late they are written

    def picture(self, block):
        """As arvfakecamera.c draws it: (x + block + y) % 255."""
        line = bytes(i % 255 for i in range(self.width + 255))
        return b"".join(line[(block + y) % 255:][:self.width] for y in range(self.height))


class Block:
    """What came of a picture."""

    def __init__(self, number, size):
        self.number, self.size = number, size
        self.pieces, self.leader, self.trailer = set(), False, False

    def complete(self):
        return len(self.pieces) == self.size.pieces and self.trailer

    def lost(self):
        return sorted(set(range(self.size.pieces)) - self.pieces)

    def expected(self):
        data = bytearray(self.size.picture(self.number))
        for piece in self.lost():
            end = min((piece + 1) * PIECE, self.size.bytes)
            data[piece * PIECE:end] = bytes([other_sender.FILL]) * (end - piece * PIECE)
        return bytes(data)

    def missing(self):
        ranges = []
        for piece in self.lost():
            if not ranges or sum(ranges[-1]) != piece * PIECE:
                ranges.append([piece * PIECE, 0])
            ranges[-1][1] += min(PIECE, self.size.bytes - piece * PIECE)
        return ranges


def blocks_of(frames, size):
    """{block id: Block}, and how many packets there were."""
    blocks, packets = collections.OrderedDict(), 0
    for source, _, payload in other_sender.datagrams(frames):
        if source != STREAM_PORT:
            continue
        status, number, word = struct.unpack_from(">HHI", payload)
        kind, packet = word >> 24, word & 0xffffff
        assert status == 0 and kind in (LEADER, TRAILER, DATA), payload[:8].hex()
        block = blocks.setdefault(number, Block(number, size))
        packets += 1
        if kind == DATA:
            block.pieces.add(packet - 1)
        elif kind == TRAILER:
            block.trailer = True
        else:
            block.leader = True
    return blocks, packets


def aravis(size, seconds, rate):
    """Its receiver for so long, which controls the camera; its counts."""
    text = processes.output("arv-camera-test-0.8", "-n", "Aravis-Fake-GV01", "-w",
                            str(size.width), "-h", str(size.height), "-f", str(rate), "-i", str(PIECE + 36), "-r",
                            "--duration=%d" % seconds)
    counts = dict((name, int(value)) for name, value in re.findall(r"(n_\w+)\s*= (\d+)", text))
    assert "n_completed_buffers" in counts, text
    return counts


def check_pictures(seen, blocks, size):
    """Every byte of each picture in order, and every count."""
    images, complete = seen.images, [block for block in blocks.values() if block.complete()]
    assert images["begun"] == len(blocks) and images["complete"] == len(complete), (
        images, len(blocks), len(complete))
    assert images["skipped"] == images["restarts"] == 0, images
    assert images["frames"]["misfit"] == images["frames"]["duplicate"] == 0, images
    for data, block in zip(seen.split(size.bytes), blocks.values(), strict=True):
        assert data == block.expected(), "block %d" % block.number
    incomplete = [block for block in blocks.values() if not block.complete()]
    for said, block in zip(images["first_incomplete"], incomplete):
        # What a lost trailer would have told nobody knows: neither how many pieces there are, nor that
        # all are there.
        assert said["number"] % 65535 == block.number % 65535, (said, block.number)
        assert said["received"] == len(block.pieces), (said, block.number)
        assert said["pieces"] == (size.pieces if block.trailer else None), (said, block.number)
        if block.trailer:
            missing = block.missing()
            assert (said["ranges"], said["missing"]) == (len(missing), missing[:8]), (said, missing)
    lost = sum(len(block.lost()) for block in incomplete if block.trailer)
    assert images["pieces"]["lost"] == lost, (images, lost)


def packets_of(blocks):
    return sum(len(block.pieces) + block.leader + block.trailer for block in blocks)


def check_aravis(counts, blocks):
    """Its receiver needs the leader, too. What it did not receive itself, on a machine without a free
    core, says nothing of us."""
    done = counts["n_completed_buffers"] + counts["n_failures"]
    taken = list(blocks.values())[:done]
    received, completed = counts["n_received_packets"], counts["n_completed_buffers"]
    if received < packets_of(taken) or counts["n_underruns"] or counts.get("n_timeouts"):
        return False
    complete = sum(block.complete() and block.leader for block in taken)
    # Packets of blocks that it had begun at its end hide as many that it did not receive.
    if completed < complete and received < packets_of(blocks.values()):
        return False
    assert completed == complete, (counts, complete)
    return True


def camera(lost, seconds, rate, size):
    """One run, and the same packets once more, by the fields' layout."""
    for name in ("arv-fake-gv-camera-0.8", "arv-camera-test-0.8"):
        processes.tool(name, "aravis-tools")
    with other_sender.Wire(ports=(STREAM_PORT, STREAM_PORT)) as wire, processes.folder() as folder:
        with other_sender.Capture(
                wire, folder, PRESET % (size.bytes, PIECE, size.ring, other_sender.FILL), "--match",
                "src_port=%d" % STREAM_PORT) as capture:
            with wire.running("arv-fake-gv-camera-0.8", "-i", other_sender.SENDER, "-s", "GV01", "-r",
                              str(lost)):
                wire.wait_for_socket(3956)
                counts = aravis(size, seconds, rate)
            seen = capture.seen(None)
        blocks, packets = blocks_of(seen.frames, size)
        assert packets == seen.images["frames"]["placed"], (packets, seen.images)
        check_pictures(seen, blocks, size)
        path = os.path.join(folder, "fields.yaml")
        with open(path, "w") as file:
            file.write(FIELDS % (size.bytes, size.ring, STREAM_PORT))
        again = other_sender.from_file(folder, seen.pcap, path, expect=None)
        check_pictures(again, blocks, size)
        assert other_sender.counts(again.images) == other_sender.counts(seen.images)
        assert again.data == seen.data
    return counts, blocks, seen


def compared(lost, seconds=2, rate=30, size=Size(640, 480)):
    """Until aravis received all packets, too."""
    for _ in range(5):
        counts, blocks, seen = camera(lost, seconds, rate, size)
        if check_aravis(counts, blocks):
            return blocks, seen
    raise e2e.Skip("aravis' receiver lost packets itself, in each of 5 runs: %s" % counts)


def test_all_there():
    for seconds in (2, 8, 32):  # a camera without a core sends few of its 30 a second
        blocks, seen = compared(0, seconds)
        assert seen.images["incomplete"] == 0 and seen.summary["result"] == "pass", seen.summary
        if len(blocks) >= 10:
            break
    assert len(blocks) >= 10, len(blocks)


def test_numbers_wrap():
    """Block ids of this camera begin at 65401: 65535 is followed by 1. Pictures are of 10 packets."""
    for seconds in (2, 4, 6):
        blocks, seen = compared(0, seconds, 150, Size(128, 96))
        if 1 in blocks:
            break
    else:
        raise e2e.Skip("the camera did not send 136 pictures in 6 s")
    assert {65535, 1} <= set(blocks) and 0 not in blocks, list(blocks)
    assert seen.images["incomplete"] == 0 and seen.summary["result"] == "pass", seen.summary


def test_2_of_1000_lost():
    blocks, seen = compared(2)
    assert 0 < seen.images["complete"] < len(blocks), seen.images


@pytest.mark.long
def test_50_of_1000_lost():
    """Some 11 of each picture: whole ones are rare, and leaders and trailers are among what is lost."""
    blocks, seen = compared(50)
    for _ in range(10):
        if not all(block.trailer for block in blocks.values()) and not all(
                block.leader for block in blocks.values()):
            break
        blocks, seen = compared(50)
    else:
        raise AssertionError("no leader and no trailer was lost in 10 runs")
    assert seen.images["incomplete"] > 0, seen.images
