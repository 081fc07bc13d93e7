# SPDX-License-Identifier: BSD-3-Clause
"""The layouts in config/ with frames from a file: every byte of every image, and what is missing."""
import json
import pathlib
import struct

import e2e
import frames

CONFIG = e2e.ROOT / "config"


def capture(directory, layout, frame_list, *arguments, expect=0):
    """Runs a capture of these frames; its summary's one `images` entry, and the bytes saved."""
    pcap, out = pathlib.Path(directory, "in.pcap"), pathlib.Path(directory, "out.raw")
    frames.write_pcap(pcap, frame_list)
    result = e2e.run("capture", "--image", str(layout), "--port", "net_pcap0,rx_pcap=%s" % pcap,
                     "--gpu", "host", "--idle", "1", "--save-images", str(out), "--json",
                     *arguments, expect=expect)
    summary = json.loads(result.out)
    assert len(summary["images"]) == 1, summary
    return summary["images"][0], out.read_bytes()


def shuffled(items, block):
    """Each `block` of them backwards: no image's frames come in order."""
    return [item for i in range(0, len(items), block) for item in reversed(items[i:i + block])]


def test_own_frames():
    """The payload runs on from frame to frame, so the images are the pattern, bit for bit."""
    count = 3 * 1024
    pattern = frames.prbs31(count * 1464)
    stream = frames.Stream(0, pattern)
    sent = shuffled([stream.frame(1518) for _ in range(count)], 16)
    with e2e.Folder() as directory:
        images, saved = capture(directory, CONFIG / "image-gdrcap.yaml",
                                sent + [frames.end_of_stream(0, count)])
    assert images["name"] == "own", images
    assert (images["begun"], images["complete"]) == (3, 3), images
    assert images["frames"]["placed"] == count and images["frames"]["filtered"] == 1, images
    assert saved == pattern


def test_loopback():
    """The same on any machine: what the sender makes, as images."""
    count = 2 * 1024
    with e2e.Folder() as directory:
        out = pathlib.Path(directory, "out.raw")
        result = e2e.run("loopback", "--port", "ring:wire", "--tx-port", "ring:wire", "--gpu", "host",
                         "--frames", str(count), "--image", str(CONFIG / "image-gdrcap.yaml"),
                         "--save-images", str(out), "--json")
        assert json.loads(result.out)["images"][0]["complete"] == 2, result
        assert out.read_bytes() == frames.prbs31(count * 1464)


def row(number, line, last=False):
    """A frame of the camera of config/image-camera-raw.yaml."""
    head = struct.pack(">I", number | last << 31) + struct.pack("<HHQ", line, 1280, 7)
    pixels = bytes((number * 31 + line * 7 + i) & 255 for i in range(1280))
    return frames.DESTINATION + frames.SOURCE + b"\x88\xb6" + head + pixels, pixels


def test_camera():
    """Two pictures of 512 rows; of the second row 7 is lost, and of the first one comes twice."""
    sent = [row(n, line, line == 511)[0] for n in (1, 2) for line in range(512)]
    del sent[512 + 7]
    sent.insert(5, sent[3])
    with e2e.Folder() as directory:
        images, saved = capture(directory, CONFIG / "image-camera-raw.yaml", sent, expect=3)
    assert (images["complete"], images["incomplete"]) == (1, 1), images
    assert images["frames"]["duplicate"] == 1, images
    assert images["pieces"] == {"expected": 1024, "placed": 1023, "lost": 1}, images
    incomplete = images["first_incomplete"][0]
    assert incomplete["number"] == 2, incomplete
    assert incomplete["missing"] == [[7 * 1536, 1280]], incomplete
    assert len(saved) == 2 * 512 * 1536
    for n in (1, 2):
        for line in range(512):
            at = (n - 1) * 512 * 1536 + line * 1536
            pixels = bytes(1280) if (n, line) == (2, 7) else row(n, line)[1]
            assert saved[at:at + 1280] == pixels, (n, line)


def test_refused():
    result = e2e.run("capture", "--image", "gvsp,bytes=4K", "--port", "net_null0", expect=2)
    assert "--image: piece: is missing" in result.err, result
    result = e2e.run("capture", "--image", "gvsp,bytes=4K,piece=1K", "--save", "/tmp/x",
                     "--port", "net_null0", expect=2)
    assert "save: is of frames" in result.err, result
