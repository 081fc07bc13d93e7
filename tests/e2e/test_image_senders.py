# SPDX-License-Identifier: BSD-3-Clause
"""Senders that do what they should not, or what a wire does to them: leaders and trailers that are lost or
come first, pictures of any size, images larger than all receive slots, two senders with one id. Each has
its count, each image that is handed out its bytes, and nothing waits for a time-out that is not due."""
import os
import random
import struct

import e2e
import processes
import test_images

PIECE, PIECES = 1000, 10
GVSP = "gvsp,bytes=10000,piece=1000,timeout=60,linger=60,ring=256"


def gvsp(kind, block, packet, payload=b""):
    return test_images.udp(struct.pack(">HHBBH", 0, block, kind, packet >> 16, packet & 0xFFFF) + payload)


class Picture:
    """Packets of one, by name."""

    def __init__(self, block, size=PIECE * PIECES):
        self.data = random.Random(block).randbytes(size)
        pieces = -(-size // PIECE)
        self.leader = gvsp(1, block, 0, bytes(4) + struct.pack(">QIII", block, 0, 100, 100) + bytes(12))
        self.pieces = [gvsp(3, block, 1 + p, self.data[p * PIECE:(p + 1) * PIECE]) for p in range(pieces)]
        self.trailer = gvsp(2, block, 1 + pieces, bytes(8))


def capture(folder, frames, image, *arguments, expect=0):
    """What the JSON tells of the images of these frames, and all their bytes."""
    out = os.path.join(folder, "out.raw")
    summary = e2e.run_json(
        "capture", "--quiet", "--gpu", "host", "--port",
        "net_pcap0,rx_pcap=%s" % test_images.write_pcap(folder, "in.pcap", frames), "--frames",
        str(len(frames)), "--image", image, "--save-images", out, *arguments, expect=expect)
    test_images.check_images(summary)
    with open(out, "rb") as file:
        return summary["images"][0], file.read()


def test_leaders_and_trailers_are_lost():
    """Without its leader a picture is complete, without its trailer nobody knows that it is."""
    pictures = [Picture(1 + n) for n in range(30)]
    frames = []
    for n, picture in enumerate(pictures):
        frames += [picture.leader] if n % 3 else []
        frames += picture.pieces + ([picture.trailer] if n % 3 != 1 else [])
    with processes.folder() as folder:
        images, data = capture(folder, frames, GVSP, expect=3)
    assert (images["begun"], images["complete"], images["incomplete"]) == (30, 20, 10), images
    assert images["incomplete_by"]["timeout"] == 0, images
    assert data == b"".join(picture.data for picture in pictures)
    assert images["frames"]["placed"] == len(frames), images


def test_trailers_first_and_leaders_last():
    dice = random.Random(1)
    pictures = [Picture(1 + n) for n in range(30)]
    frames = []
    for picture in pictures:
        frames += [picture.trailer] + dice.sample(picture.pieces, PIECES) + [picture.leader]
    with processes.folder() as folder:
        images, data = capture(folder, frames, GVSP)
    assert images["complete"] == 30, images
    assert data == b"".join(picture.data for picture in pictures)
    # also a leader whose picture has been handed out
    assert images["frames"]["placed"] == len(frames), images


def test_pictures_of_any_size():
    dice = random.Random(2)
    pictures = [Picture(1 + n, dice.randrange(1, PIECE * PIECES + 1)) for n in range(200)]
    frames = sum(([p.leader, *p.pieces, p.trailer] for p in pictures), [])
    # one that is larger than was said: what does not fit is refused, the rest is there
    large = Picture(201, PIECE * (PIECES + 3))
    frames += [large.leader, *large.pieces, large.trailer]
    with processes.folder() as folder:
        images, data = capture(folder, frames, GVSP, expect=None)
    assert images["frames"]["misfit"] >= 3, images
    assert images["begun"] == 201 and images["complete"] >= 200, images
    assert images["dropped"] == images["skipped"] == images["restarts"] == 0, images
    assert data == b"".join(p.data for p in pictures) + large.data[:PIECE * PIECES]


def test_larger_than_all_slots():
    """Slots go back as they are copied: an image may have more packets than there are."""
    pieces = 40000
    text = ("image: {base: udp, number: {at: 0, bytes: 2}, place: [{at: 2, bytes: 2, times: 500}], data: "
            "{payload: 4}, piece: 500, bytes: %d, ring: 2, open: 1, timeout: 60}\n" % (500 * pieces))
    data = random.Random(3).randbytes(500 * pieces)
    frames = [test_images.udp(struct.pack(">HH", 1, p) + data[p * 500:p * 500 + 500])
              for p in range(pieces)]
    with processes.folder() as folder:
        path = os.path.join(folder, "layout.yaml")
        with open(path, "w") as file:
            file.write(text)
        images, saved = capture(folder, frames, path, "--pool", "16M")
    assert images["complete"] == 1 and images["frames"]["placed"] == pieces, images
    assert saved == data


def test_two_senders_with_one_id():
    """The same numbers: the second one's pieces are conflicts. Others: two images in turn, and each turn is seen."""
    one, two = test_images.Sender(range(50)), test_images.Sender(range(50))
    two.image = {image: bytes(255 - byte for byte in data) for image, data in two.image.items()}
    frames = [frame for pair in zip(one.frames(), two.frames()) for frame in pair]
    with processes.folder() as folder:
        images, data = test_images.capture(folder, frames, test_images.layout(folder), expect=3)
        assert images["complete"] == 50 and images["frames"]["placed"] == len(one.packets), images
        assert images["frames"]["conflict"] + images["frames"]["late"] == len(two.packets), images
        assert images["frames"]["conflict"] >= 50 * (test_images.PIECES - 1), images
        assert data == list(one.image.values())
        far = test_images.Sender(range(1 << 40, (1 << 40) + 50))
        frames = [frame for pair in zip(one.frames(), far.frames()) for frame in pair]
        images, data = test_images.capture(folder, frames, test_images.layout(folder))
    assert images["complete"] == 100 and images["restarts"] == 99, images
    assert data == [entry for pair in zip(one.image.values(), far.image.values()) for entry in pair]
