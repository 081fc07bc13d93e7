# SPDX-License-Identifier: BSD-3-Clause
"""capture --image with `convert`: numbers that a sender packs are the numbers that are saved, what is missing is
said in converted bytes, and pictures of 10 bits have these."""
import os
import random
import signal
import struct

import e2e
import processes
import test_images

WIDTH, HEIGHT, PACKETS = 40, 24, 12  # an image; two rows a packet

LAYOUT = """image:
  number: {at: 0, bytes: 4}
  index: {at: 4, bytes: 2}
  piece: %(piece)d
  pieces: 12
  data: {payload: 6}
  ring: 64
  timeout: 60
  fill: 165
  convert: %(convert)s
match: ["dst_port=5000"]
"""


def pack(values, bits, big):
    """One after the other, the first in the first byte's highest bits or lowest ones."""
    texts = ["{:0{}b}".format(value, bits) for value in values]
    whole = int("".join(texts if big else texts[::-1]), 2)
    return whole.to_bytes(len(values) * bits // 8, "big" if big else "little")


def unsigned(bits, kept):
    return lambda dice, count: [dice.choice((0, 2**bits - 1, dice.randrange(2**bits)))
                                for _ in range(count)], kept


def signed(bits, kept):
    half = 2**(bits - 1)
    return lambda dice, count: [dice.choice((-half, half - 1, -1, dice.randrange(-half, half)))
                                for _ in range(count)], kept


# Name: values, how they are kept, how they are sent.
CONVERSIONS = {
    "swap16": (*unsigned(16, "H"), lambda v: struct.pack(">%dH" % len(v), *v)),
    "swap32": (*unsigned(32, "I"), lambda v: struct.pack(">%dI" % len(v), *v)),
    "swap64": (*unsigned(64, "Q"), lambda v: struct.pack(">%dQ" % len(v), *v)),
    "unpack10-be": (*unsigned(10, "H"), lambda v: pack(v, 10, True)),
    "unpack12-be": (*unsigned(12, "H"), lambda v: pack(v, 12, True)),
    "mono10p": (*unsigned(10, "H"), lambda v: pack(v, 10, False)),
    "mono12p": (*unsigned(12, "H"), lambda v: pack(v, 12, False)),
    "int8-float16": (*signed(8, "e"), lambda v: struct.pack("<%db" % len(v), *v)),
    "int8-float32": (*signed(8, "f"), lambda v: struct.pack("<%db" % len(v), *v)),
    "int16-float16": (*signed(16, "e"), lambda v: struct.pack("<%dh" % len(v), *v)),
    "int16-float32": (*signed(16, "f"), lambda v: struct.pack("<%dh" % len(v), *v)),
    "int16be-float16": (*signed(16, "e"), lambda v: struct.pack(">%dh" % len(v), *v)),
    "int16be-float32": (*signed(16, "f"), lambda v: struct.pack(">%dh" % len(v), *v)),
}


class Sender:
    def __init__(self, convert, images):
        values, self.kept, self.sent = CONVERSIONS[convert]
        dice = random.Random(convert)
        self.images = [values(dice, WIDTH * HEIGHT) for _ in range(images)]
        self.piece = len(self.payload(0, 0))
        self.kept_piece = WIDTH * HEIGHT // PACKETS * struct.calcsize(self.kept)

    def payload(self, image, packet):
        count = WIDTH * HEIGHT // PACKETS
        return self.sent(self.images[image][packet * count:(packet + 1) * count])

    def frames(self, lost=()):
        return [test_images.udp(struct.pack(">IH", image, packet) + self.payload(image, packet))
                for image in range(len(self.images)) for packet in range(PACKETS)
                if (image, packet) not in lost]

    def data(self, image):
        return struct.pack("<%d%s" % (WIDTH * HEIGHT, self.kept), *self.images[image])

    def layout(self, folder, convert):
        path = os.path.join(folder, "layout.yaml")
        with open(path, "w") as file:
            file.write(LAYOUT % {"piece": self.piece, "convert": convert})
        return path


def capture(folder, sender, convert, frames, *arguments, expect=0):
    path = test_images.write_pcap(folder, "in.pcap", frames)
    return e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=%s" % path,
                        "--frames", str(len(frames)), "--image", sender.layout(folder, convert),
                        *arguments, expect=expect)


