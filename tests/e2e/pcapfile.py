# SPDX-License-Identifier: BSD-3-Clause
"""pcap and pcapng files, written and read by hand, as their specifications say (draft-ietf-opsawg-
pcap and -pcapng): an opinion of its own on files that gdrcap reads and writes."""
import collections
import struct

ETHERNET = 1
MAGIC_US, MAGIC_NS = 0xA1B2C3D4, 0xA1B23C4D
SECTION, INTERFACE, SIMPLE, STATISTICS, ENHANCED = 0x0A0D0D0A, 1, 3, 5, 6
START_NS = 1_700_000_000_000_000_000

Frame = collections.namedtuple("Frame", "time_ns data original comments interface")


# ---- writing ----

def pcap_header(order="<", nano=True, link=ETHERNET, snap=262144):
    return struct.pack(order + "IHHiIII", MAGIC_NS if nano else MAGIC_US, 2, 4, 0, 0, snap, link)


def pcap_record(frame, time_ns, order="<", nano=True, length=None, original=None):
    return struct.pack(order + "IIII", time_ns // 10**9,
                       time_ns % 10**9 // (1 if nano else 1000),
                       len(frame) if length is None else length,
                       len(frame) if original is None else original) + frame


def times_of(frames, times_ns, gap_ns):
    return times_ns or [START_NS + i * gap_ns for i in range(len(frames))]


def pcap_bytes(frames, times_ns=None, gap_ns=1000, order="<", nano=True, link=ETHERNET):
    return pcap_header(order, nano, link) + b"".join(
        pcap_record(frame, time, order, nano)
        for frame, time in zip(frames, times_of(frames, times_ns, gap_ns)))


def block(kind, body, order="<", total=None, tail=None):
    """`total`, `tail`: its two lengths, when they are to be wrong."""
    body += bytes(-len(body) % 4)
    if total is None:
        total = len(body) + 12
    return (struct.pack(order + "II", kind, total) + body +
            struct.pack(order + "I", total if tail is None else tail))


def option(code, value, order="<"):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order="<"):
    return block(SECTION, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order="<", link=ETHERNET, snap=0, resolution=9):
    options = option(9, bytes([resolution]), order) + option(0, b"", order)
    return block(INTERFACE, struct.pack(order + "HHI", link, 0, snap) + options, order)


def enhanced(frame, time_ns, order="<", number=0, length=None, original=None, **lengths):
    return block(ENHANCED, struct.pack(
        order + "IIIII", number, time_ns >> 32, time_ns & 0xFFFFFFFF,
        len(frame) if length is None else length,
        len(frame) if original is None else original) + frame, order, **lengths)


def pcapng_bytes(frames, times_ns=None, gap_ns=1000, order="<", link=ETHERNET):
    return section(order) + interface(order, link) + b"".join(
        enhanced(frame, time, order)
        for frame, time in zip(frames, times_of(frames, times_ns, gap_ns)))


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return str(path)


def write_pcap(path, frames, **options):
    return write(path, pcap_bytes(frames, **options))


def write_pcapng(path, frames, **options):
    return write(path, pcapng_bytes(frames, **options))


# ---- reading ----

def options_of(data, order):
    """[(code, value)] up to the end of options or of the block."""
    found, at = [], 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from(order + "HH", data, at)
        if code == 0:
            break
        found.append((code, data[at + 4:at + 4 + length]))
        assert at + 4 + length <= len(data), "an option runs out of its block"
        at += 4 + length + -length % 4
    return found


def read_pcap(data):
    order = "<" if data[:4] in (struct.pack("<I", MAGIC_US), struct.pack("<I", MAGIC_NS)) else ">"
    magic, _, _, _, _, _, link = struct.unpack_from(order + "IHHiIII", data)
    assert magic in (MAGIC_US, MAGIC_NS) and link & 0x3FFFFFF == ETHERNET, "magic %x, link %d" % (magic, link)
    unit, at, frames = 1 if magic == MAGIC_NS else 1000, 24, []
    while at < len(data):
        seconds, fraction, length, original = struct.unpack_from(order + "IIII", data, at)
        at += 16
        assert at + length <= len(data), "the last record is cut off"
        frames.append(Frame(seconds * 10**9 + fraction * unit, data[at:at + length], original,
                            [], 0))
        at += length
    return frames


def blocks_of(data):
    """(order, kind, body) of each block; both lengths must agree."""
    order, at = "<", 0
    while at < len(data):
        kind = struct.unpack_from("<I", data, at)[0]
        if kind == SECTION:
            order = "<" if data[at + 8:at + 12] == struct.pack("<I", 0x1A2B3C4D) else ">"
        kind, total = struct.unpack_from(order + "II", data, at)
        assert total >= 12 and total % 4 == 0 and at + total <= len(data), (
            "block of %d bytes at %d of %d" % (total, at, len(data)))
        tail = struct.unpack_from(order + "I", data, at + total - 4)[0]
        assert tail == total, "block lengths %d and %d at %d" % (total, tail, at)
        yield order, kind, data[at + 8:at + total - 4]
        at += total


def resolution_of(options):
    """Units a second of an interface's times."""
    for code, value in options:
        if code == 9:
            return 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
    return 10**6


class Capture:
    """A pcapng file: frames, interfaces ({option: value}), their statistics ({option: number})."""

    def __init__(self, data):
        self.frames, self.interfaces, self.statistics = [], [], []
        units = []
        for order, kind, body in blocks_of(data):
            if kind == INTERFACE:
                link = struct.unpack_from(order + "H", body)[0]
                assert link == ETHERNET, "link type %d" % link
                options = options_of(body[8:], order)
                self.interfaces.append(dict(options))
                units.append(resolution_of(options))
            elif kind == ENHANCED:
                self.add_frame(order, body, units)
            elif kind == STATISTICS:
                number = struct.unpack_from(order + "I", body)[0]
                self.statistics.append({"interface": number, **{
                    code: struct.unpack(order + "Q", value)[0]
                    for code, value in options_of(body[12:], order) if len(value) == 8}})

    def add_frame(self, order, body, units):
        number, high, low, length, original = struct.unpack_from(order + "IIIII", body)
        end = 20 + length
        assert end <= len(body), "a packet runs out of its block"
        comments = [value.decode() for code, value in
                    options_of(body[end + -length % 4:], order) if code == 1]
        time = (high << 32 | low) * 10**9 // units[number]
        self.frames.append(Frame(time, body[20:end], original, comments, number))

    def received(self):
        """isb_ifrecv, summed; None where no interface says it."""
        return self.total(4)

    def dropped(self):
        """isb_ifdrop."""
        return self.total(5)

    def total(self, code):
        said = [one[code] for one in self.statistics if code in one]
        return sum(said) if said else None


def read(path):
    """The file's frames, whatever it is."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] == struct.pack("<I", SECTION):
        return Capture(data).frames
    return read_pcap(data)


def read_capture(path):
    with open(path, "rb") as file:
        return Capture(file.read())


def differ(got, wanted):
    """None when both lists of frame bytes are the same, else where they part."""
    for index, (left, right) in enumerate(zip(got, wanted)):
        if left != right:
            offset = next((i for i, pair in enumerate(zip(left, right)) if pair[0] != pair[1]),
                          min(len(left), len(right)))
            return "frame %d of %d and %d bytes differs at offset %d: %s, not %s" % (
                index, len(left), len(right), offset, left[offset:offset + 8].hex(),
                right[offset:offset + 8].hex())
    return None if len(got) == len(wanted) else "%d frames, not %d" % (len(got), len(wanted))
