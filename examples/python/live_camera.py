# SPDX-License-Identifier: BSD-3-Clause
"""A live view of a GigE Vision camera. Without --port a fake one is played from a file that this program makes.

  python3 live_camera.py                                   # a window
  python3 live_camera.py picture.png                       # the tenth picture, into a file
  python3 live_camera.py --port net_af_packet0,iface=eth0 --width 1280 --height 1024

It needs numpy and matplotlib. Pictures lie in host or GPU memory; what is drawn is a copy on the host.
"""
import argparse
import os
import struct
import tempfile

import matplotlib
import numpy

import gdrcap

PIECE = 1364  # the camera's packet size less 36


def datagram(payload, port=50000):
    udp = struct.pack(">HHHH", 4000, port, 8 + len(payload), 0) + payload
    return (bytes.fromhex("020000000001 020000000002 0800") + struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2") + udp)


def picture(number, width, height):
    """Rings that run outwards from a point that wanders."""
    y, x = numpy.mgrid[:height, :width]
    there = numpy.hypot(x - width * (0.5 + 0.2 * numpy.sin(number / 9)), y - height * (0.5 + 0.2 * numpy.cos(number / 7)))
    return (128 + 127 * numpy.sin(there / 12 - number / 3)).astype(numpy.uint8)


def packets(number, pixels):
    """GVSP: leader, data, trailer; packet 100 of each fifth picture is lost."""
    height, width = pixels.shape
    data = pixels.tobytes()
    count = -(-len(data) // PIECE)

    def head(kind, packet):
        return struct.pack(">HHI", 0, number, kind << 24 | packet)

    yield head(1, 0) + struct.pack(">HHQIIIIIHH", 0, 1, number * 10**7, 0x01080001, width, height, 0, 0, 0, 0)
    for index in range(count):
        if number % 5 or index != 100:
            yield head(3, index + 1) + data[index * PIECE:(index + 1) * PIECE]
    yield head(2, count + 1) + struct.pack(">HHI", 0, 1, height)


def fake_camera(path, width, height, pictures=20, rate=25):
    """A pcap file with the camera's packets, in its own time."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for number in range(1, pictures + 1):
            for index, payload in enumerate(packets(number, picture(number, width, height))):
                frame = datagram(payload)
                usec = number * 10**6 // rate + index * 20
                file.write(struct.pack("<IIII", usec // 10**6, usec % 10**6, len(frame), len(frame)) + frame)


def draw(axes, shown, image, width, height):
    pixels = numpy.from_dlpack(image.view("uint8", (height, width)), device="cpu")
    if shown is None:
        shown = axes.imshow(pixels, cmap="gray", vmin=0, vmax=255)
        axes.set_axis_off()
    shown.set_data(pixels.copy())
    lost = sum(count for _, count in image.missing())
    axes.set_title("picture %d: %s" % (image.number, "complete" if image.complete else "%d bytes are missing" % lost))
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", help="write one picture here, and end")
    parser.add_argument("--port")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--gpu", default="auto")
    args = parser.parse_args()
    if args.file:
        matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    options = {"gpu": args.gpu, "image": "gvsp,bytes=%d,piece=%d" % (args.width * args.height, PIECE)}
    with tempfile.TemporaryDirectory() as folder:
        if args.port:
            options["port"] = args.port
        else:
            path = os.path.join(folder, "camera.pcap")
            fake_camera(path, args.width, args.height)
            options.update(pcap=path, port="ring:camera", tx_port="ring:camera", loops=1 if args.file else "forever")
        figure, axes = pyplot.subplots()
        shown = None
        with gdrcap.Session(options) as session:
            for image in session.images():
                with image:
                    shown = draw(axes, shown, image, args.width, args.height)
                    if args.file and image.number == 10:
                        figure.savefig(args.file, dpi=80)
                        print("%s: picture %d, %s" % (args.file, image.number, image.end))
                        break
                if not args.file:
                    pyplot.pause(0.001)
                    if not pyplot.fignum_exists(figure.number):
                        break


if __name__ == "__main__":
    main()
