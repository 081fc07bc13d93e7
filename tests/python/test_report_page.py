# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap report's page in Chromium: it complains of nothing, asks for nothing, and nothing is wider than the screen.

Pictures go to REPORT_SCREENSHOTS, else the build folder:
  REPORT_SCREENSHOTS=/tmp/shots pytest tests/python/test_report_page.py
"""
import asyncio
import os
import pathlib

import pytest

import harness

try:
    import live_browser
except ImportError:  # of aiohttp
    live_browser = None

import test_report

pytestmark = [pytest.mark.long, pytest.mark.alone]

SHOTS = pathlib.Path(os.environ.get("REPORT_SCREENSHOTS", os.environ.get("GDRCAP_BUILD", harness.ROOT / "build")))
# The least contrast of text with what is behind it, of WCAG 2's level AA.
CONTRAST = """(() => {
  const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => v / 255).map(
    (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (node) => { for (; node; node = node.parentElement) { const colour = getComputedStyle(node).backgroundColor;
    if (!/, 0\\)$/.test(colour)) return colour; } return "rgb(255, 255, 255)"; };
  let worst = [99, ""];
  for (const node of document.querySelectorAll("h1, h2, h3, p, li, td, th, caption, figcaption, strong, span, mark, a, pre, svg text")) {
    const style = getComputedStyle(node), a = light(node.namespaceURI.endsWith("svg") ? style.fill : style.color), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, node.outerHTML.slice(0, 120)];
  }
  return worst; })()"""


def need():
    test_report.need()
    if live_browser is None:
        raise harness.Skip("aiohttp is not installed")
    if not live_browser.program():
        raise harness.Skip("chromium is not installed")


async def look(path, name):
    async with live_browser.browser() as open_page:
        page = await open_page("file://" + path)
        await page.call("Page.bringToFront")
        await page.until("document.readyState === 'complete' && !!document.querySelector('footer')", "the page")
        for kind, width, dark in (("light", 1280, False), ("dark", 1280, True), ("phone", 400, False), ("phone-dark", 400, True)):
            await page.look(width, 900, dark=dark)
            await page.until("innerWidth === %d && matchMedia('(prefers-color-scheme: dark)').matches === %s" % (
                width, "true" if dark else "false"), "that screen")
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, (name, kind)
            ratio, where = await page.evaluate(CONTRAST)
            assert ratio >= 4.5, (name, kind, ratio, where)
            # Letters of a drawing are as large as those of a note, however small the screen is.
            height = await page.evaluate("Math.min(99, ...[...document.querySelectorAll('svg text')].map((n) => n.getBoundingClientRect().height))")
            assert height >= 9, (name, kind, height)
            await page.screenshot(SHOTS / ("report-%s-%s.png" % (name, kind)))
        assert not page.complaints, page.complaints
        assert page.requests == ["file://" + path], page.requests


def shown(name, *contents):
    with harness.Folder() as folder:
        path = os.path.join(folder, "page.html")
        pathlib.Path(path).write_text(test_report.report(*contents).html)
        asyncio.run(look(path, name))


def test_page():
    need()
    shown("run", test_report.summary_of_a_run(), b"".join(test_report.lines(20)), test_report.examination(), (harness.ROOT / "docs/benchmarks/h200.json").read_bytes())


def test_hostile():
    """Long words without a place to break, and markup, move nothing."""
    need()
    summary = test_report.everywhere(test_report.copied(), lambda value: test_report.MARKUP + "w" * 500 if isinstance(value, str) else value)
    shown("hostile", test_report.with_schema(summary))
