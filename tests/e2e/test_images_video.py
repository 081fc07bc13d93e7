# SPDX-License-Identifier: BSD-3-Clause
"""RFC 4175 from GStreamer's rtpvrawpay and from ffmpeg: packets with several lines, of mixed lengths. Every
picture is compared with what the sender itself wrote to a file."""
import array
import collections
import functools
import os
import struct

import e2e
import other_sender
import processes

PORT = 5004
# Bits a second. All packets of a test fit the kernel's ring (other_sender.port_of), so none is lost there however long a receiver
# has no core; on the way to it the kernel may still drop some, and then a slower sender is tried.
BITRATE = 200_000_000

# Name: GStreamer's format, its pixels in a group and the group's bytes, and gdrcap's words for it.
UYVY = ("UYVY", 2, 4, "sampling=YCbCr-4:2:2,depth=8")
UYVP = ("UYVP", 2, 5, "sampling=YCbCr-4:2:2,depth=10")
RGB = ("RGB", 1, 3, "sampling=RGB,depth=8")


def layout(width, height, words, pitch=None):
    return "rtp-raw,width=%d,height=%d,%s,ring=64,timeout=60,fill=%d%s" % (
        width, height, words, other_sender.FILL, ",pitch=%d" % pitch if pitch else "")


@functools.lru_cache(maxsize=None)
def need_gstreamer():
    processes.tool("gst-launch-1.0", "gstreamer1.0-tools")
    for element, package in (("rtpvrawpay", "good"), ("udpsink", "good"), ("videotestsrc", "base")):
        if os.system("gst-inspect-1.0 --exists %s" % element):
            raise e2e.Skip("GStreamer has no %s: apt-get install gstreamer1.0-plugins-%s" % (
                element, package))


