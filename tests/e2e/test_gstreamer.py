# SPDX-License-Identifier: BSD-3-Clause
"""examples/gstreamer: gdrcapsrc in GStreamer's own tools, its buffers compared byte for byte with what was
sent."""
import contextlib
import os
import re
import signal
import struct
import subprocess
import threading

import pytest

import e2e
import other_sender
import processes
import test_images as images
import test_images_video as video

pytestmark = pytest.mark.long

WIDTH, HEIGHT, PAYLOAD = 62, 40, 500
GRAY, RGGB, RGB, RGBA, MONO10P = 0x01080001, 0x01080009, 0x02180014, 0x02200016, 0x010a0046
BITS = {GRAY: 8, RGGB: 8, RGB: 24, RGBA: 32, MONO10P: 10}
LOOPBACK = """
port: ring:gstreamer
tx_port: ring:gstreamer
gpu: host
seconds: 600
rate: 20mbit
pattern: {name: counter8}
frame: {size: 1054}
image:
  base: frame
  kind: {at: 14, bytes: 2}
  data: {kind: 0x6743, payload: 50}
  number: {at: 22, bytes: 8, divide: 16}
  index: {at: 22, bytes: 8, modulo: 16}
  piece: 1000
  pieces: 16
  ring: 1024
"""
LOOPBACK_CAPS = "caps=video/x-raw,format=GRAY8,width=160,height=100"


# ---- a camera's pictures in a file ----

def gvsp(block, packet_id, kind, data):
    return images.udp(struct.pack(">HHI", 0, block, kind << 24 | packet_id) + data)


