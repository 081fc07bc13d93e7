# SPDX-License-Identifier: BSD-3-Clause
"""A control loop: each image of a camera is answered with a command of 20 bytes over UDP, with its number and the
mean of its bytes, those that fill rows up too.

  python3 answer_camera.py CONFIG.yaml

The configuration names the port (as port, and as tx_port for the way back) and describes the image (image); it needs numpy. Ctrl-C
ends it.
"""
import struct
import sys

import numpy

import gdrcap

TO = {"dst_mac": "02:00:00:00:00:07", "src_mac": "02:00:00:00:00:99", "dst_ip": "10.0.0.2", "src_ip": "10.0.0.1",
      "dst_port": 4001, "src_port": 4000}


def main(config):
    with gdrcap.Session(config, sender={"name": "host", "memory": "pinned"}) as session:
        queue, = session.senders
        for image in session.images():
            with image:
                brightness = numpy.from_dlpack(image, device="cpu").mean()
            command = struct.pack(">4sQd", b"MEAN", image.number, brightness)
            try:
                if not queue.send(gdrcap.headers(command, **TO) + command):
                    print("image %d: no slot is free, the port does not keep up" % image.number)
            except EOFError:  # the run is over; images of before still come
                break


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        pass
