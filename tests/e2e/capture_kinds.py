# SPDX-License-Identifier: BSD-3-Clause
"""Capture files of every kind, made by hand: one row each of KINDS, with what gdrcap does with it."""
import bz2
import collections
import gzip
import lzma
import struct

from pcapfile import (ENHANCED, ETHERNET, INTERFACE, MAGIC_NS, SECTION, SIMPLE, START_NS, STATISTICS,
                      block, enhanced, interface, option, pcap_bytes, pcap_header, pcap_record, section)

OBSOLETE, NAMES, CUSTOM, JOURNAL, SECRETS = 2, 4, 0xBAD, 9, 10
HEAD = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1])
TIME = START_NS
END = option(0, b"")


def frame(length, number=0, kind=b"\x12\x34"):
    """All bytes differ from their neighbours', and frames from each other."""
    return HEAD + kind + bytes((number + 7 * i) % 251 for i in range(length - 12 - len(kind)))


FRAMES = [frame(length, number) for number, length in enumerate((60, 61, 90, 1514, 128))]
TIMES = [TIME + i * 1_000_000 for i in range(5)]  # in whole ms: every unit of time has them


def blocks(*parts, order="<", **options):
    """A pcapng file of one interface and these blocks."""
    return section(order) + interface(order, **options) + b"".join(parts)


