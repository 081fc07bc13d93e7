# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the page: formats, scaling, where pieces are missing, histograms, samples; against slow, plain definitions."""
import random
import struct
import zlib

import pytest

import harness  # noqa: F401 first: it says where the package is
from live_fake import Image, Source

numpy = pytest.importorskip("numpy")
from gdrcap.live import layout, picture, run, scale  # noqa: E402


def of(name, width=None, height=None):
    return layout.Wanted(width, height, layout.FORMATS[name])


def draw(data, wanted, found=None, **options):
    image = Image(data, **options)
    return image, picture.draw(image, found or layout.Layout(), wanted)


def decoded(png):
    """Pixels of a PNG whose rows all have filter 2: height x width x channels."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n", png[:8]
    at, body = 8, b""
    while at < len(png):
        count, kind = struct.unpack(">I4s", png[at:at + 8])
        data = png[at + 8:at + 8 + count]
        assert zlib.crc32(kind + data) == struct.unpack(">I", png[at + 8 + count:at + 12 + count])[0]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[:10])
            assert depth == 8
        body += data if kind == b"IDAT" else b""
        at += 12 + count
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    rows = numpy.frombuffer(zlib.decompress(body), numpy.uint8).reshape(height, width * channels + 1)
    assert (rows[:, 0] == 2).all()
    return numpy.cumsum(rows[:, 1:], axis=0, dtype=numpy.uint8).reshape(height, width, channels)


def test_full_size():
    """Every pixel of a small picture is what was sent, whatever lies between its rows."""
    maker = numpy.random.default_rng(1)
    gray = maker.integers(0, 256, (37, 101), numpy.uint8)
    _, drawn = draw(gray.tobytes(), of("mono8", 101))
    assert (decoded(drawn.png)[:, :, 0] == gray).all() and drawn.facts["height"] == 37, drawn.facts
    padded = numpy.zeros((37, 128), numpy.uint8)
    padded[:, :101] = gray
    _, drawn = draw(padded.tobytes(), of("mono8"), layout.Layout(row=101, pitch=128))
    assert (decoded(drawn.png)[:, :, 0] == gray).all() and drawn.facts["width"] == 101
    colours = maker.integers(0, 256, (20, 30, 3), numpy.uint8)
    assert (decoded(draw(colours.tobytes(), of("rgb8", 30))[1].png) == colours).all()
    assert (decoded(draw(colours.tobytes(), of("bgr8", 30))[1].png) == colours[:, :, ::-1]).all()
    for top, name in ((1023, "mono10"), (4095, "mono12")):
        deep = maker.integers(0, top + 1, (20, 30), numpy.uint16)
        deep[3, 3] = top
        _, drawn = draw(deep.astype("<u2").tobytes(), of(name, 30))
        assert (decoded(drawn.png)[:, :, 0] == deep.astype(int) * 255 // top).all()
        assert drawn.facts["histogram"]["white"] == top
    dim = numpy.full((8, 8), 900, ">u2")  # white is then what that many bits hold, and the page says so
    _, drawn = draw(dim.tobytes(), of("mono16be", 8))
    assert drawn.facts["histogram"]["white"] == 1023 and (decoded(drawn.png) == 900 * 255 // 1023).all()


def test_video():
    """4:2:2: gray stays gray, narrow range becomes full, and red is red; pixels of a pair have their own luma."""
    groups = numpy.tile(numpy.array([128, 16, 128, 235], numpy.uint8), (4, 5))
    assert (decoded(draw(groups.tobytes(), of("uyvy", 10))[1].png) == numpy.tile([[[0] * 3, [255] * 3]], (4, 5, 1))).all()
    # ITU-R BT.709: red is Y 63, Cb 102, Cr 240.
    pixels = decoded(draw(bytes([102, 63, 240, 63]) * 20, of("uyvy", 10))[1].png)
    assert (abs(pixels.astype(int) - [255, 0, 0]) <= 2).all(), pixels[0, 0]
    pixels = decoded(draw(bytes([63, 102, 63, 240]) * 20, of("yuyv", 10))[1].png)
    assert (abs(pixels.astype(int) - [255, 0, 0]) <= 2).all(), pixels[0, 0]
    _, drawn = draw(bytes([102, 63, 240, 63]) * (1500 * 3), of("uyvy", 1500, 6))
    assert drawn.facts["step"] == 4 and drawn.facts["shown_width"] == 375, drawn.facts


def test_scaled():
    """Blocks are averaged over some of their pixels, and a histogram counts one pixel of each."""
    gray = numpy.random.default_rng(2).integers(0, 256, (1200, 1600), numpy.uint8)
    _, drawn = draw(gray.tobytes(), of("mono8", 1600))
    assert drawn.facts["step"] == 3 and (drawn.facts["shown_width"], drawn.facts["shown_height"]) == (534, 400)
    found = decoded(drawn.png)[:, :, 0]
    for y, x in ((0, 0), (7, 11), (399, 532)):
        assert found[y, x] == gray[3 * y:3 * y + 3, 3 * x:3 * x + 3].sum(dtype=int) // 9, (y, x)
    assert found[7, 533] == gray[21:24, 1599].sum(dtype=int) // 3  # a block that is cut
    bins = numpy.bincount(gray[::3, ::3].ravel() // 4, minlength=64)
    assert drawn.facts["histogram"]["bins"]["gray"] == bins.tolist()


def test_missing():
    """A block is transparent when one of its bytes is missing, and no other is; against a look at each byte."""
    play = random.Random(3)
    for _ in range(40):
        width, height = play.randint(1, 90), play.randint(1, 60)
        pitch, step = width + play.choice((0, 0, 7)), play.choice((1, 2, 3, 5))
        shown = layout.Geometry(layout.FORMATS["mono8"], width, height, pitch)
        holes, at = [], 0
        while at < pitch * height:
            at += play.randint(1, 3 * pitch)
            count = play.randint(1, 4 * pitch)
            holes.append((at, count))
            at += count + 1
        there = numpy.ones(max(pitch * height, at) + 1, bool)
        for start, count in holes:
            there[start:start + count] = False
        pixels = there[:pitch * height].reshape(height, pitch)[:, :width]
        size = -(-height // step), -(-width // step)
        expected = numpy.ones(size, bool)
        for y, x in zip(*numpy.nonzero(~pixels)):
            expected[y // step, x // step] = False
        scaled = scale.Scaled(numpy.zeros((*size, 1)), numpy.zeros((*size, 1)), step, step, "")
        found = picture.present_blocks(holes, shown, scaled)
        assert (found == expected).all(), (width, height, pitch, step, holes)
    _, drawn = draw(bytes(range(200)), of("mono8", 20), holes=[(20, 30), (199, 1)])
    alpha = decoded(drawn.png)[:, :, 1].ravel()
    assert (alpha[20:50] == 0).all() and alpha[199] == 0 and (alpha == 0).sum() == 31
    assert sum(drawn.facts["histogram"]["bins"]["gray"]) == 169 == drawn.facts["histogram"]["pixels"]
    _, drawn = draw(bytes(8 * 64), of("uyvy", 8), holes=[(4, 1)])
    assert (decoded(drawn.png)[0, :, 3] == [255, 255, 0, 0, 255, 255, 255, 255]).all()
    assert picture.draw(Image(bytes(100), holes=[(0, 100)]), layout.Layout(), of("mono8", 10)).facts["holes"] == 1


class Library:
    """Stands in for torch or cupy."""

    __name__ = "library"

    @staticmethod
    def from_dlpack(array):
        return array.copy()

    @staticmethod
    def zeros(shape, dtype):
        return numpy.zeros(shape, dtype)

    @property
    def uint8(self):
        return numpy.uint8


def test_gpu_library():
    """With a library for arrays on the GPU, scaling is its work: what comes out is what numpy makes, and no byte is copied."""
    padded = numpy.random.default_rng(5).integers(0, 256, (1100, 3000), numpy.uint8)
    for name, width in (("mono8", 1280), ("rgb8", 900), ("mono12", 1400), ("uyvy", 1500)):
        found = layout.Layout(pitch=3000)
        scale._library[:] = [Library()]
        scale.prepare()
        image, drawn = draw(padded.tobytes(), of(name, width), found, on_gpu=True, holes=[(5000, 9000)])
        assert image.copied == 0 and image.viewed[0] == 1100 and drawn.facts["where"] == "scaled on the GPU by library"
        assert drawn.png == draw(padded.tobytes(), of(name, width), found, holes=[(5000, 9000)])[1].png
    scale._library.clear()


def test_gpu_memory():
    """Without torch and cupy only those rows of an image in GPU memory are copied that are shown."""
    gray = numpy.random.default_rng(4).integers(0, 256, (1024, 1280), numpy.uint8)
    scale._library[:] = [None]
    image, drawn = draw(gray.tobytes(), of("mono8", 1280), on_gpu=True)
    assert image.copied == 512 * 1280 and "every 2nd row copied from the GPU" in drawn.facts["where"], drawn.facts
    expected = (gray[::2, ::2].astype(int) + gray[::2, 1::2]) // 2
    assert (decoded(drawn.png)[:, :, 0] == expected).all()
    image, drawn = draw(bytes(1 << 22), of("i16"), on_gpu=True)
    assert image.copied == scale.SAMPLE_BYTES and not drawn.png


def test_formats():
    """Who says what an image shows: the command line, the sender's leader, the layout; and what nobody can believe."""
    def shape(fields=(0, 0, 0, 0), found=None, wanted=None, size=307200):
        shown = layout.geometry(Image(bytes(size), fields=fields), found or layout.Layout(), wanted or layout.Wanted())
        return (shown.format.name, shown.width, shown.height, shown.pitch) if shown.height else (shown.format.name, shown.why)

    assert shape((640, 480, 0x01080001, 0)) == ("mono8", 640, 480, 640)
    assert shape((320, 480, 0x01100005, 0)) == ("mono12", 320, 480, 640)
    assert shape((640, 240, 0x010C0047, 0), layout.Layout(convert="mono12p")) == ("mono12", 640, 240, 1280)
    assert shape((640, 480, 0x01080001, 0), wanted=of("mono16", 160, 100)) == ("mono16", 160, 100, 320)
    rtp = layout.Layout(parser="rtp-raw", width=320, height=240, group=(2, 5), convert="unpack10-be", pitch=800)
    assert shape(found=rtp) == ("uyvy10", 320, 240, 1280)
    assert shape(found=layout.Layout(convert="int16-float32")) == ("f32", "")
    assert shape(wanted=of("mono16"), found=layout.Layout(row=1280, pitch=1536)) == ("mono16", 640, 200, 1536)
    assert "nobody said" in shape()[1]
    for width, height in ((1 << 32, 1), (1 << 32, 1 << 32), (640, 481), (307201, 1), ((1 << 64) - 1, (1 << 64) - 1)):
        assert shape((width, height, 0x01080001, 0))[0] == "u8", (width, height)
    assert shape((3, 1, 0x0210001F, 0))[0] == "u8"  # half a pair
    assert shape((640, 480, 0x01080001, 0), size=0)[0] == "u8"
    text = "base: udp\nend:\n  ring: 3\ngroup: {pixels: 2, bytes: 4}\nwidth: 1280\nring: 12\nrow: x\n"
    assert layout.read_layout(text) == layout.Layout(ring=12, width=1280, group=(2, 4))
    assert layout.read_layout(None) == layout.Layout()