def pixels(block, form):
    return bytes((7 * block + i * (i >> 8 | 1)) % 251 for i in range(WIDTH * HEIGHT * BITS[form] // 8))


def picture(block, form=GRAY, lose=()):
    """Leader, data, trailer of picture `block`, without packets number `lose`."""
    data = pixels(block, form)
    packets = [data[at:at + PAYLOAD] for at in range(0, len(data), PAYLOAD)]
    sent = [gvsp(block, 0, 1, struct.pack(">HHQIIIIIHH", 0, 1, 10**15 + block * 40_000_000, form, WIDTH,
                                          HEIGHT, 0, 0, 0, 0)),
            *[gvsp(block, 1 + i, 3, part) for i, part in enumerate(packets)],
            gvsp(block, 1 + len(packets), 2, struct.pack(">HHI", 0, 1, HEIGHT))]
    return [packet for i, packet in enumerate(sent) if i not in lose]


def usual(data, row):
    """Rows as far apart as GStreamer's elements expect them."""
    pad = bytes(-row % 4)
    return b"".join(data[at:at + row] + pad for at in range(0, len(data), row))


def config(folder, frames, more=0, extra="", image="gvsp,bytes=7500,piece=%d,ring=32" % PAYLOAD):
    """Plays the frames, and waits for `more` of them that never come."""
    path = os.path.join(folder, "camera.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write('port: "net_pcap0,rx_pcap=%s"\ngpu: host\nframes: %d\nimage: "%s"\n%s' % (
            images.write_pcap(folder, "camera.pcap", frames), len(frames) + more, image, extra))
    return path


# ---- GStreamer ----

def environment(folder, debug="gdrcapsrc:4"):
    if not os.environ.get("GST_PLUGIN"):
        raise e2e.Skip("built without GStreamer: apt-get install libgstreamer1.0-dev "
                       "libgstreamer-plugins-base1.0-dev")
    processes.tool("gst-launch-1.0", "gstreamer1.0-tools")
    return dict(os.environ, GST_PLUGIN_PATH=os.path.dirname(os.environ["GST_PLUGIN"]),
                GST_REGISTRY=os.path.join(folder, "registry.bin"), GST_DEBUG=debug, GST_DEBUG_NO_COLOR="1")


def launch(folder, *pipeline, expect=0):
    """gst-launch-1.0 to its end: what it says. expect None: it fails."""
    done = subprocess.run(["gst-launch-1.0", *pipeline], env=environment(folder), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=e2e.TIMEOUT)
    right = done.returncode == expect if expect is not None else done.returncode in (1, 255)
    assert right, "exit status %d: %s" % (done.returncode, done.stdout[-4000:])
    assert "CRITICAL" not in done.stdout, done.stdout[-4000:]
    return done.stdout


class Launched:
    """gst-launch-1.0 beside the block."""

    def __init__(self, folder, *pipeline):
        self.lines, self.news = [], threading.Condition()
        self.process = subprocess.Popen(["gst-launch-1.0", *pipeline], env=environment(folder),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line)
                self.news.notify_all()
        with self.news:
            self.lines.append(None)
            self.news.notify_all()

    def said(self):
        return "".join(line for line in self.lines if line)

    def wait_for(self, text, times=1):
        with self.news:
            self.news.wait_for(lambda: None in self.lines or self.said().count(text) >= times,
                               e2e.TIMEOUT)
            assert self.said().count(text) >= times, self.said()[-4000:]
        return self

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def finish(self, expect=0):
        self.process.wait(e2e.TIMEOUT)
        self.reader.join(e2e.TIMEOUT)
        assert expect is None or self.process.returncode == expect, "%s: %s" % (self.process.returncode, self.said()[-4000:])
        return self.said()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def place():
    with processes.folder() as folder:
        yield folder, os.path.join(folder, "out.raw")


def content(path):
    with open(path, "rb") as file:
        return file.read()


def buffers(said):
    """[(pts in ns, flags)] of what `identity` tells of them."""
    return [(sum(int(part) * scale for part, scale in zip(re.split("[:.]", pts), (
        3600 * 10**9, 60 * 10**9, 10**9, 1))), flags) for pts, flags in re.findall(
            r"chain.*?pts: ([0-9:.]+),.*?flags: \w+ (.*?), meta", said)]


# ---- tests ----

def test_inspect():
    with place() as (folder, _):
        said = processes.subprocess.run(["gst-inspect-1.0", "gdrcapsrc"], env=environment(folder),
                                        stdout=subprocess.PIPE, text=True, check=True).stdout
    for word in ("GstPushSrc", "config  ", "timestamps  ", "sender-clock  ", "drop-incomplete  ",
                 "video/x-bayer", "num-buffers  "):
        assert word in said, word


def test_pictures_of_a_camera():
    """Width, height and format are the leaders'. Rows of 62 pixels: GStreamer's have 64 bytes."""
    frames = [frame for block in range(1, 13) for frame in picture(block)]
    with place() as (folder, out):
        said = launch(folder, "-v", "gdrcapsrc", "config=" + config(folder, frames), "!", "filesink",
                      "location=" + out)
        data = content(out)
    assert re.search(r"GstPad:src: caps = video/x-raw, format=\(string\)GRAY8, width=\(int\)62, "
                     r"height=\(int\)40", said), said
    assert data == b"".join(usual(pixels(block, GRAY), WIDTH) for block in range(1, 13)), len(data)
    assert "12 images, all complete" in said and "WARNING" not in said, said


def test_format_changes():
    """In mid-stream, to a Bayer pattern and to colour."""
    kinds = {1: GRAY, 2: GRAY, 3: RGGB, 4: RGB, 5: GRAY}
    frames = [frame for block, form in kinds.items() for frame in picture(block, form)]
    with place() as (folder, out):
        said = launch(folder, "-v", "gdrcapsrc", "config=" + config(folder, frames), "!", "filesink",
                      "location=" + out)
        data = content(out)
    names = re.findall(r"GdrcapSrc:gdrcapsrc0.GstPad:src: caps = (\S+), format=\(string\)(\w+)", said)
    assert names == [("video/x-raw", "GRAY8"), ("video/x-bayer", "rggb"), ("video/x-raw", "RGB"),
                     ("video/x-raw", "GRAY8")], said
    assert data == b"".join(usual(pixels(block, form), WIDTH * BITS[form] // 8)
                            for block, form in kinds.items()), len(data)


def test_rows_with_meta():
    """An element that reads GstVideoMeta gets rows where they lie."""
    frames = [frame for block in (1, 2, 3) for frame in picture(block, RGB)]
    with place() as (folder, out):
        launch(folder, "gdrcapsrc", "config=" + config(folder, frames), "!", "videoconvert", "!",
               "video/x-raw,format=RGBA", "!", "filesink", "location=" + out)
        data = content(out)
    want = b"".join(pixels(block, RGB) for block in (1, 2, 3))
    assert data == b"".join(want[at:at + 3] + b"\xff" for at in range(0, len(want), 3)), len(data)


def test_no_name():
    """Packed 10 bits have none in GStreamer; unpacked ones are what the user says that they are."""
    frames = [frame for block in (1, 2) for frame in picture(block, MONO10P)]
    with place() as (folder, out):
        path = config(folder, frames, image="gvsp,bytes=3100,piece=500")
        said = launch(folder, "gdrcapsrc", "config=" + path, "!", "filesink", "location=" + out,
                      expect=1)
        assert "pixel format 0x010a0046 (convert: none) has no name in GStreamer" in said, said
        path = config(folder, frames, image="gvsp,bytes=3100,piece=500,convert=mono10p")
        launch(folder, "gdrcapsrc", "config=" + path, "caps=video/x-raw,format=GRAY16_LE", "!",
               "filesink", "location=" + out)
        data = content(out)
    want = []
    for block in (1, 2):
        bits = int.from_bytes(pixels(block, MONO10P), "little")
        want += [bits >> 10 * i & 1023 for i in range(WIDTH * HEIGHT)]
    assert data == struct.pack("<%dH" % len(want), *want), len(data)


def test_incomplete():
    """Flagged, or left out; a warning says that there were some, in either case."""
    frames = [*picture(1), *picture(2, lose=(3,)), *picture(3)]
    holes = bytearray(pixels(2, GRAY))
    holes[2 * PAYLOAD:3 * PAYLOAD] = bytes(PAYLOAD)
    for drop, want in (("false", [pixels(1, GRAY), bytes(holes), pixels(3, GRAY)]),
                       ("true", [pixels(1, GRAY), pixels(3, GRAY)])):
        with place() as (folder, out):
            said = launch(folder, "-v", "gdrcapsrc", "drop-incomplete=" + drop, "config=" + config(
                folder, frames), "!", "identity", "silent=false", "!", "filesink", "location=" + out)
            assert content(out) == b"".join(usual(data, WIDTH) for data in want)
        flags = [flags for _, flags in buffers(said)]
        assert ["corrupted" in text for text in flags] == [data == holes for data in want], said
        assert "2 complete, 1 incomplete" in said, said


def test_leader_is_lost():
    """Of the first picture: nobody knows its pixels. Of a later one: they are as they were."""
    frames = [*picture(1, lose=(0,)), *picture(2), *picture(3, lose=(0,)), *picture(4)]
    with place() as (folder, out):
        said = launch(folder, "gdrcapsrc", "config=" + config(folder, frames), "!", "filesink",
                      "location=" + out)
        assert content(out) == b"".join(usual(pixels(block, GRAY), WIDTH) for block in (2, 3, 4))
    assert "leader is lost" in said, said


def test_strange_pictures():
    """In mid-stream, from whoever can send a leader: left out, and the rest goes on."""
    short = [gvsp(2, 1 + i, 3, pixels(2, GRAY)[i * PAYLOAD:(i + 1) * PAYLOAD]) for i in range(3)]
    frames = [*picture(1), *short, gvsp(2, 4, 2, struct.pack(">HHI", 0, 1, HEIGHT)), *picture(3, MONO10P),
              *picture(4)]
    huge = bytearray(picture(5)[0])
    struct.pack_into(">II", huge, 42 + 8 + 16, 10000, 10000)
    frames += [bytes(huge), *picture(5)[1:], *picture(6)]
    with place() as (folder, out):
        said = launch(folder, "gdrcapsrc", "config=" + config(folder, frames), "!", "filesink",
                      "location=" + out)
        assert content(out) == b"".join(usual(pixels(block, GRAY), WIDTH) for block in (1, 4, 6)), said
    for text in ("image 2 is left out: its leader is lost", "image 3 is left out: the camera's pixel format",
                 "image 5 is left out: a picture of caps has 100000000 bytes"):
        assert text in said, (text, said)


def test_times():
    """The sender's: 25 pictures a second by its clock. Arrivals never go back."""
    frames = [frame for block in range(1, 6) for frame in picture(block)]
    said = {}
    with place() as (folder, out):
        for kind in ("sender", "arrival"):
            said[kind] = launch(folder, "-v", "gdrcapsrc", "timestamps=" + kind, "config=" + config(
                folder, frames), "!", "identity", "silent=false", "!", "filesink", "location=" + out)
    times = [pts for pts, _ in buffers(said["sender"])]
    assert [b - a for a, b in zip(times, times[1:])] == 4 * [40_000_000], said["sender"]
    assert times[0] < e2e.TIMEOUT * 10**9, said["sender"]  # since the pipeline plays
    times = [pts for pts, _ in buffers(said["arrival"])]
    assert len(times) == 5 and times == sorted(times), said["arrival"]


def test_num_buffers():
    """Of a run that has no end of its own."""
    with place() as (folder, out):
        path = os.path.join(folder, "loopback.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(LOOPBACK)
        launch(folder, "gdrcapsrc", "num-buffers=7", "config=" + path, LOOPBACK_CAPS, "!", "filesink",
               "location=" + out)
        assert content(out) == bytes(i % 256 for i in range(7 * 16000)), os.path.getsize(out)


def test_buffers_outlive_the_pipeline():
    """They are the session's own memory, which stays until the last of them is gone."""
    frames = [frame for block in range(1, 8) for frame in picture(block, RGBA)]
    with place() as (folder, out):
        path = config(folder, frames, more=1, image="gvsp,bytes=10000,piece=500,ring=32")
        env = environment(folder)
        done = subprocess.run([os.environ["GST_KEEP"], path, "7", out], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=e2e.TIMEOUT)
        assert done.returncode == 0, done
        assert content(out) == b"".join(pixels(block, RGBA) for block in range(1, 8))


def test_interrupt():
    """In mid-stream, and while nothing comes: -e has the pipeline end by itself, and without it the state
    changes."""
    with place() as (folder, out):
        path = os.path.join(folder, "loopback.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(LOOPBACK)
        with Launched(folder, "-e", "gdrcapsrc", "config=" + path, LOOPBACK_CAPS, "!", "filesink",
                      "buffer-mode=unbuffered", "location=" + out) as launched:
            assert processes.wait_until(lambda: os.path.exists(out) and os.path.getsize(out) > 10 * 16000,
                                        e2e.TIMEOUT), launched.said()
            launched.interrupt()
            said = launched.finish()
        assert "EOS" in said, said
        data = content(out)
        assert len(data) % 16000 == 0 and data[:160000] == bytes(i % 256 for i in range(160000))
        waits = config(folder, [frame for block in (1, 2) for frame in picture(block)], more=1)
        for how in (["-e"], []):
            with Launched(folder, *how, "-v", "gdrcapsrc", "config=" + waits, "!", "identity",
                          "silent=false", "!", "filesink", "location=" + out) as launched:
                launched.wait_for("chain", 2).interrupt()
                said = launched.finish(None)
            assert ("Got EOS" in said) == bool(how) and "Freeing pipeline" in said, said
        assert content(out) == b"".join(usual(pixels(block, GRAY), WIDTH) for block in (1, 2))


def test_wrong():
    """The library's words, and the element's."""
    with place() as (folder, out):
        sink = ["!", "filesink", "location=" + out]
        path = config(folder, picture(1), extra="frame.sise: 64\n")
        assert "did you mean 'frame.size'" in launch(folder, "gdrcapsrc", "config=" + path, *sink, expect=None)
        path = config(folder, picture(1))
        for arguments, text in (
                (["config=" + path, "index=2"], "image 2: the configuration has no such description"),
                (["config=" + path, "options=burst=1000"], "allowed: 1..256"),
                (["config=" + path, "options=port=net_pcap0,rx_pcap=/nowhere"], "/nowhere"),
                (["config=" + path, "caps=video/x-raw,format=RGB"], "are not what the layout says"),
                (["config=" + path, "caps=video/x-raw,width=63"], "are not what the layout says"),
                ([], "image 0: the configuration has no such description")):
            said = launch(folder, "gdrcapsrc", *arguments, *sink, expect=None)
            assert "ERROR: from element" in said and text in said, (text, said)


def rtp(form, width, height, pictures, caps, more=""):
    """From GStreamer's own payloader over a wire: caps are the layout's. The words of the receiver, what
    it wrote, and what was sent."""
    name, _, _, words = form
    with other_sender.Wire(sink=video.PORT) as wire, place() as (folder, out):
        truth = os.path.join(folder, "sent.raw")
        options = "port=net_af_packet0,iface=%s,framecnt=16384; gpu=host; idle_sleep=1000; match=dst_port=%d; " \
                  "image=%s%s" % (wire.right, video.PORT, video.layout(width, height, words), more)
        with Launched(folder, "-v", "gdrcapsrc", "options=" + options, "num-buffers=%d" % pictures, "!",
                      "filesink", "location=" + out) as launched:
            launched.wait_for("frames are received")
            video.gstreamer(wire, truth, name, width, height, pictures, 1460)
            said = launched.finish()
        assert re.search(r"GdrcapSrc:gdrcapsrc0.GstPad:src: caps = " + caps, said), said
        return content(out), content(truth)


def test_rtp():
    """UYVY is where it was. RGB rows have 966 bytes, and GStreamer's 968."""
    data, sent = rtp(video.UYVY, 640, 360, 5, r"video/x-raw, format=\(string\)UYVY, width=\(int\)640")
    assert data == sent and len(data) == 5 * 640 * 360 * 2
    data, sent = rtp(video.RGB, 322, 240, 5, r"video/x-raw, width=\(int\)322, height=\(int\)240, "
                     r"format=\(string\)RGB|video/x-raw, format=\(string\)RGB, width=\(int\)322")
    assert len(data) == len(sent) == 5 * 240 * 968
    assert video.rows_of(data, 1200, 966, 968) == video.rows_of(sent, 1200, 966, 968)


def test_gpu():
    """Images in GPU memory are copied to buffers."""
    if not os.path.exists("/dev/nvidiactl"):
        raise e2e.Skip("no GPU here")
    frames = [frame for block in range(1, 13) for frame in picture(block, RGB)]
    for memory in ("auto", "pinned"):
        with place() as (folder, out):
            path = config(folder, frames)
            launch(folder, "gdrcapsrc", "config=" + path, "options=gpu=0; memory=" + memory, "!",
                   "filesink", "location=" + out)
            assert content(out) == b"".join(usual(pixels(block, RGB), WIDTH * 3)
                                            for block in range(1, 13))
