# SPDX-License-Identifier: BSD-3-Clause
"""Images that we send by RFC 4175 and GVSP, judged by receivers that none of us wrote, in a network namespace of their own on
the other end of a veth pair: GStreamer and aravis. They send nothing, so each image waits until the one before it is there."""
import contextlib
import ctypes.util
import os
import random
import struct
import subprocess
import sys

import harness
import gdrcap
import e2e
import other_sender
import processes

# Theirs is the namespace's end, ours is here.
THEIR_MAC, OUR_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
THEIRS, OURS = other_sender.SENDER, other_sender.RECEIVER
RTP_PORT, GVSP_PORT = 5004, 50010
LEADER, TRAILER, DATA = 1, 2, 3


def sending(wire, **options):
    size = {"frame__size": 9018} if wire.mtu > 1500 else {}
    return gdrcap.Session(tx_port="net_af_packet0,iface=%s" % wire.right, gpu="host", sender="host", **size, **options)


def udp(data, port, source=40000):
    return gdrcap.headers(data, dst_mac=THEIR_MAC, src_mac=OUR_MAC, dst_ip=THEIRS, src_ip=OURS, dst_port=port,
                          src_port=source)


def noise(count, seed):
    return random.Random(seed).randbytes(count)


# ---- GVSP ----

# aravis' receiver, which controls a camera and says what it got: one buffer a line of its input. The camera is aravis' fake one,
# told to lose each packet of its own, so that all that comes of the stream is ours.
ARAVIS = """
import ctypes, sys
name, width, height, packet, path = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
arv = ctypes.CDLL(%r)
text, word, error = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p()
for function, result, *arguments in (
        ("arv_camera_new", word, text, word), ("arv_camera_set_region", None, word, *[ctypes.c_int] * 4, word),
        ("arv_camera_gv_set_packet_size_adjustment", None, word, ctypes.c_int),
        ("arv_camera_gv_set_packet_size", None, word, ctypes.c_int, word),
        ("arv_camera_get_payload", ctypes.c_uint, word, word),
        ("arv_camera_create_stream", word, word, word, word, word), ("arv_gv_stream_get_port", ctypes.c_uint16, word),
        ("arv_buffer_new", word, ctypes.c_size_t, word), ("arv_stream_push_buffer", None, word, word),
        ("arv_camera_start_acquisition", None, word, word), ("arv_camera_stop_acquisition", None, word, word),
        ("arv_stream_timeout_pop_buffer", word, word, ctypes.c_uint64), ("arv_buffer_get_status", ctypes.c_int, word),
        ("arv_buffer_get_frame_id", ctypes.c_uint64, word), ("arv_buffer_get_data", word, word, ctypes.c_void_p),
        ("arv_buffer_get_image_width", ctypes.c_int, word), ("arv_buffer_get_image_height", ctypes.c_int, word),
        ("arv_buffer_get_timestamp", ctypes.c_uint64, word), ("g_value_init", word, word, ctypes.c_size_t),
        ("g_value_set_uint", None, word, ctypes.c_uint), ("g_object_set_property", None, word, text, word)):
    setattr(getattr(arv, function), "restype", result)
    setattr(getattr(arv, function), "argtypes", arguments)
failure = ctypes.byref(error)

def done(value=True):
    if error.value or not value:
        sys.exit("aravis refuses: " + (ctypes.string_at(ctypes.cast(error.value + 8, ctypes.POINTER(text))[0]).decode()
                                       if error.value else "no such thing"))
    return value

camera = done(arv.arv_camera_new(name.encode(), failure))
arv.arv_camera_set_region(camera, 0, 0, width, height, failure)
done()
arv.arv_camera_gv_set_packet_size_adjustment(camera, 0)
arv.arv_camera_gv_set_packet_size(camera, packet, failure)
payload = done(arv.arv_camera_get_payload(camera, failure))
stream = done(arv.arv_camera_create_stream(camera, None, None, failure))
for name in (b"frame-retention", b"packet-timeout"):  # us: a sender without a core is no loss
    value = (ctypes.c_uint64 * 3)()
    arv.g_value_init(value, 7 << 2)  # an unsigned int
    arv.g_value_set_uint(value, 10000000)
    arv.g_object_set_property(stream, name, value)
arv.arv_stream_push_buffer(stream, arv.arv_buffer_new(payload, None))
arv.arv_camera_start_acquisition(camera, failure)
done()
print(arv.arv_gv_stream_get_port(stream), payload, flush=True)
size = ctypes.c_size_t()
for line in sys.stdin:
    buffer = arv.arv_stream_timeout_pop_buffer(stream, int(float(line) * 1e6))
    if not buffer:
        print("none", flush=True)
        continue
    data = arv.arv_buffer_get_data(buffer, ctypes.byref(size))
    status = arv.arv_buffer_get_status(buffer)
    with open(path, "wb") as file:
        file.write(ctypes.string_at(data, size.value))
    print(status, *((arv.arv_buffer_get_frame_id(buffer), arv.arv_buffer_get_image_width(buffer),
                     arv.arv_buffer_get_image_height(buffer), arv.arv_buffer_get_timestamp(buffer)) if status == 0 else ()),
          flush=True)
    arv.arv_stream_push_buffer(stream, buffer)
arv.arv_camera_stop_acquisition(camera, failure)
"""


