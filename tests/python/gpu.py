# SPDX-License-Identifier: BSD-3-Clause
"""What the Python package's tests on a GPU share: images whose bytes are known, a loopback into GPU memory.

A loopback's sender is a kernel that runs on, so nothing here waits for the whole device: modules are loaded and
allocations made before a session starts, and only streams are waited for.
"""
import os

os.environ["CUDA_MODULE_LOADING"] = "EAGER"

import harness  # noqa: E402
import gdrcap  # noqa: E402

# As config/image-gdrcap.yaml, of frames with a 64-bit counter (pattern 14), which runs on from frame to frame.
LAYOUT = """image:
  name: own
  base: frame
  kind: {at: 14, bytes: 4}
  data:
    kind: 0x6743010e
    payload: 50
    length: {at: 20, bytes: 2}
  stream: {at: 18, bytes: 2}
  number: {at: 22, bytes: 8, divide: %(pieces)d}
  index: {at: 22, bytes: 8, modulo: %(pieces)d}
  piece: %(piece)d
  pieces: %(pieces)d
  ring: %(ring)d
match: ["ethertype=0x88b5"]
"""


def need_torch():
    try:
        import torch
    except ImportError:
        raise harness.Skip("torch is not installed")
    if not torch.cuda.is_available():
        raise harness.Skip("torch sees no CUDA GPU")
    if "without CUDA" in gdrcap.version():
        raise harness.Skip("this libgdrcap was built without CUDA")
    return torch


def need_cupy():
    try:
        import cupy
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # ImportError, or CUDA's
        raise harness.Skip("cupy: %s" % error)
    return cupy


def loopback(folder, frame=1518, pieces=256, ring=8, **options):
    """Options of a session that plays such images into GPU memory, until it is stopped."""
    path = os.path.join(folder, "layout.yaml")
    with open(path, "w") as file:
        file.write(LAYOUT % {"piece": frame - 54, "pieces": pieces, "ring": ring})
    name = harness.wire()
    return {"port": name, "tx_port": name, "gpu": os.environ.get("GPU", "auto"), "image": path, "frame.size": frame,
            "pattern.name": "counter64le", **options}


def first_word(image):
    """Of its 64-bit words: they count from there."""
    assert image.bytes % 8 == 0
    return image.number * (image.bytes // 8)