def test_each():
    """Whole images, and one without a packet: its bytes are `fill`, and the hole is said as it lies there."""
    for convert in CONVERSIONS:
        sender = Sender(convert, 3)
        hole = 7 * sender.kept_piece
        with processes.folder() as folder:
            out = os.path.join(folder, "out.raw")
            summary = capture(folder, sender, convert, sender.frames(lost=((1, 7),)), "--save-images",
                              out, expect=3)
            with open(out, "rb") as file:
                data = file.read()
        want = bytearray(b"".join(sender.data(image) for image in range(3)))
        at = len(sender.data(0)) + hole
        want[at:at + sender.kept_piece] = bytes([165]) * sender.kept_piece
        assert data == want, convert
        images = summary["images"][0]
        test_images.check_images(summary)
        assert images["bytes"] == sender.piece * (3 * PACKETS - 1), (convert, images)
        assert images["first_incomplete"][0]["missing"] == [[hole, sender.kept_piece]], images


def test_not_whole():
    """A packet that ends within a group is none of the image."""
    sender = Sender("mono10p", 1)
    frames = sender.frames()
    bad = [test_images.udp(struct.pack(">IH", 0, PACKETS - 1) + sender.payload(0, PACKETS - 1)[:-1])]
    with processes.folder() as folder:
        summary = capture(folder, sender, "mono10p", bad + frames, expect=3)
    assert summary["images"][0]["frames"]["misfit"] == 1, summary["images"]
    assert summary["images"][0]["complete"] == 1, summary["images"]


def test_pictures():
    """Netpbm says 1023; PNG has 16 bits, in which 1023 is as white as can be."""
    for convert, bits in (("mono10p", 10), ("unpack12-be", 12), ("swap16", 16)):
        sender = Sender(convert, 1)
        size = "%dx%d" % (WIDTH, HEIGHT)
        big = struct.pack(">%dH" % (WIDTH * HEIGHT), *sender.images[0])
        with processes.folder() as folder:
            out = os.path.join(folder, "o.pgm")
            capture(folder, sender, convert, sender.frames(), "--save-images", out, "--image-format",
                    "pgm", "--image-size", size)
            with open(os.path.join(folder, "o-0.pgm"), "rb") as file:
                assert file.read() == b"P5\n%d %d\n%d\n" % (WIDTH, HEIGHT, 2**bits - 1) + big, convert
            out = os.path.join(folder, "o.png")
            result = e2e.run("capture", "--image", sender.layout(folder, convert), "--save-images",
                             "x.png", "--image-format", "png", "--image-size", "1x1", "--port",
                             "ring:x", expect=None)
            if "without libpng" in result.err:
                continue
            capture(folder, sender, convert, sender.frames(), "--save-images", out, "--image-format",
                    "png", "--image-size", size)
            with open(os.path.join(folder, "o-0.png"), "rb") as file:
                shape, pixels = test_images.png_pixels(file.read())
        wide = [value << 16 - bits | value >> 2 * bits - 16 for value in sender.images[0]]
        assert shape == (WIDTH, HEIGHT, 16, 0), shape
        assert pixels == struct.pack(">%dH" % (WIDTH * HEIGHT), *wide), convert
    for convert in ("int8-float32", "swap32"):
        sender = Sender(convert, 1)
        with processes.folder() as folder:
            result = e2e.run("capture", "--gpu", "host", "--port", "ring:x", "--image",
                             sender.layout(folder, convert), "--save-images", "x", "--image-format",
                             "pgm", "--image-size", "4x4", expect=None)
        assert result.status == 2 and "use raw" in result.err, result


def test_live():
    """Packed pixels of 10 bits from an interface, while it runs."""
    sender = Sender("unpack10-be", 50)
    with e2e.VethPair() as pair, processes.folder() as folder:
        out = os.path.join(folder, "out.raw")
        with processes.Running("capture", "--quiet", "--gpu", "host", "--port",
                               "net_af_packet0,iface=%s" % pair.right, "--image",
                               sender.layout(folder, "unpack10-be"), "--save-images", out) as running:
            running.wait_until_running()
            count = processes.send_raw(pair, sender.frames())
            running.wait_for_all(count)
            running.signal(signal.SIGINT)
            summary = running.finish(expect=None)
        test_images.check_images(summary)
        if summary["lost_by"]["nic_missed"] == 0 and pair.dropped() == 0:
            with open(out, "rb") as file:
                data = file.read()
            assert summary["frames"]["received"] == 50 * PACKETS, summary
            assert data == b"".join(sender.data(image) for image in range(50)), summary["images"]
            assert summary["result"] == "pass", summary
