# SPDX-License-Identifier: BSD-3-Clause
"""The page in Chromium, with a fake camera running: what it shows is what the summary says, and it complains of nothing.

Screenshots go to LIVE_SCREENSHOTS, else the build folder; docs/live.png is one of them:
  LIVE_SCREENSHOTS=/tmp/shots pytest tests/python/test_live_page.py::test_images
"""
import asyncio
import contextlib
import os
import pathlib

import pytest

import harness

try:
    import live_browser
except ImportError:  # of aiohttp
    live_browser = None

import frames
import live_fake

pytestmark = [pytest.mark.long, pytest.mark.alone]

if live_browser is not None:
    import gdrcap
    from gdrcap.live import demo, layout, run, server as live_server, view

SHOTS = pathlib.Path(os.environ.get("LIVE_SCREENSHOTS", os.environ.get("GDRCAP_BUILD", harness.ROOT / "build")))
README_BYTES = 200_000
# Every count that the page names, by its place in the summary.
SHOWN = """Object.fromEntries([...document.querySelectorAll('#pictures [data-key], #tables [data-key]')]
    .map((node) => [node.dataset.key, node.textContent]))"""


@contextlib.asynccontextmanager
async def shown(session, port=0):
    """A run and its server; the run is over at the end."""
    one = run.Run(session)
    feed = live_server.Feed(view.View(one, layout.Wanted()).update)
    server = live_server.Server(feed, "127.0.0.1", None)
    sockets = live_server.listen("127.0.0.1", port)
    one.start()
    feeding = asyncio.create_task(feed.run())
    try:
        async with live_server.served(server, sockets):
            yield one, "http://127.0.0.1:%d/" % sockets[0].getsockname()[1]
            assert not (feeding.done() and feeding.exception()), feeding.exception()
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])
        await asyncio.to_thread(one.stop)
        one.close()


def at(summary, key):
    """A count in the summary, as the page writes it."""
    found = summary
    for part in key.split("."):
        found = found[int(part)] if isinstance(found, list) else found[part]
    return f"{int(found):,}"


async def check_end(page, one, state):
    """The run has ended, and every number on the page is the summary's."""
    await page.call("Page.bringToFront")  # one that nobody sees asks for nothing
    await page.until("document.getElementById('state').dataset.state === %r" % state, "the end")
    # The page shows the end first and its tables in the same turn.
    counts = await page.evaluate(SHOWN)
    summary = one.session.summary()
    assert summary["result"] == state
    for key, words in counts.items():
        assert words == at(summary, key), (key, words, at(summary, key))
    assert await page.evaluate("[...document.querySelectorAll('#errors li')].map((node) => node.textContent)") == summary["errors"]
    assert not page.complaints, page.complaints
    return summary, counts


async def pictures(page, name, height=860):
    """In light, in dark, and on a phone, where nothing is wider than the screen."""
    for kind, width, tall, options in (("light", 1280, height, {}), ("dark", 1280, height, {"dark": True}),
                                       ("phone", 390, 844, {"phone": True})):
        await page.look(width, tall, **options)
        updates = await page.evaluate("Number(document.body.dataset.updates)")
        if await page.evaluate("document.getElementById('state').dataset.state") == "running":
            await page.until("Number(document.body.dataset.updates) > %d" % (updates + 1), "an update")
        await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, (name, kind)
        await page.screenshot(SHOTS / ("live-%s-%s.png" % (name, kind)))
    await page.look(1280, height)


def need():
    if live_browser is None:
        raise harness.Skip("aiohttp is not installed")
    if not live_browser.program():
        raise harness.Skip("chromium is not installed")


def test_images():
    """A fake camera that leaves packets out: pictures with their holes, while it runs and when it has ended."""
    need()
    harness.need_numpy()

    async def play(folder):
        session = gdrcap.Session(demo.config("images", folder))
        async with shown(session) as (one, url), live_browser.browser() as open_page:
            page = await open_page(url)
            await page.look(1280, 860)
            # Both kinds of holes were seen, and the one on the page is that with several.
            await page.until("(document.querySelector('[data-key=\"images.0.incomplete\"]') || {}).textContent >= 7 && "
                             "document.body.innerText.includes('11 of 226 pieces missing')", "holes")
            # There the picture is transparent, and everywhere else it is not.
            holes = await page.evaluate(
                "(() => { const canvas = document.querySelector('canvas.small'); const data = canvas.getContext('2d')"
                ".getImageData(0, 0, canvas.width, canvas.height).data; let clear = 0; for (let i = 3; i < data.length; i += 4) "
                "clear += data[i] === 0; return [canvas.width, canvas.height, clear]; })()")
            assert holes in ([640, 480, 11 * demo.PIECE], [640, 480, demo.PIECE], [640, 480, 21 * demo.PIECE]), holes
            await pictures(page, "images")
            size = (SHOTS / "live-images-light.png").stat().st_size
            assert size < README_BYTES, size
            second = await open_page(url)
            await second.until("Number(document.body.dataset.updates) > 3", "a second browser")
            await asyncio.to_thread(one.stop)
            for each in (page, second):
                summary, counts = await check_end(each, one, "fail")
                assert {"images.0.complete", "images.0.pieces.lost", "images.0.frames.late", "images.0.bytes"} <= set(counts)
                assert await each.evaluate("document.querySelector('[data-key=complete]').textContent") == at(summary, "images.0.complete")
                assert await each.evaluate("document.querySelector('[data-key=lost]').textContent") == at(summary, "images.0.pieces.lost")
                assert all(request.startswith((url, "blob:")) for request in each.requests), each.requests
            assert summary["images"][0]["complete"] > 20, summary["images"]
            assert one.takers[0].taken == summary["images"][0]["complete"] + summary["images"][0]["incomplete"]
            # Who looks when it is over sees the same.
            await check_end(await open_page(url), one, "fail")
    with harness.Folder() as folder:
        asyncio.run(play(pathlib.Path(folder)))


