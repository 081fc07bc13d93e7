#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames as a device that has never heard of gdrcap would send them, with faults on request.

PRBS-31 is made from the text of ITU-T O.150: a shift register of 31 stages, all ones at the start,
whose first stage gets the modulo-2 sum of stages 28 and 31, and whose output is inverted. The first
bit is the most significant bit of the first payload byte, and the sequence runs on from frame to
frame. Nothing here comes from the library.

As a program it writes such a stream to a pcap file and prints what a receiver must count:
  custom_stream.py --frames 1000 --sizes 64-1518 --lose 10-12 --flip 50:0,77 stream.pcap
"""
import argparse
import json
import struct

import pcapfile

DESTINATION, SOURCE = b"\x02\0\0\0\0\x02", b"\x02\0\0\0\0\x01"
ETHERTYPE = 0x88B5  # IEEE 802 local experimental 1
ETHERNET_BYTES, FCS_BYTES, COUNTER_BYTES = 14, 4, 4


class ShiftRegister:
    """The register of O.150, clocked bit by bit."""

    def __init__(self):
        self.stage = [1] * 32  # 1..31; 0 is not used

    def clock(self):
        out = self.stage[31] ^ 1
        fresh = self.stage[28] ^ self.stage[31]
        self.stage[2:] = self.stage[1:31]
        self.stage[1] = fresh
        return out


def serial_prbs31(count):
    register = ShiftRegister()
    return bytes(sum(register.clock() << (7 - bit) for bit in range(8)) for _ in range(count))


def prbs31(count):
    """The first `count` bytes. The sum of stages delays is a polynomial in x over GF(2), and its
    square relates bits that are twice as far apart: so ever longer pieces come at once."""
    need = 8 * count
    # The register's bits before inversion, the first the most significant.
    bits, length, lag_near, lag_far = (1 << 31) - 1, 31, 28, 31
    while length < need:
        while 2 * lag_far <= length:
            lag_near, lag_far = 2 * lag_near, 2 * lag_far
        take = min(lag_near, need - length)
        far = bits >> (lag_far - take) if lag_far >= take else bits << (take - lag_far)
        near = bits >> (lag_near - take)
        bits = bits << take | (far ^ near) & ((1 << take) - 1)
        length += take
    bits >>= length - need
    return (bits ^ ((1 << need) - 1)).to_bytes(count, "big")


assert prbs31(3000) == serial_prbs31(3000)
assert prbs31(8) == bytes.fromhex("00000001ffffffe3")


class Sender:
    """One device: frames with a running PRBS-31, after a counter or right after the EtherType."""

    def __init__(self, counter="big", start=0, step=1, skip_bytes=0, stream=None):
        self.counter = counter  # byte order of the 32-bit counter at offset 14; None: none
        self.number = start
        self.step = step
        self.position = skip_bytes  # in the PRBS
        self.stream = stream  # one byte after the counter, when there is one

    @property
    def payload_offset(self):
        return (ETHERNET_BYTES + (COUNTER_BYTES if self.counter else 0) +
                (1 if self.stream is not None else 0))

    def frames(self, sizes):
        """A frame of each size in turn, as in memory: sizes are with FCS."""
        lengths = [size - FCS_BYTES - self.payload_offset for size in sizes]
        assert all(length >= 0 for length in lengths), "no room for the headers"
        payload = prbs31(self.position + sum(lengths))
        made = []
        for length in lengths:
            head = DESTINATION + SOURCE + struct.pack(">H", ETHERTYPE)
            if self.counter:
                head += (self.number % 2**32).to_bytes(COUNTER_BYTES, self.counter)
            if self.stream is not None:
                head += bytes([self.stream])
            made.append(head + payload[self.position:self.position + length])
            self.position += length
            self.number += self.step
        return made


class Faults:
    """What happens to a stream on its way. Faults of different frames must not touch."""

    def __init__(self, lose=(), repeat=None, swap=(), flip=None, garble=()):
        self.lose = set(lose)  # frame indexes
        self.repeat = dict(repeat or {})  # index: how many frames later it comes a second time
        self.swap = set(swap)  # index i: i and i + 1 change places
        self.flip = {index: set(bits) for index, bits in (flip or {}).items()}  # payload bits
        self.garble = set(garble)  # the whole payload becomes something else

    def apply(self, frames, payload_offset):
        frames = list(frames)
        for index, bits in self.flip.items():
            frame = bytearray(frames[index])
            for bit in bits:
                frame[payload_offset + bit // 8] ^= 0x80 >> bit % 8
            frames[index] = bytes(frame)
        for index in self.garble:
            # Of a generator without any relation to the PRBS, the same in every run.
            state, garbage = 12345 + index, bytearray()
            for _ in frames[index][payload_offset:]:
                state = (state * 1103515245 + 12345) % 2**31
                garbage.append(state >> 16 & 0xFF)
            frames[index] = frames[index][:payload_offset] + bytes(garbage)
        order = []
        later = {}
        for index, frame in enumerate(frames):
            if index in self.lose:
                continue
            if index - 1 in self.swap:
                order.insert(len(order) - 1, frame)
            else:
                order.append(frame)
            if index in self.repeat:
                later.setdefault(index + self.repeat[index], []).append(frame)
            order += later.pop(index, [])
        assert not later, "a repeat after the end"
        return order

    def counts(self, total):
        """What a receiver that knows the sequence numbers must say."""
        damaged = len(set(self.flip) | self.garble)
        return {"sent": total, "received": total - len(self.lose) + len(self.repeat),
                "valid": total - len(self.lose) - damaged, "damaged": damaged,
                "lost": len(self.lose), "duplicate": len(self.repeat),
                "reordered": len(self.swap)}

    def wrong_bits(self):
        return sum(len(bits) for bits in self.flip.values())


def numbers(text):
    """10,20-22 -> 10, 20, 21, 22"""
    found = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def numbered(text):
    number, _, rest = text.partition(":")
    return int(number), rest


def main():
    parser = argparse.ArgumentParser(description="Writes a PRBS-31 stream to a pcap file.")
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--sizes", type=numbers, default=[1518], help="with FCS; 64,512 or 64-1518")
    parser.add_argument("--counter", choices=("big", "little", "none"), default="big",
                        help="32 bits at offset 14")
    parser.add_argument("--start", type=int, default=0, help="of the counter")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="PRBS bytes before the first frame")
    parser.add_argument("--lose", type=numbers, default=[])
    parser.add_argument("--repeat", type=numbered, action="append", default=[],
                        help="FRAME:LATER")
    parser.add_argument("--swap", type=numbers, default=[])
    parser.add_argument("--flip", type=numbered, action="append", default=[],
                        help="FRAME:BITS, bits of the payload")
    parser.add_argument("--gap-ns", type=int, default=1000)
    parser.add_argument("file")
    options = parser.parse_args()
    sender = Sender(None if options.counter == "none" else options.counter, options.start,
                    options.step, options.skip)
    sizes = [options.sizes[i % len(options.sizes)] for i in range(options.frames)]
    faults = Faults(options.lose, {index: int(later) for index, later in options.repeat},
                    options.swap, {index: numbers(bits) for index, bits in options.flip})
    frames = faults.apply(sender.frames(sizes), sender.payload_offset)
    pcapfile.write_pcap(options.file, frames, gap_ns=options.gap_ns)
    print(json.dumps({**faults.counts(options.frames), "wrong_bits": faults.wrong_bits()}))


if __name__ == "__main__":
    main()
