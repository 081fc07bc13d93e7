# SPDX-License-Identifier: BSD-3-Clause
"""The fake camera of `--demo`: pictures of a scene that moves, as packets of GigE Vision in a pcap file, some left out.

The session plays the file in a loop, at the times in it, through a wire in this process, and assembles
what comes out at the other end: the same path as a camera's, without a camera.
"""
from __future__ import annotations

import pathlib
import struct

import numpy as np

WIDTH, HEIGHT = 640, 480
PICTURES = 60  # then the file begins again, and so do the camera's numbers
PICTURES_A_SECOND = 20
PIECE = 1364
LEADER, TRAILER, DATA = 1, 2, 3
MONO8 = 0x01080001
PORT = 50010

# What the preset `gvsp` says, but for numbers that come round after PICTURES.
LAYOUT = {
    "name": "demo",
    "base": "udp",
    "kind": {"at": 4, "bytes": 1, "mask": 0x7F},
    "number": {"at": 2, "bytes": 2, "first": 1, "wrap": PICTURES},
    "index": {"at": 5, "bytes": 3, "subtract": 1},
    "begin": {"kind": LEADER},
    "data": {"kind": DATA, "payload": 8},
    "end": {"kind": TRAILER, "pieces": {"at": 5, "bytes": 3, "subtract": 1}},
    "timestamp": {"at": 12, "bytes": 8},
    "fields": [{"at": 24, "bytes": 4}, {"at": 28, "bytes": 4}, {"at": 20, "bytes": 4}],
    "piece": PIECE,
    "bytes": WIDTH * HEIGHT,
    # A loaded machine may keep a sender from its core for so long, and that is no loss.
    "timeout": 5,
    # More than a sender that was kept from its core sends at once afterwards.
    "ring": PICTURES // 2,
}

IMAGES = {
    "port": "ring:wire",
    "tx_port": "ring:wire",
    "gpu": "host",
    "loops": "forever",
    "idle_sleep": 1000,
    "image": LAYOUT,
}
FRAMES = {
    "port": "ring:wire",
    "tx_port": "ring:wire",
    "gpu": "host",
    "frame": {"size": "64-1518"},
    "streams": 3,
    "rate": "50mbit",
    "idle_sleep": 1000,
}


def picture(number: int) -> np.ndarray:
    """A test card: a star that turns, a gray wedge, and a ball that goes round."""
    turn = 2 * np.pi * number / PICTURES
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    dx, dy = x - WIDTH / 2, y - HEIGHT / 2
    radius, angle = np.hypot(dx, dy), np.arctan2(dy, dx)
    gray = 96 + 48 * np.cos(radius / 300)
    star = 128 + 90 * np.tanh(4 * np.sin(18 * (angle + turn / 18 * 3)))
    gray = np.where(radius < 170, star, gray)
    gray = np.where(np.abs(radius - 176) < 6, 235, gray)
    gray = np.where((y >= HEIGHT - 44) & (y < HEIGHT - 14), x // 40 * 255 / 15, gray)
    ball = np.hypot(dx - 215 * np.cos(turn), dy - 205 * np.sin(turn))
    gray = np.where(ball < 30, 250 - 5 * ball, gray)
    return np.clip(gray, 0, 255).astype(np.uint8)


def lost(number: int) -> set[int]:
    """The pieces of a picture that are left out."""
    return {12: set(range(96, 104)) | {150, 151, 171}, 27: {40}, 44: set(range(188, 209))}.get(number, set())


def _packet(kind: int, number: int, packet: int, payload: bytes) -> bytes:
    head = struct.pack(">HHI", 0, number + 1, kind << 24 | packet)
    datagram = struct.pack(">HHHH", 49152, PORT, 16 + len(payload), 0) + head + payload
    address = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0,
                          b"\xc0\0\x02\x01", b"\xc0\0\x02\x02")
    return b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + address + datagram


def packets(number: int) -> list[bytes]:
    """Those of one picture that are sent."""
    data = picture(number).tobytes()
    pieces = -(-len(data) // PIECE)
    left_out = lost(number)
    leader = struct.pack(">HHQIIIIIHH", 0, 1, number * 10**9 // PICTURES_A_SECOND, MONO8, WIDTH, HEIGHT, 0, 0, 0, 0)
    return [
        _packet(LEADER, number, 0, leader),
        *(_packet(DATA, number, piece + 1, data[piece * PIECE:(piece + 1) * PIECE])
          for piece in range(pieces) if piece not in left_out),
        _packet(TRAILER, number, pieces + 1, struct.pack(">HHI", 0, 1, HEIGHT)),
    ]


def write_pcap(path: pathlib.Path) -> int:
    """Writes the file; how many packets it has."""
    count, every = 0, 10**9 // PICTURES_A_SECOND
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for number in range(PICTURES):
            of_picture = packets(number)
            for i, frame in enumerate(of_picture):
                # A camera sends for half of the time, and then exposes the next one.
                time = number * every + i * every // 2 // len(of_picture)
                file.write(struct.pack("<IIII", 1 + time // 10**9, time % 10**9, len(frame), len(frame)) + frame)
            count += len(of_picture)
    return count


def config(kind: str, folder: pathlib.Path) -> dict[str, object]:
    """What the session is to do; `folder` takes the fake camera's packets."""
    if kind == "frames":
        return dict(FRAMES)
    file = folder / "camera.pcap"
    write_pcap(file)
    return {**IMAGES, "pcap": str(file)}