def test_samples():
    """Samples that are no picture: lowest and highest of each column, gaps where they are missing, the tone's place."""
    time = numpy.arange(20000)
    values = numpy.round(1000 * numpy.sin(2 * numpy.pi * time * 100 / 1024)).astype("<i2")
    _, drawn = draw(values.tobytes(), of("i16"))
    found = drawn.facts["plot"]
    assert found["samples"] == 20000 and max(found["high"]) == values.max() and min(found["low"]) == values.min()
    assert numpy.argmax(found["spectrum"]) == 100 and found["spectrum"][100] == 0
    _, drawn = draw(values.tobytes(), of("i16"), holes=[(2000, 20000)])
    low = drawn.facts["plot"]["low"]
    assert None in low and low[0] is not None and low[-1] is not None
    odd = struct.pack("<4f", 1, float("nan"), float("inf"), -2)
    assert draw(odd, of("f32"))[1].facts["plot"]["low"] == [1, None, None, -2]
    assert draw(b"", of("f32"))[1].facts["plot"]["samples"] == 0


def test_taker():
    """Every image is given back; what is kept is the newest, but each stream has its turn, and holes are shown first."""
    def taken(images, ring=8):
        source = Source(images)
        taker = run.Taker(source, "x", layout.Layout(ring=ring))
        taker.start()
        assert source.empty.wait(harness.TIMEOUT)
        return source, taker

    images = [Image(b"", number=i) for i in range(100)]
    source, taker = taken(images)
    assert [image.released for image in images] == [1] * 99 + [0]
    assert taker.newest() is images[99] and taker.newest() is None
    source.over.set()
    taker.close()
    assert taker.taken == taker.latency()["images"] == 100
    both = [Image(b"", number=i, stream=i % 2) for i in range(9)]
    source, taker = taken(both)
    assert taker.newest() is both[8]  # of stream 0
    source.empty.clear()
    more = [Image(b"", number=i, stream=i % 2) for i in range(9)]
    source.left[:] = more
    assert source.empty.wait(harness.TIMEOUT) and taker.newest() is more[7]
    assert sum(image.released for image in both + more) == 16
    source.over.set()
    taker.close()
    holes = [Image(b"", holes=[(0, 1)]), Image(b"")]
    source, taker = taken(holes)
    assert holes[1].released and taker.newest() is holes[0]
    source.over.set()
    taker.close()
    few = [Image(b""), Image(b"")]
    source, taker = taken(few, ring=2)  # of two buffers none is kept until somebody looks
    assert [image.released for image in few] == [1, 1] and taker.newest() is None
    source.over.set()
    taker.close()
