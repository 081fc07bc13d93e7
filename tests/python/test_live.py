# SPDX-License-Identifier: BSD-3-Clause
"""The page's server: who may look, what each gets and when; and the command line around a real session."""
import asyncio
import contextlib
import http.client
import json
import logging
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

import harness
import live_fake

aiohttp = pytest.importorskip("aiohttp")

from gdrcap.live import cli as live_cli  # noqa: E402
from gdrcap.live import server as live_server  # noqa: E402
from gdrcap.live.layout import Wanted  # noqa: E402
from gdrcap.live.run import Run  # noqa: E402
from gdrcap.live.view import Rates, Update, View, exact  # noqa: E402

TOKEN = "t0ken-of-the-test"
TYPES = {"": "text/html", "live.css": "text/css", "live.js": "text/javascript", "plots.js": "text/javascript", "icon.svg": "image/svg+xml"}


class Maker:
    """Updates with numbers; the run ends when `ended` is set."""

    def __init__(self, size=0):
        self.made, self.ended, self.size = 0, False, size

    def __call__(self):
        self.made += 1
        return Update({"made": self.made, "pictures": [{"drawn": 1}], "fill": "x" * self.size}, [(1, b"picture")], self.ended)


@contextlib.asynccontextmanager
async def serving(maker, address="127.0.0.1", token=None):
    feed = live_server.Feed(maker)
    server = live_server.Server(feed, address, token)
    sockets = live_server.listen("127.0.0.1", 0)
    feeding = asyncio.create_task(feed.run())
    async with live_server.served(server, sockets), aiohttp.ClientSession() as client:
        server.test_port = sockets[0].getsockname()[1]
        yield server, client, "http://127.0.0.1:%d/" % server.test_port
    feeding.cancel()


async def next_update(browser):
    await browser.send_str("next")
    return await update_of(browser)


async def update_of(browser):
    data = await asyncio.wait_for(browser.receive_bytes(), harness.TIMEOUT)
    count = struct.unpack("<I", data[:4])[0]
    return json.loads(data[4:4 + count]), data[4 + count:]


def asked(port, path, *headers):
    """Status and headers of an answer to exactly these."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.TIMEOUT)
    connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def upgrade(origin=None, host="localhost"):
    return [("Host", host), ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="), *([("Origin", origin)] if origin is not None else [])]


def test_files():
    """The page's files, each with its type, a policy that lets nothing from elsewhere in, and nothing else."""
    async def play():
        async with serving(Maker()) as (_, client, url):
            for name, kind in TYPES.items():
                async with client.get(url + name) as answer:
                    assert answer.status == 200 and answer.content_type == kind, (name, answer.headers)
                    policy = answer.headers["Content-Security-Policy"]
                    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'"), policy
                    assert "unsafe" not in policy and answer.headers["X-Content-Type-Options"] == "nosniff"
                    text = await answer.text()
                    assert not re.search(r"(src|href|url|import)[=( ]*[\"']?(https?:)?//", text), name
                    assert "HTML" not in text.replace("doctype html", "") and "eval(" not in text, name
            for name in ("cli.py", "..%2fcli.py", "page/live.js", "live.JS", "x" * 5000):
                async with client.get(url + name) as answer:
                    assert answer.status == 404, (name, answer.status)
            async with client.post(url) as answer:
                assert answer.status == 405
    asyncio.run(play())


def test_hosts():
    """Names that are not this page's are refused, so that nobody's page can have its own name point here."""
    async def play():
        async with serving(Maker()) as (server, _, _):
            for host, status in (("localhost:8421", 200), ("127.0.0.1", 200), ("127.0.0.1:1", 200), ("[::1]:9", 200),
                                 ("evil.example", 403), ("evil.example:8421", 403), ("localhost.evil.example", 403), ("", 403),
                                 ("192.0.2.1", 403), ("a@localhost", 403), ("localhost/x", 403), ("localhost:x", 403), ("[", 403)):
                found = await asyncio.to_thread(asked, server.test_port, "/", ("Host", host))
                assert found[0] in ((status,) if status == 200 else (403, 400)), (host, found)
            found = await asyncio.to_thread(asked, server.test_port, "/", ("Host", "localhost"), ("Host", "evil.example"))
            assert found[0] in (400, 403), found
            found = await asyncio.to_thread(asked, server.test_port, "/")
            assert found[0] in (400, 403), found
        async with serving(Maker(), "0.0.0.0", TOKEN) as (server, _, _):
            for host, status in (("192.0.2.1:8421", 200), (socket.gethostname(), 200), ("localhost", 200), ("evil.example", 403)):
                found = await asyncio.to_thread(asked, server.test_port, "/%s/" % TOKEN, ("Host", host))
                assert found[0] == status, (host, found)
    asyncio.run(play())


