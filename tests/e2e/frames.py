# SPDX-License-Identifier: BSD-3-Clause
"""The own frame of docs/frame-format.md, written independently of the library's C code."""
import struct

MAGIC, VERSION, PRBS31 = 0x6743, 1, 7
ETHERTYPE = 0x88B5
DESTINATION, SOURCE = b"\x02\0\0\0\0\x02", b"\x02\0\0\0\0\x01"
ETHERNET_BYTES, HEADER_BYTES = 14, 36


def crc32c(data):
    """RFC 3720 B.4, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def prbs31(count):
    """`count` bytes of ITU-T O.150 PRBS-31, inverted, by its recurrence: 1 + x^28 + x^31. All squares of that hold, too
    (1 + x^56 + x^62, ...): each step adds as many bits as the longest distances allow that the bits before it cover."""
    bits, length = 2 ** 31 - 1, 31
    while length < 8 * count:
        far, near = 31, 28
        while 2 * far <= length:
            far, near = 2 * far, 2 * near
        bits = bits << near | (bits >> far - near ^ bits) & 2 ** near - 1
        length += near
    return (bits >> length - 8 * count ^ 2 ** (8 * count) - 1).to_bytes(count, "big")


def recurs(data):
    """Its definition: 31 ones, and then each bit by those 31 and 28 before it; inverted."""
    bits = [byte >> 7 - i & 1 for byte in data for i in range(8)]
    return not any(bits[:31]) and all(
        bits[i] == 1 ^ bits[i - 31] ^ bits[i - 28] for i in range(31, len(bits)))


assert recurs(prbs31(4099))


def own_header(stream, sequence, position, payload_bytes, magic=MAGIC, crc_flip=0,
               time_ns=1_700_000_000_000_000_000, pattern=PRBS31):
    head = struct.pack(">HBBHHQQQ", magic, VERSION, pattern, stream, payload_bytes, sequence,
                       position, time_ns)
    return head + struct.pack(">I", crc32c(head) ^ crc_flip)


def is_data(frame):
    """One of ours, and none that says that its stream has ended."""
    return frame[ETHERNET_BYTES:ETHERNET_BYTES + 2] == struct.pack(">H", MAGIC) and frame[ETHERNET_BYTES + 3] != 0xFF


def number_of(frame):
    """Its place in its stream."""
    return struct.unpack_from(">Q", frame, ETHERNET_BYTES + 8)[0]


def end_of_stream(stream, count, streams=1):
    """Says that the stream had so many frames, and its sender so many streams."""
    return (DESTINATION + SOURCE + struct.pack(">H", ETHERTYPE) +
            own_header(stream, count, streams, 0, pattern=0xFF) + bytes(10))


class Stream:
    """One sender's stream, phase continuous over its payload bytes."""

    def __init__(self, number, pattern):
        self.number = number
        self.pattern = pattern
        self.sequence = 0
        self.position = 0

    def frame(self, size, claim=0, **header):
        """The next frame of `size` bytes with FCS, as it lies in memory: without.

        claim: payload bytes that the header says beyond those that are there."""
        payload_bytes = size - 4 - ETHERNET_BYTES - HEADER_BYTES
        payload = self.pattern[self.position:self.position + payload_bytes]
        assert len(payload) == payload_bytes
        frame = (DESTINATION + SOURCE + struct.pack(">H", ETHERTYPE) +
                 own_header(self.number, self.sequence, self.position, payload_bytes + claim,
                            **header) + payload)
        self.sequence += 1
        self.position += payload_bytes
        return frame


def write_pcap(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for i, frame in enumerate(frames):
            file.write(struct.pack("<IIII", i // 1000000, i % 1000000, len(frame), len(frame)))
            file.write(frame)
