# SPDX-License-Identifier: BSD-3-Clause
"""A whole path with a Python consumer: a loopback in one process, images into tensors, at 200 Gb/s or more."""
import os
import time

import pytest

import gpu
import harness
import gdrcap

pytestmark = pytest.mark.alone

SECONDS = float(os.environ.get("GPU_PATH_SECONDS", "3"))
LEAST_GBPS = float(os.environ.get("GPU_PATH_GBPS", "200"))


def path(torch, folder, frame, pieces, ring, **options):
    """(Gb/s of images that Python got, images, summary): each becomes a tensor, of which the first word is looked at on the GPU."""
    made = gpu.loopback(folder, frame=frame, pieces=pieces, ring=ring, seconds=SECONDS, burst=256, **options)
    words = torch.zeros(1 << 20, dtype=torch.int64, device="cuda")
    words[0] = words[1]
    torch.cuda.synchronize()
    first, taken, size, last = [], 0, 0, 0
    with gdrcap.Session(made) as session:
        began = None
        for image in session.images(timeout=harness.TIMEOUT):
            tensor = torch.from_dlpack(image.view("int64"))
            if not image.complete:  # the last one, which the run's end cut
                continue
            words[taken] = tensor[-1]
            first.append(gpu.first_word(image) + image.bytes // 8 - 1)
            began = began or time.perf_counter()
            last = time.perf_counter()
            taken, size = taken + 1, size + image.bytes
        del tensor, image
        session.stop()
        assert words[:taken].cpu().tolist() == first, "a tensor's last word is wrong"
        summary = session.summary()
    return size * 8e-9 / (last - began), taken, summary


def test_path():
    torch = gpu.need_torch()
    best, whole = 0.0, 0.0
    with harness.Folder() as folder:
        for frame, pieces, ring, options in (
                (9018, 2048, 16, {}), (9018, 4096, 16, {"queues": 2}), (1518, 8192, 16, {}),
                (9018, 2048, 32, {"rate": "400gbit"}), (1518, 8192, 32, {"rate": "400gbit"})):
            gbps, taken, summary = path(torch, folder, frame, pieces, ring, **options)
            images = summary["images"][0]
            print("frames of %d bytes, images of %.1f MB, %s: %.0f Gb/s, %d images; %d incomplete, %d dropped, path %.0f Gb/s, %s"
                  % (frame, (frame - 54) * pieces * 1e-6, options, gbps, taken, images["incomplete"], images["dropped"],
                     summary["rate"]["gbps"], summary["memory"]["gpu"]))
            assert images["incomplete"] == images["incomplete_by"]["stopped"] <= len(images["streams"]), images
            best = max(best, gbps)
            if images["dropped"] == images["frames"]["no_room"] == 0:
                whole = max(whole, gbps)
    assert best >= LEAST_GBPS and whole >= LEAST_GBPS, (best, "without a drop", whole)
