# SPDX-License-Identifier: BSD-3-Clause
"""Serves the page and its updates: to whom it may, at most ten a second, and to each browser when it is ready."""
from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import math
import pathlib
import socket
import threading
import time
import urllib.parse
from collections.abc import AsyncIterator, Callable, Iterator

from aiohttp import WSMsgType, web

from .view import Update

PAGE = pathlib.Path(__file__).resolve().parent / "page"
FILES = {"": ("index.html", "text/html"), "live.css": ("live.css", "text/css"), "live.js": ("live.js", "text/javascript"),
         "plots.js": ("plots.js", "text/javascript"), "icon.svg": ("icon.svg", "image/svg+xml")}
INTERVAL = 0.1  # seconds between two updates, at least
BROWSERS_MAX = 32
WORDS_MAX = 64  # bytes of a message from a browser: it says "next"
# A browser has some connections. The longest without a request gives way to a new one, and who has not brought a whole
# request, or taken its answer, for so long is closed: a byte now and then is no progress.
CONNECTIONS_MAX = 64
REQUEST_SECONDS = 10.0
GOODBYE = 2.0  # seconds that browsers have to take the last update when the program is ended

_LOG = logging.getLogger("gdrcap.live")


class Feed:
    """The newest update, made when a browser waits for one and not otherwise."""

    def __init__(self, make: Callable[[], Update]):
        self._make = make
        self._waiting: set[asyncio.Future[tuple[int, Update]]] = set()
        self._wanted = asyncio.Event()
        self._newest: Update | None = None
        self._number = 0

    async def after(self, number: int) -> tuple[int, Update]:
        """The next update, and its number. The run's last one is for whoever has seen `number` before; then there is none."""
        if self._newest and self._newest.final and self._number > number:
            return self._number, self._newest
        found: asyncio.Future[tuple[int, Update]] = asyncio.get_running_loop().create_future()
        self._waiting.add(found)
        self._wanted.set()
        try:
            return await found
        finally:
            self._waiting.discard(found)

    async def run(self) -> None:
        """Makes updates until the last one of the run."""
        last = -INTERVAL
        while not (self._newest and self._newest.final):
            await self._wanted.wait()
            await asyncio.sleep(max(last + INTERVAL - time.monotonic(), 0))
            if self._waiting:  # who waited may have left
                last = time.monotonic()
                self._newest = await asyncio.to_thread(self._make)
                self._number += 1
            self._wanted.clear()
            for found in self._waiting:
                if not found.done():
                    found.set_result((self._number, self._newest))  # type: ignore[arg-type]
            self._waiting.clear()

    async def finish(self) -> None:
        """Makes the last update, for the browsers that are there."""
        while not (await self.after(0))[1].final:
            pass


