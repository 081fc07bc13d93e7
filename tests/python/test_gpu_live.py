# SPDX-License-Identifier: BSD-3-Clause
"""The page and images in GPU memory: what is scaled there is what numpy makes of a copy; the page of a real run."""
import asyncio
import signal

import pytest

import gpu
import harness
import gdrcap

pytestmark = pytest.mark.alone

try:
    import aiohttp
    import numpy
    import test_live as live
    from gdrcap.live import scale
    from gdrcap.live.layout import FORMATS, Geometry
except ImportError:
    aiohttp = numpy = None

FRAME, PIECES = 9018, 512
WIDTH = 2988  # bytes of a row: three rows a frame
HEIGHT = PIECES * 3


def session_options(folder):
    return gpu.loopback(folder, frame=FRAME, pieces=PIECES, ring=16, burst=64, rate="20gbit")


def need():
    gpu.need_torch()
    if aiohttp is None:
        raise harness.Skip("aiohttp or numpy is not installed")


def on_host(data):
    """The same bytes as an image that lies in host memory."""
    class Image(numpy.ndarray):
        device = (1, 0)
    return numpy.frombuffer(data, numpy.uint8).view(Image)


def test_scaled():
    need()
    scale.prepare()
    shown = [Geometry(FORMATS["mono8"], WIDTH, HEIGHT, WIDTH), Geometry(FORMATS["mono16"], WIDTH // 2, HEIGHT, WIDTH),
             Geometry(FORMATS["rgb8"], WIDTH // 3, HEIGHT, WIDTH), Geometry(FORMATS["uyvy"], WIDTH // 2, HEIGHT, WIDTH),
             Geometry(FORMATS["mono8"], 512, 400, WIDTH)]
    with harness.Folder() as folder, gdrcap.Session(session_options(folder)) as session:
        images = session.images(timeout=harness.TIMEOUT)
        for geometry in shown:
            with next(images) as image:
                assert image.device[0] == 2, "not in GPU memory"
                found, data = scale.scale(image, geometry), image.copy()
            assert "the GPU by" in found.where, found.where
            want = scale.scale(on_host(data), geometry)
            assert numpy.array_equal(found.averaged, want.averaged), geometry
            assert numpy.array_equal(found.single, want.single), geometry


def test_page():
    need()

    async def look(url):
        found = []
        async with aiohttp.ClientSession() as client, client.ws_connect(url + "updates", max_msg_size=0) as browser:
            while len(found) < 5:
                facts, rest = await live.next_update(browser)
                found += [(picture, rest) for picture in facts.get("pictures", ()) if picture.get("width")]
        return found

    with harness.Folder() as folder:
        words = [word for key, value in session_options(folder).items() for word in ("--set", "%s=%s" % (key, value))]
        process = live.start(*words, "--listen", "0", "--width", str(WIDTH), "--format", "mono8")
        try:
            pictures = asyncio.run(look(live.page_of(process)))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=harness.TIMEOUT)
        finally:
            process.kill()
    # 3: the last image was cut by the stop
    assert process.returncode in (0, 3), process.returncode
    for picture, rest in pictures:
        assert "scaled on the GPU by" in picture["where"], picture
        assert b"\x89PNG" in rest
