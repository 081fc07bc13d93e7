# SPDX-License-Identifier: BSD-3-Clause
"""SPEAD-64-48 from spead2, with and without item pointers in each packet, descriptors and a start among
them; each heap as the packets of tcpdump's have it, and as spead2 itself reads it from what --save wrote."""
import hashlib
import importlib.util
import json
import os
import struct
import sys

import e2e
import other_sender
import processes

PORT = 8888
PEER = str(e2e.ROOT / "tests" / "e2e" / "spead2_peer.py")
TIME, DATA, MORE = 0x1600, 0x1601, 0x1602
HEAPS = 12
BYTES = 100003  # not whole words
FIRST = 1 << 40


def python():
    if not importlib.util.find_spec("spead2"):
        raise e2e.Skip("this Python has no spead2: scripts/test-python.sh build")
    return sys.executable


class Heap:
    """Of packets: its bytes, and where its items lie."""

    def __init__(self):
        self.length, self.parts, self.items = 0, {}, {}

    def data(self):
        data, at = bytearray(self.length), 0
        for offset in sorted(self.parts):
            assert offset == at, "bytes %d to %d are on no packet" % (at, offset)
            data[offset:offset + len(self.parts[offset])] = self.parts[offset]
            at += len(self.parts[offset])
        assert at == self.length
        return bytes(data)

    def item(self, number):
        """What begins at its pointer, to the next one or the end."""
        begin = self.items[number]
        end = min([at for at in self.items.values() if at > begin] + [self.length])
        return self.data()[begin:end]


class Packets:
    """{heap's count: Heap} of a capture, by SPEAD's specification; how many packets of which kind."""

    def __init__(self, frames):
        self.heaps, self.control, self.data, self.with_time, self.counts = {}, 0, 0, 0, set()
        for _, port, payload in other_sender.datagrams(frames):
            if port == PORT:
                self.add(payload)

    def add(self, payload):
        magic, count = struct.unpack_from(">IxxH", payload)
        assert magic == 0x53040206, payload[:8].hex()
        immediate, pointers = {}, {}
        for i in range(count):
            word, = struct.unpack_from(">Q", payload, 8 + 8 * i)
            (immediate if word >> 63 else pointers)[word >> 48 & 0x7fff] = word & 0xffffffffffff
        if 6 in immediate and not any(pointers):  # one byte, of the null item's
            self.control += 1
            return
        heap = self.heaps.setdefault(immediate[1], Heap())
        heap.length = immediate[2]
        heap.items.update(pointers)
        heap.parts[immediate[3]] = payload[8 + 8 * count:8 + 8 * count + immediate[4]]
        self.data += 1
        self.with_time += TIME in immediate
        self.counts.add(count)


def send(wire, interpreter, **changes):
    options = {"heaps": HEAPS, "bytes": BYTES, "packet": 1472, "descriptors": "none", "repeat": False,
               "more": True, "first": FIRST, "start": "none", **changes}
    wire.run(interpreter, PEER, "send", other_sender.RECEIVER, str(PORT), json.dumps(options))


def layout(text="bytes=1M"):
    return "spead,%s,ring=64,timeout=60,fill=%d" % (text, other_sender.FILL)


def read(interpreter, path):
    """Heaps as spead2 has them; those with a start or end alone have no items."""
    lines = processes.output(interpreter, PEER, "read", path, str(PORT)).splitlines()
    return [heap for heap in map(json.loads, lines) if heap["incomplete"] or any(
        item[1] is not None for item in heap["items"])]


def check_items(heap, said):
    """What spead2 says of a heap lies where its pointers point."""
    assert not said["incomplete"], said
    for number, length, value in said["items"]:
        if length is not None:
            data = heap.item(number)[:length]
            assert hashlib.sha256(data).hexdigest() == value, (said["count"], number)


def heaps_are_whole(mtu=1500, **changes):
    """Sent, placed, saved beside it, and read by spead2."""
    interpreter = python()
    with other_sender.Wire(mtu=mtu, sink=PORT) as wire, processes.folder() as folder:
        saved = os.path.join(folder, "saved.pcapng")
        save = other_sender.Saver(wire, saved)
        with save, other_sender.Capture(wire, folder, layout(), "--match", "dst_port=%d" % PORT) as capture:
            send(wire, interpreter, **changes)
            seen = capture.seen()
            save.end(len(seen.frames), None)
        packets = Packets(seen.frames)
        by_spead2, again = read(interpreter, saved), read(interpreter, seen.pcap)
    images = seen.images
    assert images["frames"]["placed"] == packets.data and images["frames"]["misfit"] == 0, images
    assert images["complete"] == images["begun"] == HEAPS == len(packets.heaps), images
    assert seen.data == b"".join(heap.data() for heap in packets.heaps.values())
    assert len(by_spead2) == HEAPS and by_spead2 == again, (by_spead2, again)
    for said in by_spead2:
        assert {item[0] for item in said["items"]} >= {TIME, DATA}, said
        check_items(packets.heaps[said["count"]], said)
    return packets


def test_plain():
    """Pointers in the first packet of a heap only."""
    packets = heaps_are_whole()
    assert packets.with_time < packets.data and len(packets.counts) > 1, packets.counts


def test_repeated_pointers():
    packets = heaps_are_whole(repeat=True)
    assert packets.with_time == packets.data, (packets.with_time, packets.data)


def test_descriptors():
    """In the first heap's bytes, in each one's, and with pointers repeated."""
    assert len(heaps_are_whole(descriptors="stale").counts) > 1
    for repeat in e2e.some((False, True), 0):
        heaps_are_whole(descriptors="all", repeat=repeat)


def test_large_packets():
    for more in e2e.some(({}, {"descriptors": "all", "repeat": True}), 1):
        heaps_are_whole(mtu=9000, packet=8972, **more)


def test_start():
    """A stream's start alone is no data; with data it is."""
    assert heaps_are_whole(start="alone").control >= 2
    heaps_are_whole(start="with data")


def test_number_of_ones_own():
    """Four heaps an image, by the time in each packet; where only a heap's first packet has it the others
    are misfits."""
    interpreter, size = python(), 65536
    text = """{parser: spead, number: {item: 0x1600, divide: 4}, size: fixed,
               place: [{item: 0x1600, modulo: 4, times: %d}, {item: 3}],
               piece: 8, bytes: %d, ring: 64, timeout: 60, fill: 255}""" % (size, 4 * size)
    for repeat in (True, False):
        with other_sender.Wire(sink=PORT) as wire, processes.folder() as folder:
            path = os.path.join(folder, "four.yaml")
            with open(path, "w") as file:
                file.write("image: %s\nmatch: [\"dst_port=%d\"]\n" % (text, PORT))
            with other_sender.Capture(wire, folder, path) as capture:
                send(wire, interpreter, bytes=size, more=False, repeat=repeat)
                seen = capture.seen(0 if repeat else 3)
            packets, images = Packets(seen.frames), seen.images
        if repeat:
            assert images["complete"] == HEAPS // 4 and images["incomplete"] == 0, images
            assert seen.data == b"".join(heap.data() for heap in packets.heaps.values())
        else:
            assert images["frames"]["placed"] == packets.with_time == HEAPS, images
            assert images["frames"]["misfit"] == packets.data - packets.with_time, images
