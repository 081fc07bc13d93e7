# SPDX-License-Identifier: BSD-3-Clause
"""Chromium without a window, driven over its DevTools' WebSocket: what a page says, shows and complains about."""
import asyncio
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import aiohttp

# Only so that a browser that hangs fails the test; never a measure of speed.
TIMEOUT = float(os.environ.get("E2E_TIMEOUT", "300"))


def program():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Page:
    """One tab. `complaints`: errors on its console, exceptions, requests that failed."""

    def __init__(self, socket):
        self._socket = socket
        self._answers = {}
        self._last = 0
        self.complaints = []
        self.requests = []
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        async for message in self._socket:
            found = json.loads(message.data)
            if "id" in found:
                answer = self._answers.pop(found["id"])
                if not answer.done():
                    answer.set_result(found)
                continue
            method, what = found["method"], found["params"]
            if method == "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(what["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(what["args"]))
            elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                self.complaints.append(json.dumps(what["entry"]))
            elif method == "Network.requestWillBeSent":
                self.requests.append(what["request"]["url"])
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionError("chromium has ended"))

    async def call(self, method, **parameters):
        self._last += 1
        answer = self._answers[self._last] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._last, "method": method, "params": parameters})
        found = await asyncio.wait_for(answer, TIMEOUT)
        assert "error" not in found, (method, found["error"])
        return found["result"]

    async def evaluate(self, script):
        found = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, (script, found["exceptionDetails"])
        return found["result"].get("value")

    async def until(self, script, what):
        """Until a script's value is true; one that fails, as the page is not there yet, is tried again."""
        deadline = asyncio.get_running_loop().time() + TIMEOUT
        failed = None
        while True:
            try:
                if await self.evaluate(script):
                    return
            except AssertionError as error:
                failed = error
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError("%s did not come: %s\n%s" % (what, await self.evaluate("document.body.innerText"), failed))
            await asyncio.sleep(0.05)

    async def look(self, width, height, dark=False, phone=False):
        """As on a screen of this size."""
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                        deviceScaleFactor=2 if phone else 1, mobile=phone)
        await self.call("Emulation.setEmulatedMedia", media="screen", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    async def screenshot(self, path):
        found = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        pathlib.Path(path).write_bytes(base64.b64decode(found["data"]))


@contextlib.asynccontextmanager
async def browser():
    """Opens tabs: `await open_page(url)`."""
    with tempfile.TemporaryDirectory(prefix="live-chromium-", ignore_cleanup_errors=True) as folder:
        words = [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--force-color-profile=srgb",
                 "--remote-debugging-port=0", "--user-data-dir=" + folder, "about:blank"]
        with open(os.path.join(folder, "log"), "w") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            where = pathlib.Path(folder, "DevToolsActivePort")
            deadline = asyncio.get_running_loop().time() + TIMEOUT
            while not (where.exists() and where.read_text().count("\n")):
                assert process.poll() is None and asyncio.get_running_loop().time() < deadline, \
                    pathlib.Path(folder, "log").read_text()[-2000:]
                await asyncio.sleep(0.05)
            root = "http://127.0.0.1:" + where.read_text().split()[0]
            async with aiohttp.ClientSession() as client:
                async def open_page(url):
                    async with client.put(root + "/json/new?about:blank") as answer:
                        found = await answer.json()
                    page = Page(await client.ws_connect(found["webSocketDebuggerUrl"], max_msg_size=0))
                    for part in ("Page", "Runtime", "Log", "Network"):
                        await page.call(part + ".enable")
                    await page.call("Page.navigate", url=url)
                    return page

                yield open_page
        finally:
            process.terminate()
            process.wait(TIMEOUT)