def test_origins():
    """A page of another site gets no connection."""
    async def play():
        async with serving(Maker()) as (server, _, _):
            for origin, status in ((None, 101), ("http://localhost", 101), ("http://evil.example", 403), ("null", 403),
                                   ("http://localhost.evil.example", 403), ("http://localhost:1", 403), ("", 403)):
                def answer(of=origin):
                    with socket.create_connection(("127.0.0.1", server.test_port), harness.TIMEOUT) as connection:
                        lines = ["GET /updates HTTP/1.1"] + ["%s: %s" % header for header in upgrade(of)]
                        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
                        return int(connection.recv(12).split()[1])
                assert await asyncio.to_thread(answer) == status, origin
    asyncio.run(play())


def test_token():
    """Without the token nothing is to be had, and it is compared whole."""
    async def play():
        maker = Maker()
        async with serving(maker, "0.0.0.0", TOKEN) as (server, client, url):
            for path in ("", "live.js", "updates", "x/", "x/updates", TOKEN[:-1] + "/", TOKEN + "x/updates", TOKEN.upper() + "/", "%ff/"):
                async with client.get(url + path) as answer:
                    assert answer.status == 403 and "that was printed" in await answer.text(), (path, answer.status)
            for name in TYPES:
                async with client.get(url + TOKEN + "/" + name) as answer:
                    assert answer.status == 200, name
            async with client.ws_connect(url + TOKEN + "/updates") as browser:
                assert (await next_update(browser))[0]["made"] == 1
            assert TOKEN in server.url(1) and maker.made == 1
    asyncio.run(play())


def test_rate():
    """Ten updates a second at most, however often a browser asks; several browsers share them."""
    async def play():
        maker = Maker()
        async with serving(maker) as (_, client, url):
            async with client.ws_connect(url + "updates") as one, client.ws_connect(url + "updates") as two:
                start, seen = time.monotonic(), []
                for _ in range(8):
                    both = await asyncio.gather(next_update(one), next_update(two))
                    seen.append(both[0][0]["made"])
                    assert both[0][1][:4] == (struct.pack("<I", 7) if len(seen) == 1 else bytes(4)), "the picture goes once"
                assert time.monotonic() - start >= 7 * live_server.INTERVAL
                assert seen == sorted(set(seen)) and maker.made <= 2 * 8, (seen, maker.made)
    asyncio.run(play())


def test_nobody_looks():
    """Nothing is computed when no browser is there, nor for one that asks for nothing."""
    async def play():
        maker = Maker()
        async with serving(maker) as (_, client, url):
            async with client.ws_connect(url + "updates") as silent:
                for _ in range(20):
                    async with client.get(url) as answer:
                        assert answer.status == 200
                await silent.ping()
            assert maker.made == 0
            async with client.ws_connect(url + "updates") as browser:
                await next_update(browser)
            made = maker.made
            for _ in range(20):
                async with client.get(url) as answer:
                    assert answer.status == 200
            async with client.ws_connect(url + "updates") as browser:
                await next_update(browser)  # after what would have been made for the one that left
            made += 1
            assert maker.made == made
    asyncio.run(play())


def test_slow_browser():
    """One that takes nothing gets no queue: when it looks again there are at most two old updates, then the newest."""
    async def play():
        maker = Maker(size=100_000)
        async with serving(maker) as (_, client, url):
            async with client.ws_connect(url + "updates", max_msg_size=0) as slow, client.ws_connect(url + "updates", max_msg_size=0) as quick:
                for _ in range(50):
                    await slow.send_str("next")
                for _ in range(12):
                    newest = (await next_update(quick))[0]["made"]
                seen = []
                while not seen or seen[-1] < newest - 1:
                    await slow.send_str("next")
                    seen.append((await update_of(slow))[0]["made"])
                assert len(seen) <= 4 and newest >= 12, (seen, newest)
    asyncio.run(play())


