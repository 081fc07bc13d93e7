# SPDX-License-Identifier: BSD-3-Clause
"""examples/send_running.cu writes frames of a running kernel to a file: each is there, whole and in order.

usage: test_send_running.py PROGRAM
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

FRAMES = 20000
BYTES = 1000 - 4


def frame(number):
    head = b"\xff" * 6 + b"\x02" + bytes(5) + b"\x88\xb5" + number.to_bytes(8, "big")
    return head + bytes([number & 255]) * (BYTES - len(head))


def main(program):
    if not os.path.exists("/dev/nvidiactl"):
        print("no GPU here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        config, pcap = pathlib.Path(folder, "config.yaml"), pathlib.Path(folder, "sent.pcap")
        config.write_text("tx_port: net_pcap0,tx_pcap=%s\ngpu: 0\nframe: {size: %d}\nsender: gpu\n"
                          % (pcap, BYTES + 4))
        said = subprocess.run([program, config, str(FRAMES)], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        assert said == "%d frames sent, 0 not\n" % FRAMES, said
        data = pcap.read_bytes()
    at = 24
    for number in range(FRAMES):
        captured, length = struct.unpack_from("<II", data, at + 8)
        assert captured == length == BYTES, (number, captured, length)
        assert data[at + 16:at + 16 + BYTES] == frame(number), number
        at += 16 + BYTES
    assert at == len(data), (at, len(data))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