def host_of(header: str) -> str | None:
    """The host in a Host header, or None for one that is none; a port may follow, and whose is not asked: ssh -L has its own."""
    try:
        parts = urllib.parse.urlsplit("//" + header)
        _ = parts.port  # raises where it is no number
    except ValueError:
        return None
    return parts.hostname if parts.netloc == header and not set("@%") & set(header) else None


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class Connections:
    """What strangers have open. Without a limit they could take every descriptor of the session's process."""

    def __init__(self) -> None:
        self._since: dict[asyncio.BaseTransport, float] = {}  # idle ones, the longest idle first
        self._busy: set[asyncio.BaseTransport] = set()

    def __len__(self) -> int:
        return len(self._since) + len(self._busy)

    @contextlib.contextmanager
    def busy(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """While a request of this connection is answered."""
        if transport is None:  # it is closed
            yield
            return
        self._since.pop(transport, None)
        self._busy.add(transport)
        try:
            yield
        finally:
            self._busy.discard(transport)
            self._since[transport] = time.monotonic()

    def _close(self, before: float) -> None:
        """Those that are idle since then, or closed."""
        for transport, since in list(self._since.items()):
            if since < before or transport.is_closing():
                self._since.pop(transport)
                transport.abort()  # type: ignore[attr-defined]

    def make_room(self) -> bool:
        """Closes the longest idle one where there are too many. False: all are busy."""
        self._close(0)
        if len(self) >= CONNECTIONS_MAX and self._since:
            self._close(math.nextafter(next(iter(self._since.values())), math.inf))
        return len(self) < CONNECTIONS_MAX

    async def accept(self, listening: socket.socket, handle: Callable[[], asyncio.Protocol]) -> None:
        """Not asyncio's way, which has no limit, and where no descriptor is left writes a traceback for each attempt."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                one, _ = await loop.sock_accept(listening)
            except OSError as error:
                _LOG.warning("a browser cannot connect: %s", error)
                await asyncio.sleep(1)
                continue
            if not self.make_room():
                one.close()
                continue
            try:
                transport, _ = await loop.connect_accepted_socket(handle, one)
            except OSError:  # it has left
                one.close()
                continue
            self._since[transport] = time.monotonic()

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._close(time.monotonic() - REQUEST_SECONDS)


class Server:
    """`token` None: whoever can connect may look, which is for addresses of this machine alone."""

    def __init__(self, feed: Feed, address: str, token: str | None):
        self._feed, self._address, self._token = feed, address, token
        self.connections = Connections()
        self._browsers: set[web.WebSocketResponse] = set()
        self._served_final: set[web.WebSocketResponse] = set()
        self._names = {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}
        self.app = web.Application(middlewares=[self._guard], client_max_size=1024)
        prefix = "/{token}" if token else ""
        self.app.router.add_get(prefix + "/updates", self._updates)
        self.app.router.add_get(prefix + "/{file:[a-z.]*}", self._file)
        if token:
            self.app.router.add_get("/{rest:.*}", self._no_token)

    def url(self, port: int) -> str:
        host = socket.getfqdn() if self._address in ("0.0.0.0", "::") else self._address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/{self._token + '/' if self._token else ''}"

    # ---- who may ----

    def _is_our_host(self, host: str | None) -> bool:
        """A page elsewhere that had its name point here (DNS rebinding) says that name: no address, and none of ours."""
        if host is None:
            return False
        if is_loopback(host):
            return True
        if is_loopback(self._address):
            return False
        try:
            ipaddress.ip_address(host)
            return True
        except ValueError:
            return host in self._names or host == self._address.lower()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Callable[[web.Request], object]) -> web.StreamResponse:
        header = request.headers.get("Host", "")
        if len(request.headers.getall("Host", [])) != 1 or not self._is_our_host(host_of(header)):
            raise web.HTTPForbidden(text="This address is not one of this page's: open the one that was printed.\n")
        if self._token:
            given = request.match_info.get("token", "")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                raise web.HTTPForbidden(text="The address lacks its token: open the one that was printed.\n")
        origin = request.headers.get("Origin")
        if origin is not None and origin != "http://" + header:
            raise web.HTTPForbidden(text="A page of another site asks: refused.\n")
        with self.connections.busy(request.transport):
            response = await handler(request)  # type: ignore[misc]
        assert isinstance(response, web.StreamResponse)
        return response

    async def _no_token(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPForbidden(text="The address lacks its token: open the one that was printed.\n")

    # ---- what they get ----

    async def _file(self, request: web.Request) -> web.StreamResponse:
        found = FILES.get(request.match_info["file"])
        if not found:
            raise web.HTTPNotFound(text="There is no such file.\n")
        name, kind = found
        host = request.headers["Host"]  # as _guard() saw it. Some browsers do not take 'self' for a WebSocket
        policy = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
                  f"connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
        return web.Response(body=(PAGE / name).read_bytes(), content_type=kind, charset="utf-8", headers={
            "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin"})

    async def _updates(self, request: web.Request) -> web.StreamResponse:
        if len(self._browsers) >= BROWSERS_MAX:
            raise web.HTTPServiceUnavailable(text=f"{BROWSERS_MAX} browsers are looking, which is the most.\n")
        # No compression: pictures are compressed, once for all.
        browser = web.WebSocketResponse(heartbeat=20, max_msg_size=WORDS_MAX, compress=False)
        await browser.prepare(request)
        self._browsers.add(browser)
        try:
            await self._serve(browser)
        finally:
            self._browsers.discard(browser)
            self._served_final.discard(browser)
        return browser

    async def _serve(self, browser: web.WebSocketResponse) -> None:
        """An update each time that the browser asks for one, so never more than one is on its way."""
        has: set[int] = set()
        number = 0
        asked = asyncio.Event()

        async def send() -> None:
            nonlocal number
            while True:
                await asked.wait()
                asked.clear()
                number, update = await self._feed.after(number)
                await browser.send_bytes(update.message(has))
                if update.final:
                    self._served_final.add(browser)

        sender = asyncio.create_task(send())
        try:
            async for message in browser:
                if message.type is not WSMsgType.TEXT or message.data != "next":
                    await browser.close(code=1008, message=b"next, or nothing")
                    break
                asked.set()
        finally:
            sender.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await sender

    async def say_goodbye(self) -> None:
        """Gives those that look the last update, and ends their connections."""
        if self._browsers:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._feed.finish(), GOODBYE)
            until = time.monotonic() + GOODBYE
            while self._browsers - self._served_final and time.monotonic() < until:
                await asyncio.sleep(0.01)
        for browser in list(self._browsers):
            with contextlib.suppress(Exception):
                await asyncio.wait_for(browser.close(code=1001, message=b"the program was ended"), 1)


@contextlib.asynccontextmanager
async def served(server: Server, sockets: list[socket.socket]) -> AsyncIterator[None]:
    """Serves on sockets that listen."""
    runner = web.AppRunner(server.app, access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    assert runner.server
    tasks = [asyncio.create_task(server.connections.accept(one, runner.server)) for one in sockets]
    tasks.append(asyncio.create_task(server.connections.watch()))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for one in sockets:
            one.close()
        await runner.cleanup()


def listen(address: str, port: int) -> list[socket.socket]:
    """Sockets bound to an address, or OSError."""
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, where in found[:1]:
            one = socket.socket(family, kind, protocol)
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(where)
            one.listen(64)
            one.setblocking(False)
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets


def ended_event(ended: threading.Event) -> asyncio.Event:
    """The same, for an event loop."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        ended.wait()
        with contextlib.suppress(RuntimeError):  # the loop may be closed by then
            loop.call_soon_threadsafe(event.set)

    threading.Thread(target=wait, name="live-ended", daemon=True).start()
    return event