def packets(frames=FRAMES, unit_ns=1, order="<", number=0, **options):
    return b"".join(enhanced(one, time // unit_ns, order, number=number, **options) for one, time in zip(frames, TIMES))


def described(*options, link=ETHERNET, snap=0):
    """An interface with these options."""
    return block(INTERFACE, struct.pack("<HHI", link, 0, snap) + b"".join(options) + END)


def packet(data, *options, time=TIME, number=0):
    body = struct.pack("<IIIII", number, time >> 32, time & 0xFFFFFFFF, len(data), len(data)) + data
    return block(ENHANCED, body + bytes(-len(data) % 4) + b"".join(options) + END)


def simple(data, original=None):
    return block(SIMPLE, struct.pack("<I", len(data) if original is None else original) + data)


def obsolete(data, time=TIME, number=0, drops=3):
    return block(OBSOLETE, struct.pack("<HHIIII", number, drops, time >> 32, time & 0xFFFFFFFF, len(data), len(data)) + data)


def section_of(length, minor=0, major=1, options=b""):
    return block(SECTION, struct.pack("<IHHq", 0x1A2B3C4D, major, minor, length) + options)


def old_pcap(magic, version, record, order="<"):
    """Of another program: the same head, other records."""
    return (struct.pack(order + "IHHiIII", magic, *version, 0, 0, 65535, ETHERNET) +
            b"".join(record(one, time) for one, time in zip(FRAMES, TIMES)))


def kuznetzov(order):
    """Alexey Kuznetzov's patch: records with an interface, protocol and kind."""
    return old_pcap(0xA1B2CD34, (2, 4), lambda one, time: struct.pack(
        order + "IIIIiHBB", time // 10**9, time % 10**9 // 1000, len(one), len(one), 2, 0x1234, 0, 0) + one, order)


def ixia(magic):
    """Its head has the bytes of all records."""
    rows = b"".join(pcap_record(one, time, nano=False) for one, time in zip(FRAMES, TIMES))
    return struct.pack("<IHHiIIII", magic, 2, 4, 0, 0, 65535, ETHERNET, len(rows)) + rows


def pcap_of(*frames, **options):
    return pcap_bytes(frames, times_ns=TIMES[:len(frames)], **options)


def after(*good, record):
    """A file whose last record is this."""
    return pcap_of(*good) + record


def cut(data, bytes_less):
    return data[:len(data) - bytes_less]


def snoop():
    """RFC 1761."""
    return b"snoop\0\0\0" + struct.pack(">II", 2, 4) + b"".join(
        struct.pack(">IIIIII", len(one), len(one), 24 + len(one), 0, 1700000000, 0) + one for one in FRAMES)


def longer(count):
    """The frames, each with an FCS of so many bytes."""
    return [one + bytes(count) for one in FRAMES]


def counts(resolution):
    """Each frame's time by if_tsresol; all fit into 64 bits."""
    units = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10 ** resolution
    early = [time - (TIME if units > 10**10 else 0) for time in TIMES]
    return section() + interface(resolution=resolution) + b"".join(
        enhanced(one, time * units // 10**9) for one, time in zip(FRAMES, early))


# ---- the kinds ----

Kind = collections.namedtuple("Kind", "name data good words by fcs port remedy", defaults=(None, "", "tshark", 0, None, True))
KINDS = []


def kind(name, data, *words, **rest):
    """A row. words: of the error with which it is refused; good: frames before that, which a port receives; by: what reads it
    as the formats' specifications say: tshark, tcpdump, or only pcapfile.py; fcs: bytes, all 0, at each frame's end that are none
    of its; port: (words, numbers of the frames that are saved), where a port takes what `replay` refuses; remedy: what the error
    says makes a file that is taken."""
    KINDS.append(Kind(name, data, words=words, **rest))


F = FRAMES
PCAP, PCAPNG, PACKETS = pcap_of(*F), blocks(packets()), interface() + packets()
FCS = ETHERNET | 1 << 26  # and words of 16 bits in the upper 4 bits
CUT, BROKEN = "ends in the middle of frame", "is corrupt"

for order, nano in (("<", False), (">", False), ("<", True), (">", True)):
    kind("pcap-%s-%s" % ("ns" if nano else "us", "little" if order == "<" else "big"), pcap_of(*F, order=order, nano=nano))
for snap in (0, 64, 65535, 262145, 0x7FFFFFFF, 0xFFFFFFFF):
    kind("pcap-snap-%d" % snap, pcap_header(snap=snap) + PCAP[24:])
for version in ((2, 1), (2, 3), (543, 0)):
    kind("pcap-version-%d.%d" % version, struct.pack("<IHH", MAGIC_NS, *version) + PCAP[8:])
kind("pcap-version-2.5", struct.pack("<IHH", MAGIC_NS, 2, 5) + PCAP[8:], "its version is 2.5", "editcap", good=0)
kind("pcap-version-1.2", struct.pack("<IHH", MAGIC_NS, 1, 2) + PCAP[8:], "its version is 1.2", good=0, remedy=False)
kind("pcap-version-2.3-cut", struct.pack("<IHHiIII", MAGIC_NS, 2, 3, 0, 0, 65535, 1) + pcap_record(F[0], TIME) +
     pcap_record(F[1][:60], TIME, length=90, original=60), "frame 2 is cut to 60 of its 90 bytes", good=1, remedy=False)
kind("pcap-zone", struct.pack("<IHHi", MAGIC_NS, 2, 4, 3600) + PCAP[12:])
kind("pcap-kuznetzov-little", kuznetzov("<"))
kind("pcap-kuznetzov-big", kuznetzov(">"))
kind("pcap-fcs-4", pcap_of(*longer(4), link=FCS | 2 << 28), fcs=4)
kind("pcap-fcs-2", pcap_of(*longer(2), link=FCS | 1 << 28), fcs=2)
kind("pcap-fcs-30", pcap_of(*longer(30), link=FCS | 15 << 28), fcs=30)
kind("pcap-fcs-0", pcap_of(*F, link=FCS))
kind("pcap-fcs-of-a-jumbo-frame", pcap_of(F[0] + bytes(4), frame(9212) + bytes(4), link=FCS | 2 << 28), fcs=4)
for link, name in ((0, "BSD loopback"), (101, "raw IP"), (105, "802.11"), (108, "OpenBSD loopback"),
                   (113, "Linux cooked v1"), (127, "radiotap"), (147, "user 0"), (228, "raw IPv4"), (276, "Linux cooked v2")):
    kind("pcap-link-%d" % link, pcap_of(*F, link=link), "its link type is %d (" % link, name, "tcpdump -i eth0", good=0,
         remedy=False)
kind("pcap-link-reserved-bits", pcap_of(*F, link=ETHERNET | 1 << 16), "its link type is 65537", good=0, remedy=False)
kind("pcap-cut", after(F[0], F[1], record=pcap_record(F[2], TIME, original=1514) + pcap_record(F[3], TIME)),
     "frame 3 is cut to 90 of its 1514 bytes", "tcpdump -s 0", good=2, remedy=False)
kind("pcap-cut-to-0", after(F[0], record=pcap_record(b"", TIME, original=100)), "frame 2 is cut to 0 of its 100 bytes", good=1,
     remedy=False)
kind("pcap-longer-than-its-length", after(F[0], F[1], record=pcap_record(F[2], TIME, original=60) + pcap_record(F[3], TIME)),
     "frame 3 has 90 bytes, but its length is said to be 60", "editcap OLD NEW 3", good=2)
kind("pcap-length-0", after(F[0], record=pcap_record(b"", TIME) + pcap_record(F[3], TIME)), "frame 2 is 0 bytes long",
     "editcap OLD NEW 2", port=("1 frame damaged", (0, 1, 2)))
kind("pcap-zeros-at-the-end", PCAP + bytes(16), "frame 6 is 0 bytes long", port=("1 frame damaged", range(6)))
kind("pcap-garbage-at-the-end", PCAP + b"\xff" * 100, "frame 6", BROKEN, "editcap -r FILE NEW 1-5", good=5)
kind("pcap-text-at-the-end", PCAP + b"this is no frame", "frame 6", BROKEN, good=5)
kind("pcap-head-cut", PCAP[:20], "the middle of its header, after 20 bytes", good=0, remedy=False)
kind("pcap-head-alone", PCAP[:24], "no frames", port=("no frame was received", ()), remedy=False)
kind("pcap-record-head-cut", after(F[0], F[1], record=b"\1" * 9), CUT + " 3 (9 bytes", "1-2", good=2)
kind("pcap-record-cut", cut(PCAP, 9), CUT + " 5 (135 bytes", "editcap -r FILE NEW 1-4", good=4)
kind("pcap-record-of-262144", pcap_of(F[0], frame(262144)), "9212 are the most", port=("1 frame not saved", (0,)))
kind("pcap-record-of-262145", pcap_of(F[0], frame(262145)), BROKEN, "262144 are the most", good=1)
kind("pcap-times-that-step-back", pcap_bytes(F, times_ns=[TIME + 10**9, TIME, TIME + 5, TIME - 10**9, TIME + 2 * 10**9]))
kind("pcap-time-2106", pcap_bytes(F, times_ns=[(2**32 - 1) * 10**9 + i for i in range(5)]))
kind("pcap-time-2038", pcap_bytes(F, times_ns=[2**31 * 10**9 + i for i in range(5)]))
kind("pcap-time-0", pcap_bytes(F, times_ns=list(range(5))))
kind("pcap-microseconds-10^6", pcap_of(F[0], nano=False) + struct.pack("<IIII", 1700000000, 10**6, 60, 60) + F[0],
     "frame 2 has an impossible time (1700000000 s, 1000000000 ns)", "1-1", good=1)

kind("empty", b"", "the file is empty", good=0, remedy=False)
kind("zeros", bytes(10000), "not a pcap or pcapng file", good=0, remedy=False)
kind("text", b"this is no capture file, but a text\n" * 100, "not a pcap or pcapng file", good=0, remedy=False)
kind("ixia-hardware", ixia(0x1C0001AC), "not a pcap or pcapng file", "editcap", good=0)
kind("ixia-software", ixia(0x1C0001AB), "not a pcap or pcapng file", "editcap", good=0)
kind("snoop", snoop(), "not a pcap or pcapng file", "editcap", good=0)
kind("gzip", gzip.compress(PCAP), "compressed", "gunzip", good=0, remedy=False)
kind("bzip2", bz2.compress(PCAP), "compressed", "bunzip2", good=0, remedy=False)
kind("xz", lzma.compress(PCAP), "compressed", "unxz", good=0, remedy=False)
kind("zstd", b"\x28\xb5\x2f\xfd" + PCAP, "compressed", "unzstd", good=0, remedy=False)

kind("frames-with-a-tag", pcap_of(frame(100, 1, b"\x81\0\0\x2a\x08\0"), F[0]))
kind("frames-with-two-tags", pcap_of(frame(100, 1, b"\x88\xa8\0\x2a\x81\0\0\x2b\x08\0"), F[0],
                                     frame(100, 1, b"\x91\0\0\x2a\x81\0\0\x2b\x08\0")))
kind("frames-of-9216-with-fcs", pcap_of(F[0], frame(9212), F[1]))
kind("frames-of-9217-with-fcs", pcap_of(F[0], frame(9213), F[1]), "frame 2 is 9213 bytes", "tshark -r OLD",
     port=("1 frame not saved", (0, 2)))
kind("frames-of-64-kib", pcap_of(F[0], frame(65549), F[1]), "frame 2 is 65549 bytes", "gso off",
     port=("1 frame not saved", (0, 2)))
kind("frames-of-14", pcap_of(F[0], frame(14), F[1]))
kind("frames-of-13", pcap_of(F[0], HEAD + b"\x12", F[1]), "frame 2 is 13 bytes long", "editcap OLD NEW 2",
     port=("1 frame damaged", (0, 1, 2)))

kind("pcapng-little", PCAPNG)
kind("pcapng-big", blocks(packets(order=">"), order=">"))
kind("pcapng-two-sections", blocks(packets(F[:2])) + blocks(packets(F[2:], unit_ns=1000), resolution=6))
kind("pcapng-sections-of-both-byte-orders", blocks(packets(F[:2], order=">"), order=">") + blocks(packets(F[2:])))
kind("pcapng-sections-without-frames", section() + section(">") + section() + PACKETS + section(">"))
kind("pcapng-section-of-another-link-type", blocks(packets(F[:2])) + blocks(packets(F[2:]), link=113),
     "link type of frame 3 is 113 (Linux cooked v1)", "frame.encap_type == 1", good=2)
kind("pcapng-section-length", section_of(len(PACKETS)) + PACKETS)
kind("pcapng-section-length-wrong", section_of(20) + PACKETS + section_of(10**9) + PACKETS)
kind("pcapng-version-1.2", section_of(-1, minor=2) + PACKETS)
kind("pcapng-version-2.0", section_of(-1, major=2) + PACKETS, "its version is 2.0", good=0, remedy=False)
kind("pcapng-interfaces", section() + interface() + interface(resolution=6) + packets(F[:2]) +
     packets(F[2:], number=1, unit_ns=1000))
kind("pcapng-interfaces-of-other-snap-lengths", section() + interface(snap=262144) + interface(snap=1600) + packets(F[:2]) +
     packets(F[2:], number=1))
kind("pcapng-interface-that-comes-late", section() + interface() + packets(F[:2]) + interface(snap=99) + packets(F[2:], number=1))
kind("pcapng-interface-of-another-link-type", section() + interface() + interface(link=113) + packets(F[:2]) +
     packets(F[2:], number=1), "link type of frame 3 is 113 (Linux cooked v1)", "frame.encap_type == 1", good=2)
kind("pcapng-unused-interface-of-another-link-type", section() + interface(link=113) + interface() + packets(number=1))
kind("pcapng-linux-cooked", blocks(packets(), link=113), "its link type is 113 (Linux cooked v1)", "tcpdump -i eth0", good=0,
     remedy=False)
kind("pcapng-interface-that-is-not-there", blocks(packets(F[:2]), packets(F[2:3], number=7)), "frame 3", BROKEN, "interface 7",
     good=2)
kind("pcapng-packets-before-an-interface", section() + packets() + interface(), "interface 0", "no description", good=0, remedy=False)
kind("pcapng-resolution-none", section() + described() + packets(unit_ns=1000))
for resolution in (0, 3, 6, 10, 0x80, 0x80 | 10, 0x80 | 30):
    kind("pcapng-resolution-%s-%d" % ("2" if resolution & 0x80 else "10", resolution & 0x7F), counts(resolution))
# The numbers of others overflow.
for resolution, by in ((12, "tcpdump"), (19, "tcpdump"), (0x80 | 63, "pcapfile")):
    kind("pcapng-resolution-%s-%d" % ("2" if resolution & 0x80 else "10", resolution & 0x7F), counts(resolution), by=by)
for offset in (1000, -1000):
    kind("pcapng-time-offset-%d" % offset, section() + described(option(9, b"\x09"), option(14, struct.pack("<q", offset))) +
         packets())
kind("pcapng-time-before-1970", section() + described(option(9, b"\x09"), option(14, struct.pack("<q", -2**40))) + packets(),
     "frame 1 has an impossible time", good=0, remedy=False)
kind("pcapng-time-2^64", blocks(enhanced(F[0], TIME) + enhanced(F[0], 2**64 - 1)), "frame 2 has an impossible time", "1-1", good=1)
kind("pcapng-simple", blocks(*map(simple, F)))
kind("pcapng-simple-cut", blocks(simple(F[0]), simple(F[2][:64], original=90), snap=64), "frame 2 is cut to 64 of its 90", good=1,
     remedy=False)
kind("pcapng-obsolete", blocks(*map(obsolete, F, TIMES)))
kind("pcapng-blocks-of-others", section() + block(0x1234, b"abc") + interface() + packets(F[:2]) + block(0x80001234, bytes(10**6)) +
     packets(F[2:]))
kind("pcapng-custom-blocks", blocks(packets(F[:2]), block(CUSTOM, struct.pack("<I", 32473) + b"abcd"),
                                    block(0x40000000 | CUSTOM, struct.pack("<I", 32473)), packets(F[2:])))
kind("pcapng-secrets", blocks(block(SECRETS, struct.pack("<II", 0x544C534B, 4) + b"abcd"), packets()))
kind("pcapng-names", blocks(block(NAMES, struct.pack("<HH", 1, 8) + bytes([10, 0, 0, 1]) + b"abc\0" + bytes(4)), packets()))
kind("pcapng-statistics", blocks(packets(F[:2]), block(STATISTICS, bytes(12) + option(4, struct.pack("<Q", 9)) + END),
                                 packets(F[2:])))
kind("pcapng-journal", blocks(packets(F[:2]), block(JOURNAL, b"__REALTIME_TIMESTAMP=1700000000000000\nMESSAGE=x\n\n"),
                              packets(F[2:])))
OTHERS = option(2988, struct.pack("<I", 32473) + b"x")
kind("pcapng-options", section_of(-1, options=option(1, b"c") + option(2, b"hw") + option(3, b"os") + option(4, b"a") + OTHERS + END) +
     described(option(1, b"c"), option(2, b"eth0"), option(3, b"d"), option(4, bytes(8)), option(5, bytes(17)), option(6, bytes(6)),
               option(7, bytes(8)), option(8, struct.pack("<Q", 10**9)), option(9, b"\x09"), option(10, bytes(4)), option(11, b"\0x"),
               option(12, b"os"), option(15, b"hw"), option(16, bytes(8)), option(17, bytes(8)), OTHERS) +
     packet(F[0], option(1, b"one"), option(1, b"two"), option(2, struct.pack("<I", 1)), option(3, b"\0ha"), option(4, bytes(8)),
            option(5, bytes(8)), option(6, bytes(4)), option(7, b"\0v"), option(8, bytes(8)), OTHERS))
kind("pcapng-comments", blocks(packet(F[0], *[option(1, b"x" * 60000)] * 3), packets(F[1:])))
kind("pcapng-comments-of-600-kb", blocks(packets(F[:1]), packet(F[1], *[option(1, b"x" * 60000)] * 10), packets(F[2:])),
     "at frame 2", "600", "editcap -F nsecpcap OLD NEW", good=1)
kind("pcapng-options-without-an-end", section() + block(INTERFACE, struct.pack("<HHI", 1, 0, 0) + option(9, b"\x09")) + packets())
kind("pcapng-option-that-runs-out-of-its-packet", blocks(packet(F[0], struct.pack("<HH", 1, 4000) + b"abcd"), packet(F[1])),
     by="tcpdump")
kind("pcapng-option-that-runs-out-of-its-interface", section() + block(
    INTERFACE, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HH", 2, 4000) + b"abcd") + packets(), "runs out of it", good=0, remedy=False)
kind("pcapng-resolution-of-3-bytes", section() + described(struct.pack("<HH", 9, 3) + b"\x09\0\0\0") + packets(),
     "wrong length, or comes twice: option 9", good=0)
kind("pcapng-two-resolutions", section() + described(option(9, b"\x09"), option(9, b"\x06")) + packets(),
     "wrong length, or comes twice: option 9", good=0)
kind("pcapng-offset-of-4-bytes", section() + described(option(9, b"\x09"), option(14, bytes(4))) + packets(), "option 14", good=0)
kind("pcapng-fcs-of-packets", blocks(*[packet(one, option(2, struct.pack("<I", 4 << 5)), time=time)
                                       for one, time in zip(longer(4), TIMES)]), fcs=4)
kind("pcapng-fcs-of-an-interface", section() + described(option(9, b"\x09"), option(13, b"\x04")) + packets(longer(4)), fcs=4)
kind("pcapng-snap-length-less-than-a-frame", blocks(packets(), snap=64))
kind("pcapng-cut", blocks(packets(F[:2]), enhanced(F[2], TIME, original=1514)), "frame 3 is cut to 90 of its 1514 bytes", good=2,
     remedy=False)
kind("pcapng-longer-than-its-length", blocks(packets(F[:2]), enhanced(F[2], TIME, original=60)), "frame 3 has 90 bytes",
     "editcap OLD NEW 3", good=2)
kind("pcapng-length-0", blocks(packets(F[:2]), enhanced(b"", TIME)), "frame 3 is 0 bytes long", port=("1 frame damaged", range(3)))
kind("pcapng-packet-that-runs-out-of-its-block", blocks(packets(F[:2]), enhanced(F[2], TIME, length=1000, original=1000)),
     "frame 3", BROKEN, "runs out", good=2)
for name, lengths in (("no-multiple-of-4", {"total": 123}), ("of-8", {"total": 8}), ("of-0", {"total": 0}),
                      ("of-4-gb", {"total": 0xFFFFFFF0})):
    kind("pcapng-block-length-" + name, blocks(packets(F[:2]), enhanced(F[2], TIME, **lengths), packets(F[3:])), "frame 3", BROKEN,
         good=2)
kind("pcapng-block-lengths-that-differ", blocks(packets(F[:2]), enhanced(F[2], TIME, tail=100)), "frame 3", BROKEN,
     "its two lengths differ", good=2)
kind("pcapng-lengths-of-a-block-of-others-that-differ", blocks(packets(F[:2]), block(0x1234, b"abcd", tail=100), packets(F[2:])),
     "frame 3", BROKEN, "two lengths differ", good=2)
kind("pcapng-head-cut", PCAPNG[:20], "the middle of its header, after 20 bytes", good=0, remedy=False)
kind("pcapng-section-alone", section(), "the middle of its header, after 28 bytes", good=0, remedy=False)
kind("pcapng-interface-alone", section() + interface(), "no frames", port=("no frame was received", ()), remedy=False)
kind("pcapng-block-head-cut", PCAPNG + b"\6\0\0\0\x20", CUT + " 6 (5 bytes", good=5)
kind("pcapng-block-cut", cut(PCAPNG, 9), CUT + " 5 (151 bytes", "editcap -r FILE NEW 1-4", good=4)
kind("pcapng-garbage-at-the-end", PCAPNG + b"\xff" * 100, "frame 6", BROKEN, good=5)
kind("pcapng-zeros-at-the-end", PCAPNG + bytes(96), "frame 6", BROKEN, good=5)
kind("pcapng-and-then-pcap", PCAPNG + PCAP, "frame 6", BROKEN, good=5)

# These are played in `make check-long` only.
LONG = frozenset("""
pcap-snap-65535 pcap-snap-2147483647 pcap-version-2.1 pcap-fcs-2 pcap-fcs-0 pcap-link-108 pcap-link-127 pcap-link-228
pcap-text-at-the-end pcap-time-2038 pcap-time-0 zeros ixia-software bzip2 xz pcapng-resolution-10-3 pcapng-resolution-10-10
pcapng-resolution-2-0 pcapng-resolution-10-19 pcapng-two-resolutions pcapng-offset-of-4-bytes pcapng-block-length-of-8
pcapng-and-then-pcap pcap-zone pcap-kuznetzov-big pcap-fcs-of-a-jumbo-frame pcap-version-2.3 pcap-link-0 pcap-link-147
pcap-cut-to-0 pcap-snap-262145 pcap-record-of-262144 pcapng-time-offset--1000 pcapng-secrets pcapng-names
pcapng-options-without-an-end pcapng-resolution-10-0 pcapng-resolution-2-10 pcapng-block-length-of-0 pcapng-zeros-at-the-end
pcapng-section-length frames-of-13 pcapng-length-0 pcapng-longer-than-its-length pcapng-version-1.2
pcapng-interface-that-comes-late pcapng-section-alone pcap-record-of-262145 pcapng-resolution-10-6
pcapng-packet-that-runs-out-of-its-block pcapng-comments snoop
pcap-version-543.0 pcap-version-2.3-cut pcap-snap-4294967295 pcap-link-276 ixia-hardware pcapng-time-before-1970
pcapng-resolution-2-63 pcapng-head-cut pcapng-cut pcapng-journal pcapng-simple-cut pcapng-garbage-at-the-end pcapng-two-sections
pcapng-block-length-of-4-gb
""".split())