def gstreamer(wire, path, form, width, height, pictures, mtu, chunks=None, more=(), divisor=1, first=0):
    """Plays pictures, no two alike in a byte's place, and writes what they are to `path`. more: what else
    it does with them; divisor: of the rate; first: the first packet's number."""
    need_gstreamer()
    wire.run("gst-launch-1.0", "-q", "videotestsrc", "num-buffers=%d" % pictures, "pattern=snow", "!",
             "video/x-raw,format=%s,width=%d,height=%d,framerate=30/1" % (form, width, height), "!",
             "tee", "name=both", "both.", "!", "queue", "!", "filesink", "location=%s" % path,
             "both.", "!", "queue", "!", "rtpvrawpay", "mtu=%d" % mtu, "seqnum-offset=%d" % first, "chunks-per-frame=%d" % (
                 chunks or height), "!", "udpsink", "host=" + other_sender.RECEIVER,
             "port=%d" % PORT, "sync=false", "max-bitrate=%d" % (BITRATE // divisor), *more)


def lines_of(payload):
    """[(length, line, offset)] of a packet."""
    lines, at, more = [], 14, True
    while more:
        length, line, offset = struct.unpack_from(">HHH", payload, at)
        lines.append((length, line & 0x7fff, offset & 0x7fff))
        more, at = offset & 0x8000, at + 6
    return lines


def packets_of(seen):
    """Payloads of the stream."""
    return [payload for _, port, payload in other_sender.datagrams(seen.frames) if port == PORT]


def rows_of(data, rows, row, pitch):
    """What lies in each picture's rows, without what is between them."""
    return b"".join(data[at * pitch:at * pitch + row] for at in range(rows))


def check(seen, truth, pictures, height, row, pitch=None):
    """cmp. GStreamer's own rows are a multiple of 4 bytes apart; what is between rows is nobody's."""
    with open(truth, "rb") as file:
        sent = file.read()
    assert len(sent) % (pictures * height) == 0, (len(sent), pictures)
    sent = rows_of(sent, pictures * height, row, len(sent) // (pictures * height))
    images = seen.images
    assert (images["complete"], images["incomplete"], images["begun"]) == (pictures, 0, pictures), images
    assert images["frames"]["placed"] == len(packets_of(seen)), images
    assert images["frames"]["misfit"] == images["frames"]["duplicate"] == 0, images
    assert images["skipped"] is None, images  # numbers are times
    pitch = pitch or row
    data = b"".join(rows_of(picture, height, row, pitch) for picture in seen.split(height * pitch))
    assert len(data) == len(sent), (len(data), len(sent))
    assert data == sent, "first difference at byte %d" % next(
        i for i, pair in enumerate(zip(data, sent)) if pair[0] != pair[1])


def video(form, width, height, pictures, mtu, pitch=None, chunks=None, first=0):
    return other_sender.slower_upon_loss(lambda divisor: played(
        form, width, height, pictures, mtu, pitch, chunks, divisor, first))


def played(form, width, height, pictures, mtu, pitch, chunks, divisor, first):
    name, pixels, group, words = form
    row = width // pixels * group
    with other_sender.Wire(mtu=9000 if mtu > 1460 else 1500, sink=PORT) as wire, processes.folder() as folder:
        truth = os.path.join(folder, "sent.raw")
        with other_sender.Capture(wire, folder, layout(width, height, words, pitch), "--match",
                                  "dst_port=%d" % PORT) as capture:
            gstreamer(wire, truth, name, width, height, pictures, mtu, chunks, divisor=divisor, first=first)
            seen = capture.seen()
        check(seen, truth, pictures, height, row, pitch)
    return packets_of(seen)


def test_uyvy_mtu_576():
    packets = video(UYVY, 640, 360, 4, 576)
    assert max(len(packet) for packet in packets) <= 576, max(map(len, packets))


def test_uyvy_mtu_1460():
    video(UYVY, 720, 480, 8, 1460)


def test_uyvp_mtu_576():
    video(UYVP, 640, 360, 4, 576)


def test_uyvp_mtu_1460():
    """10 bits: two pixels in five bytes, over the ends of packets."""
    packets = video(UYVP, 1280, 720, 5, 1460, chunks=100)
    assert any(len(lines_of(packet)) > 1 for packet in packets)


def test_uyvp_mtu_8960():
    packets = video(UYVP, 1280, 720, 5, 8960, chunks=10)
    assert max(map(len, packets)) > 8000 and any(len(lines_of(packet)) > 2 for packet in packets)


def test_uyvp_converted():
    """GStreamer's own words of its 10 bits: v216 has them in the upper ones of 16."""
    other_sender.slower_upon_loss(converted)


def converted(divisor):
    width, height, pictures = 640, 360, 5
    with other_sender.Wire() as wire, processes.folder() as folder:
        truth, words = os.path.join(folder, "sent.raw"), os.path.join(folder, "v216.raw")
        image = layout(width, height, UYVP[3]) + ",convert=unpack10-be"
        with other_sender.Capture(wire, folder, image, "--match", "dst_port=%d" % PORT) as capture:
            gstreamer(wire, truth, "UYVP", width, height, pictures, 1460, divisor=divisor, more=(
                "both.", "!", "queue", "!", "videoconvert", "dither=none", "!", "video/x-raw,format=v216",
                "!", "filesink", "location=%s" % words))
            seen = capture.seen()
        with open(words, "rb") as file:
            want = array.array("H", file.read())
    assert seen.images["complete"] == pictures, seen.images
    got = array.array("H", b"".join(seen.split(width * height * 4)))
    assert len(got) == len(want) == pictures * height * width * 2
    assert len(set(want)) > 200 and any(word >> 6 & 3 for word in want), len(set(want))
    assert got == array.array("H", (word >> 6 for word in want))


def test_rgb_mtu_1460():
    """Groups of three bytes, of which packets rarely hold a round number."""
    video(RGB, 322, 240, 8, 1460)


def test_rgb_mtu_8960():
    video(RGB, 322, 240, 8, 8960)


def test_pitch():
    """Rows 128 bytes apart, and an odd width of groups."""
    video(UYVP, 642, 240, 5, 1460, pitch=1792)
    video(UYVY, 642, 240, 5, 1460, pitch=1408)


def test_sequence_wraps():
    """16-bit numbers of packets begin again, the extension stays 0. In the long run all numbers come, and some a second time."""
    first, pictures = (0, 60) if e2e.LONG else (60000, 8)
    packets = video(UYVY, 640, 480, pictures, 576, first=first)
    numbers = [struct.unpack_from(">H", packet, 2)[0] for packet in packets]
    assert first + len(packets) > 65536 and any(b < a for a, b in zip(numbers, numbers[1:])), len(packets)
    assert {packet[12:14] for packet in packets} == {b"\0\0"}


def test_ffmpeg():
    """Three line headers in a packet."""
    processes.tool("ffmpeg", "ffmpeg")
    other_sender.slower_upon_loss(ffmpeg)


def ffmpeg(divisor):
    width, height, pictures = 320, 240, 20
    with other_sender.Wire(sink=PORT) as wire, processes.folder() as folder:
        truth = os.path.join(folder, "sent.raw")
        with other_sender.Capture(wire, folder, layout(width, height, UYVY[3]), "--match",
                                  "dst_port=%d" % PORT) as capture:
            source = ["-re", "-f", "lavfi", "-i", "testsrc=size=%dx%d:rate=%g" % (width, height, 25 / divisor),
                      "-frames:v", str(pictures), "-pix_fmt", "uyvy422", "-c:v", "rawvideo"]
            wire.run("ffmpeg", "-v", "error", *source, "-f", "rtp", "rtp://%s:%d?pkt_size=1400" % (
                other_sender.RECEIVER, PORT))
            wire.run("ffmpeg", "-v", "error", *source[1:], "-f", "rawvideo", truth)
            seen = capture.seen()
        check(seen, truth, pictures, height, width * 2)
    lines = collections.Counter(len(lines_of(packet)) for packet in packets_of(seen))
    assert max(lines) >= 3, lines
