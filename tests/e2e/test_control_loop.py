# SPDX-License-Identifier: BSD-3-Clause
"""examples/control_loop.cu without a GPU: it answers the pictures of a camera with where their centroids are; its own
camera's over a ring, and another's over an interface, whose answers are read here."""
import os
import pathlib
import re
import socket
import struct
import subprocess

import e2e
import processes

PICTURES = processes.scaled(2000, 500)
CONFIG = pathlib.Path(__file__).resolve().parents[2] / "examples" / "control_loop.yaml"
WIDTH, HEIGHT, PIECE = 40, 30, 400
CAMERA = """
port: "net_af_packet0,iface=%s"
tx_port: "net_af_packet0,iface=%s"
gpu: host
consumer: {name: host}
sender: {name: host}
frame: {size: 1518}
image:
  - name: camera
    base: udp
    number: {at: 0, bytes: 4}
    place: {at: 4, bytes: 4}
    fields: [{at: 8, bytes: 2}, {at: 10, bytes: 2}]
    data: {payload: 16}
    piece: 400
    bytes: 1200
    timeout: 60
    match: ["dst_port=4000"]
"""


def program(*arguments):
    if "CONTROL_LOOP" not in os.environ:
        raise e2e.Skip("built without CUDA, which compiles the example")
    return subprocess.Popen([os.environ["CONTROL_LOOP"], *map(str, arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*arguments, expect=0):
    result = e2e.finish(program(*arguments), ["control_loop"])
    assert result.status == expect, result
    return result


def played(*more):
    """Each command is compared with what its picture was made of, and its UDP checksum added up."""
    result = run(CONFIG, PICTURES, "gpu=host", *more)
    times = r": p50 [\d.]+ us, p99 [\d.]+ us, max [\d.]+ us\n"
    assert re.fullmatch("GPU: .*\n%d answered, 0 held up, 0 unusable\n"
                        "last packet to command at the port%s"
                        "picture taken to command at the port%s"
                        "%d commands of %d checked, 0 wrong\n" %
                        (PICTURES, times, times, PICTURES, PICTURES), result.out), result
    assert result.err == "", result
    print(result.out)


def test_played():
    played()


def test_played_by_sleepers():
    played("idle_sleep=100")


def test_wrong_arguments():
    for arguments, part in (([], "give a configuration's file"),
                            ([CONFIG, "10x"], "10x: give a number"),
                            ([CONFIG, "ten"], "ten: give a number"),
                            ([CONFIG, 10, "queues=1"], "queues: 2"),
                            ([CONFIG, 10, "sender=replay"], "sender"),
                            ([CONFIG, 10, "nothing=1"], "nothing")):
        result = run(*arguments, expect=1)
        assert part in result.err and result.err.startswith("control_loop: "), (arguments, result)


# ---- another's camera ----

def picture(number):
    """Random dots on black, and the centroid in 1/256 of a pixel, rounded down; (nothing, all bits) of a black one."""
    if number % 5 == 0:
        return bytes(WIDTH * HEIGHT), (0xffffffff, 0xffffffff, 0)
    state, pixels = number, bytearray(WIDTH * HEIGHT)
    for _ in range(1 + number % 7):
        state = (state * 1103515245 + 12345) % 2 ** 31
        pixels[state // 1000 % len(pixels)] = 1 + state // 7 % 255
    total = sum(pixels)
    x, y = (sum(value * of(i) for i, value in enumerate(pixels)) * 256 // total
            for of in (lambda i: i % WIDTH, lambda i: i // WIDTH))
    return bytes(pixels), (x, y, total)


def packets(number, pixels):
    for at in range(0, len(pixels), PIECE):
        data = struct.pack(">IIHHI", number, at, WIDTH, HEIGHT, 0) + pixels[at:at + PIECE]
        yield (b"\xff" * 6 + b"\x02\0\0\0\0\x07\x08\0" +
               struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0, b"\x0a\0\0\x02", b"\x0a\0\0\x01") +
               struct.pack(">HHHH", 4000, 4000, 8 + len(data), 0) + data)


def checksum_is_right(frame):
    pseudo = frame[26:34] + struct.pack(">HH", 17, len(frame) - 34)
    total = sum(struct.unpack(">%dH" % ((len(pseudo) + len(frame) - 34) // 2), pseudo + frame[34:]))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total == 0xffff and frame[40:42] != b"\0\0"


def test_camera_on_an_interface(count=30):
    with e2e.VethPair() as pair, processes.folder() as folder, \
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as wire:
        path = pathlib.Path(folder) / "config"
        path.write_text(CAMERA % (pair.right, pair.right))
        wire.bind((pair.left, 0x0800))
        wire.settimeout(0.5)
        process = program(path, "frames=%d" % (3 * count))
        frames, number = [], 0
        try:
            while process.poll() is None:
                number += 1
                for packet in packets(number, picture(number)[0]):
                    wire.send(packet)
                try:
                    frames.append(wire.recv(2048))
                except TimeoutError:
                    continue  # it does not run yet, or any more
        finally:
            result = e2e.finish(process, ["control_loop"])
    assert result.status == 0, result
    commands = [frame for frame in frames if frame[36:38] == struct.pack(">H", 4001)]
    assert commands, result
    for frame in commands:
        number, *command = struct.unpack(">QIIQ", frame[42:66])
        assert checksum_is_right(frame), frame
        assert tuple(command) == picture(number)[1], (number, command)
    # The first picture and the last may have come in part.
    assert re.search(r"^\d+ answered, 0 held up, [012] unusable$", result.out, re.M), result