def damaged_frames(path):
    """299 frames of two streams: three damaged, two lost, one twice."""
    pattern = frames.prbs31(300_000)
    streams, made = [frames.Stream(0, pattern), frames.Stream(3, pattern)], []
    for i in range(300):
        frame = bytearray(streams[i % 2].frame(1518 if i % 3 else 200))
        if i in (20, 75, 140):
            frame[100] ^= 0x90 >> i % 3
            frame[101 + i % 7] ^= 1
        if i not in (50, 51):
            made += [bytes(frame)] * (2 if i == 90 else 1)
    frames.write_pcap(path, made)
    return len(made)


def test_frames():
    """Checked frames: counts by cause, and of the first damaged ones the bits that are wrong."""
    need()

    async def play(path):
        count = damaged_frames(path)
        session = gdrcap.Session({"port": "net_pcap0,rx_pcap=" + path, "gpu": "host", "frames": count})
        async with shown(session) as (one, url), live_browser.browser() as open_page:
            page = await open_page(url)
            await page.look(1280, 860)
            summary, counts = await check_end(page, one, "fail")
            assert summary["frames"]["damaged"] == 3 and summary["frames"]["lost"] == 2 and summary["frames"]["duplicate"] == 1
            assert {"frames.valid", "frames.lost", "bits.wrong", "lost_by.unexplained"} <= set(counts), counts
            assert counts["frames.damaged"] == "3" and counts["streams.1.frames.damaged"] == "1", counts
            rows = await page.evaluate(
                "[...document.querySelectorAll('#tables tr')].map((row) => [...row.querySelectorAll('code')].map((code) => "
                "[code.textContent, [...code.childNodes].filter((node) => node.nodeName === 'B').map((node) => node.textContent)"
                ".join('')])).filter((codes) => codes.length)")
            assert len(rows) == len(summary["damage"]) == 3
            for codes, damage in zip(rows, summary["damage"]):
                wrong = [i for i in range(8) if (damage["expected"] ^ damage["got"]) & 0x80 >> i]
                for (words, bold), value in zip(codes, (damage["expected"], damage["got"])):
                    bits = f"{value:08b}"
                    assert words == f"0x{value:02x} {bits}" and bold == "".join(bits[i] for i in wrong), (codes, damage)
            await pictures(page, "frames")
    with harness.Folder() as folder:
        asyncio.run(play(os.path.join(folder, "damaged.pcap")))


def test_running():
    """Frames that go on: rates move, and at the end all are as sent."""
    need()

    async def play():
        session = gdrcap.Session({**demo.FRAMES, **dict.fromkeys(("port", "tx_port"), harness.wire())})
        async with shown(session) as (one, url), live_browser.browser() as open_page:
            page = await open_page(url)
            await page.until("((document.querySelector('.spark polyline') || document.body).getAttribute('points') || '')"
                             ".split(' ').length > 5", "a rate")
            await pictures(page, "running")
            await asyncio.to_thread(one.stop)
            summary, _ = await check_end(page, one, "pass")
            assert summary["frames"]["valid"] == summary["frames"]["sent"] > 0
    asyncio.run(play())


def test_states():
    """Nothing yet; a way that is down, and comes back; words and numbers that somebody hostile chose."""
    need()
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    huge = "18446744073709551615"

    async def play():
        waiting = live_fake.summary(frames=None, bytes=None, bits=None, lost_by=None)
        session = live_fake.Session(waiting)
        async with live_browser.browser() as open_page:
            async with shown(session) as (one, url):
                page = await open_page(url)
                await page.until("document.getElementById('state').dataset.state === 'waiting'", "waiting")
                assert not page.complaints, page.complaints
                await page.look(1280, 600)
                await page.screenshot(SHOTS / "live-waiting.png")
                one.session.found = live_fake.summary()
                await page.until("document.getElementById('state').dataset.state === 'running'", "running")
            await page.until("document.getElementById('state').dataset.state === 'pass' || "
                             "document.getElementById('state').dataset.state === 'lost'", "no connection")
            assert await page.evaluate("!document.getElementById('lost-connection').hidden")
            await page.screenshot(SHOTS / "live-lost.png")
            page.complaints.clear()  # that nobody answered
            counts = dict(live_fake.COUNTS, name=evil, streams=[], first_incomplete=[
                {"stream": huge, "number": huge, "by": evil, "pieces": None, "received": 1, "ranges": 1, "missing": [[0, huge]]}], skipped=None)
            found = live_fake.summary(ports=[evil], messages=[evil] * 3, errors=[evil], result="fail", images=[counts],
                                      frames={**live_fake.summary()["frames"], "received": huge})
            again = live_fake.Session(found, [live_fake.Source()])
            again._images[0].over.set()
            async with shown(again, int(url.split(":")[2].strip("/"))) as (one, _):
                one.session.stop()
                await page.until("document.getElementById('state').dataset.state === 'fail'", "another run on the same page")
                await page.until("document.querySelectorAll('.messages li').length === 3", "messages")
                text = await page.evaluate("document.body.innerText")
                assert text.count(evil) >= 6 and f"{int(huge):,}" in text, text
                assert await page.evaluate("document.querySelectorAll('img, script:not([src]), [onerror]').length") == 0
                assert not [said for said in page.complaints if "ERR_CONNECTION" not in said], page.complaints
    asyncio.run(play())