def test_hostile_browser():
    """What says anything but "next" is turned away, and others go on."""
    async def play():
        async with serving(Maker()) as (_, client, url):
            for words, code in (("nonsense", 1008), ("x" * 100_000, 1009), (b"next", 1008)):
                async with client.ws_connect(url + "updates") as browser:
                    await (browser.send_bytes(words) if isinstance(words, bytes) else browser.send_str(words))
                    message = await asyncio.wait_for(browser.receive(), harness.TIMEOUT)
                    assert message.type == aiohttp.WSMsgType.CLOSE and message.data == code, message
            many = [await client.ws_connect(url + "updates") for _ in range(live_server.BROWSERS_MAX)]
            await next_update(many[-1])
            async with client.get(url + "updates", headers={"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                                                            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}) as answer:
                assert answer.status == 503
            for browser in many:
                await browser.close()
    asyncio.run(play())


def test_silent_connection(monkeypatch):
    """What brings no whole request is closed after its time, though a byte comes now and then; what looks stays."""
    monkeypatch.setattr(live_server, "REQUEST_SECONDS", 0.5)

    async def play():
        async with serving(Maker()) as (server, client, url):
            async with client.ws_connect(url + "updates") as browser:
                await next_update(browser)
                reader, writer = await asyncio.open_connection("127.0.0.1", server.test_port)
                read = asyncio.create_task(reader.read())
                writer.write(b"GET /")
                with contextlib.suppress(ConnectionError):
                    while not read.done():
                        writer.write(b"x")
                        await writer.drain()
                        await asyncio.wait([read], timeout=0.1)
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(read, harness.TIMEOUT) == b""
                writer.close()
                await next_update(browser)
                assert len(server.connections) == 1
    asyncio.run(play())


def test_lines_that_repeat(monkeypatch):
    """Of each logger some lines come at once and then one in a while, which says how many are missing."""
    now = [0.0]
    monkeypatch.setattr(live_cli.time, "monotonic", lambda: now[0])
    seldom = live_cli.Seldom()

    def passed(name, count):
        records = [logging.LogRecord(name, logging.ERROR, "", 0, "line %d", (number,), None) for number in range(count)]
        return [record.getMessage() for record in records if seldom.filter(record)]

    assert len(passed("asyncio", 1000)) == seldom.LINES and passed("gdrcap", 1) == ["line 0"]
    now[0] = seldom.SECONDS
    assert passed("asyncio", 2) == ["line 0 (980 lines before it were left out)"]
    now[0] = 1e6
    assert len(passed("asyncio", 1000)) == seldom.LINES


def test_end():
    """The last update stays to be had; a browser that has it gets no more; a goodbye gives it to all."""
    async def play():
        maker = Maker()
        async with serving(maker) as (server, client, url):
            async with client.ws_connect(url + "updates") as first:
                await next_update(first)
                maker.ended = True
                final = (await next_update(first))[0]["made"]
                async with client.ws_connect(url + "updates") as later:
                    assert (await next_update(later))[0]["made"] == final
                    await later.send_str("next")
                    await first.send_str("next")
                    await server.say_goodbye()
                    for browser in (first, later):
                        message = await asyncio.wait_for(browser.receive(), harness.TIMEOUT)
                        assert message.type == aiohttp.WSMsgType.CLOSE and message.data == 1001, message
        assert maker.made == final
    asyncio.run(play())


def test_numbers():
    """Counts that JavaScript would round go as text; rates are those of the last second."""
    assert exact({"a": [1 << 53, (1 << 53) + 1], "b": -(1 << 60), "c": True, "d": 1e300}) == \
        {"a": [1 << 53, str((1 << 53) + 1)], "b": str(-(1 << 60)), "c": True, "d": 1e300}
    rates = Rates()
    assert rates.look(0.0, {"x": 0}) == {} == rates.look(0.1, {"x": 10})
    found = [rates.look(0.1 * i, {"x": 100 * i if i < 30 else 3000}) for i in range(2, 60)]
    assert abs(found[20]["x"] - 1000) < 1e-6 and found[-1]["x"] == 0
    assert rates.look(100.0, {"x": 9000}) == {}, "nobody looked meanwhile"
    # Gb/s on the wire, of frames with 24 bytes more than in memory.
    session = live_fake.Session(live_fake.summary())
    shown = View(Run(session), Wanted())
    clock, shown._rates.look = iter((0.0, 1.0)), lambda now, counts, look=shown._rates.look: look(next(clock), counts)
    assert shown.update().facts["rate"] == {"gbps": None, "mpps": None, "whole": False}
    more = live_fake.summary(bytes=300 + 6_000_000)
    more["frames"]["received"] += 100_000
    session.found = more
    found = shown.update().facts["rate"]
    assert abs(found["gbps"] - (6_000_000 + 24 * 100_000) * 8e-9) < 1e-9 and abs(found["mpps"] - 0.1) < 1e-9, found


# ---- the command line, with a real session ----

started: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def none_is_left():
    """A test that fails leaves no program behind."""
    yield
    while started:
        with started.pop() as process:
            process.kill()


def start(*words, **options):
    environment = dict(os.environ, PYTHONPATH=harness.PACKAGE, PYTHONUNBUFFERED="1")
    started.append(subprocess.Popen([sys.executable, "-m", "gdrcap.live", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=environment, **options))
    return started[-1]


def ended(process, status):
    out, err = process.communicate(timeout=harness.TIMEOUT)
    assert process.returncode == status, (process.returncode, out, err)
    return out, err


def page_of(process):
    """The address that is printed."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        found = re.search(r"the page: (\S+)", line)
        if found:
            return found[1]
    raise AssertionError("no address: %s" % lines)


def test_refused():
    """What is wrong is said with its remedy, before anything runs."""
    assert "examples:" in ended(start("--help"), 0)[0]
    assert "--demo" in ended(start(), 2)[1]
    assert "no [ADDRESS:]PORT" in ended(start("--demo", "--listen", "x:y"), 2)[1]
    assert "unknown option" in ended(start("--set", "prot=ring:x"), 2)[1]
    assert "allowed: 1..65536" in ended(start("--demo", "--width", "0"), 2)[1]
    assert "/nonexistent/x.yaml" in ended(start("/nonexistent/x.yaml"), 2)[1]
    ring = ("--set", "port=ring:x", "--set", "tx_port=ring:x", "--set", "gpu=host", "--listen")
    assert "take it out" in ended(start(*ring, "0", "--set", "consumer.name=host"), 2)[1]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "--listen takes another port" in ended(start(*ring, str(port)), 1)[1]
    assert "no interface of this machine" in ended(start(*ring, "192.0.2.77:0"), 1)[1]
    with harness.Folder() as folder:
        path = os.path.join(folder, "x.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("port: ring:x\nframe.sise: 3\n")
        assert "x.yaml:2" in ended(start(path), 2)[1]
    found = harness.program("import sys; sys.modules['aiohttp'] = None\nfrom gdrcap.live.cli import main\nsys.exit(main(['--demo']))", status=2)
    assert "python3 -m pip install aiohttp" in found.stderr, found.stderr


def test_run():
    """A run that ends by itself: its numbers are the summary's, for who looks after its end too; Ctrl-C ends the page."""
    async def last(url):
        async with aiohttp.ClientSession() as client, client.ws_connect(url + "updates", max_msg_size=0) as browser:
            while True:
                update = (await next_update(browser))[0]
                if update["state"] in ("pass", "fail"):
                    return update

    process = start("--set", "port=ring:x", "--set", "tx_port=ring:x", "--set", "gpu=host", "--set", "frames=20000", "--set", "streams=3",
                    "--listen", "0", "--json", "--token")
    url = page_of(process)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url), url
    update = asyncio.run(last(url))
    assert asyncio.run(last(url)) == update
    process.send_signal(signal.SIGINT)
    out, err = ended(process, 0)
    summary = json.loads(out)
    assert "passed" in err and summary["result"] == update["state"] == "pass"
    assert summary["frames"]["received"] == 20000
    for key in ("frames", "bits", "lost_by", "streams", "bytes", "damage", "filtered"):
        assert update[key] == summary[key], key
    # --exit: without anybody.
    process = start("--set", "port=ring:x", "--set", "tx_port=ring:x", "--set", "gpu=host", "--set", "frames=100", "--listen", "0", "--exit")
    assert "passed" in ended(process, 0)[1]


def test_half_open():
    """More connections without a request than the process has descriptors: the page answers, and says little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    process = start("--set", "port=ring:x", "--set", "tx_port=ring:x", "--set", "gpu=host", "--set", "frames=100", "--listen", "0",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
    port = int(re.search(r":(\d+)/", page_of(process))[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(1100):
                one = stack.enter_context(socket.create_connection(("127.0.0.1", port), harness.TIMEOUT))
                with contextlib.suppress(ConnectionError):
                    one.sendall(b"GET / HT")
            assert asked(port, "/", ("Host", "localhost"))[0] == 200
            assert len(os.listdir("/proc/%d/fd" % process.pid)) < 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    process.send_signal(signal.SIGINT)
    assert len(ended(process, 0)[1]) < 2000


def test_interrupted():
    """Ctrl-C in a run of a camera that goes on: the run is ended, and who looks gets its last numbers."""
    harness.need_numpy()

    async def play(url, process):
        async with aiohttp.ClientSession() as client, client.ws_connect(url + "updates", max_msg_size=0) as browser:
            while True:
                update = (await next_update(browser))[0]
                if update["images"][0]["incomplete"] and update["pictures"]:
                    break
            process.send_signal(signal.SIGINT)
            while update["state"] == "running":
                update = (await next_update(browser))[0]
            return update

    process = start("--demo", "--listen", "0", "--json")
    update = asyncio.run(play(page_of(process), process))
    summary = json.loads(ended(process, 3)[0])
    assert update["state"] == "fail" and update["errors"] == summary["errors"] and summary["errors"]
    for mine, theirs in zip(update["images"], summary["images"]):
        for key in ("frames", "begun", "complete", "incomplete", "incomplete_by", "dropped", "skipped", "pieces", "bytes"):
            assert mine[key] == theirs[key], (key, mine, theirs)
        assert mine["complete"] > 0 and mine["latency"]["images"] > 0, mine
    assert update["pictures"][0]["format"] == "mono8" and update["pictures"][0]["width"] == 640