def gvsp_packets(picture, block, width, height, piece, stamp):
    """(header, where its data begin and end): a leader, the picture's pieces, a trailer."""
    def head(kind, packet):
        return struct.pack(">HHI", 0, block, kind << 24 | packet)

    pieces = -(-len(picture) // piece)
    yield head(LEADER, 0) + struct.pack(">HHQIIIIIHH", 0, 1, stamp, 0x01080001, width, height, 0, 0, 0, 0), 0, 0
    for index in range(pieces):
        yield head(DATA, index + 1), index * piece, min((index + 1) * piece, len(picture))
    yield head(TRAILER, pieces + 1) + struct.pack(">HHI", 0, 1, height), 0, 0


class Aravis:
    """Its receiver in the wire's namespace, for a `with` block."""

    def __init__(self, wire, folder, width, height, piece):
        library = ctypes.util.find_library("aravis-0.8")
        if not library:
            raise e2e.Skip("libaravis is not installed: apt-get install aravis-tools")
        self.path = os.path.join(folder, "image.raw")
        self.command = [*wire.inside, sys.executable, "-c", ARAVIS % library, "Aravis-Fake-GV01", str(width), str(height),
                        str(piece + 36), self.path]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.port, self.payload = map(int, self.line().split())
        return self

    def line(self):
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        return line

    def take(self):
        """([status, block id, width, height, time stamp], bytes) of the next buffer."""
        self.process.stdin.write("%f\n" % harness.TIMEOUT)
        self.process.stdin.flush()
        told = self.line().split()
        with open(self.path, "rb") as file:
            return told, file.read()

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def fake_camera(wire):
    """On our end, where its stream would come from."""
    processes.tool("arv-fake-gv-camera-0.8", "aravis-tools")
    wire.set([], "ipv4/ip_local_port_range", "%d %d" % (GVSP_PORT, GVSP_PORT))
    with subprocess.Popen(["arv-fake-gv-camera-0.8", "-i", OURS, "-s", "GV01", "-r", "1000"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as camera:
        try:
            there = ":%04X " % 3956
            assert processes.wait_until(lambda: there in wire.command("cat", "/proc/net/udp"), 60), "no camera"
            yield camera
        finally:
            camera.kill()


def gvsp(width, height, piece, pictures, two_pieces):
    with other_sender.Wire() as wire, processes.folder() as folder, fake_camera(wire), \
            Aravis(wire, folder, width, height, piece) as receiver, sending(wire) as session:
        queue, memory = session.senders[0], gdrcap.aligned(width * height)
        assert receiver.payload == width * height
        if two_pieces:
            session.register(memory)
        for block in range(65533, 65533 + pictures):
            block = block % 65535 or 65535  # 0 is none
            picture = memory[:width * height]
            picture[:] = noise(width * height, block)
            frames = []
            for head, start, end in gvsp_packets(picture, block, width, height, piece, 1000 + block):
                data = picture[start:end]
                if two_pieces and end:
                    frames.append((udp(len(head) + len(data), receiver.port, GVSP_PORT) + head, data))
                else:
                    frames.append(udp(head + data, receiver.port, GVSP_PORT) + head + data)
            assert queue.send(frames, timeout=harness.TIMEOUT) == len(frames)
            told, data = receiver.take()
            assert told == ["0", str(block), str(width), str(height), str(1000 + block)], (block, told)
            assert data == bytes(picture), "block %d has other bytes" % block
        assert queue.counts["failed"] == 0, queue.counts


def test_gvsp():
    """Each is SUCCESS, with every byte; block ids wrap from 65535 to 1."""
    gvsp(640, 480, 1364, 6, False)


def test_gvsp_from_registered_memory():
    """Headers in slots, pixels where they are: UDP without a checksum."""
    gvsp(512, 200, 1000, 4, True)


# ---- RFC 4175 ----

def lines_of(at, room, row, group, height):
    """[(row, byte in it, bytes)] from byte `at` of a picture on, as many as fit behind their headers."""
    lines = []
    while at < row * height and room > 6 + group:
        part = min(row - at % row, (room - 6) // group * group)
        lines.append((at // row, at % row, part))
        at, room = at + part, room - 6 - part
    return lines


def rtp_packets(picture, row, pixels, group, most, stamp, sequence):
    """Payloads of UDP, of `most` bytes at most. pixels: in a group of `group` bytes."""
    packets, at = [], 0
    while at < len(picture):
        lines = lines_of(at, most - 14, row, group, len(picture) // row)
        count = sum(part for _, _, part in lines)
        last = at + count == len(picture)
        number = sequence + len(packets)
        packet = struct.pack(">BBHIIH", 0x80, 96 | last << 7, number & 0xffff, stamp, 0x47445243, number >> 16 & 0xffff)
        for index, (line, offset, part) in enumerate(lines):
            more = index + 1 < len(lines)
            packet += struct.pack(">HHH", part, line, offset // group * pixels | more << 15)
        packets.append(packet + picture[at:at + count])
        at += count
    return packets


@contextlib.contextmanager
def gstreamer(wire, path, sampling, depth, width, height):
    """Writes the pictures that come to `path`, each at once."""
    processes.tool("gst-launch-1.0", "gstreamer1.0-tools")
    for element in ("rtpvrawdepay", "udpsrc"):
        if os.system("gst-inspect-1.0 --exists %s" % element):
            raise e2e.Skip("GStreamer has no %s: apt-get install gstreamer1.0-plugins-good" % element)
    caps = ("application/x-rtp,media=(string)video,clock-rate=(int)90000,encoding-name=(string)RAW,payload=(int)96,"
            "sampling=(string)%s,depth=(string)%d,width=(string)%d,height=(string)%d" % (sampling, depth, width, height))
    with wire.running("gst-launch-1.0", "-q", "udpsrc", "address=" + THEIRS, "port=%d" % RTP_PORT,
                      "buffer-size=4000000", "caps=" + caps, "!", "rtpvrawdepay", "!", "filesink", "location=%s" % path,
                      "sync=false", "buffer-mode=unbuffered") as process:
        wire.wait_for_socket(RTP_PORT)
        yield process


def rfc4175(sampling, depth, width, height, group, pixels, most, pictures=4, mtu=1500):
    row = width // pixels * group
    with other_sender.Wire(mtu=mtu) as wire, processes.folder() as folder:
        path, sent, sequence = os.path.join(folder, "got.raw"), b"", 65536 - 20
        with gstreamer(wire, path, sampling, depth, width, height) as process, sending(wire) as session:
            queue = session.senders[0]
            for number in range(pictures):
                picture = noise(row * height, number)
                packets = rtp_packets(picture, row, pixels, group, most, 3000 * number, sequence)
                sequence += len(packets)
                frames = [udp(packet, RTP_PORT) + packet for packet in packets]
                assert queue.send(frames, timeout=harness.TIMEOUT) == len(frames)
                sent += picture
                assert processes.wait_until(lambda: os.path.getsize(path) >= len(sent) or process.poll() is not None,
                                            harness.TIMEOUT), "picture %d did not come" % number
            counts = queue.counts
        assert counts["unsent"] == counts["failed"] == 0, counts
        with open(path, "rb") as file:
            got = file.read()
    assert len(got) == len(sent), (len(got), len(sent))
    assert got == sent, "first difference at byte %d" % next(i for i, pair in enumerate(zip(got, sent)) if pair[0] != pair[1])
    return packets


def test_rfc4175_uyvy():
    """8 bits, lines that begin and end in the middle of packets."""
    packets = rfc4175("YCbCr-4:2:2", 8, 320, 240, 4, 2, 1200)
    assert any(struct.unpack_from(">H", packet, 18)[0] & 0x8000 for packet in packets), "no packet has two lines"


def test_rfc4175_uyvp():
    """10 bits: two pixels in five bytes."""
    rfc4175("YCbCr-4:2:2", 10, 320, 120, 5, 2, 1460)


def test_rfc4175_jumbo():
    rfc4175("RGB", 8, 320, 160, 3, 1, 8000, mtu=9000)
