# SPDX-License-Identifier: BSD-3-Clause
"""The command line of ``python3 -m gdrcap.live``."""
from __future__ import annotations

import argparse
import asyncio
import errno
import importlib.util
import json
import logging
import pathlib
import secrets
import signal
import sys
import tempfile
import time
from typing import Any

from .layout import FORMATS, Wanted
from .run import Run
from .view import View

ADDRESS, PORT = "127.0.0.1", 8421
PASSED, NOT_RUN, USAGE, FAILED = 0, 1, 2, 3  # exit status, as the program's

ABOUT = """\
Runs a session and shows it on a page while it goes on: rates, loss and latency, the last image with its missing
pieces marked and a histogram; or, where frames are checked, errors of bits and the first damaged frames. The page
takes what is there, at most ten times a second, and nothing is computed while nobody looks."""

EXAMPLES = """\
examples:
  python3 -m gdrcap.live --demo                         a fake camera in this process, on any machine
  python3 -m gdrcap.live --demo frames                  frames of a pattern, every bit of them checked
  python3 -m gdrcap.live camera.yaml                    a file as for `gdrcap --config`, with `image:` or without
  python3 -m gdrcap.live --set port=ring:w --set tx_port=ring:w --set rate=1gbit
  python3 -m gdrcap.live camera.yaml --width 1280 --height 1024 --format mono12
  python3 -m gdrcap.live camera.yaml --listen 0.0.0.0:8421    from other machines, by the address it prints

from elsewhere, without opening a port to the network:
  ssh -L 8421:127.0.0.1:8421 MACHINE                    then open http://127.0.0.1:8421/ here

Ctrl-C ends run and page. Exit status: 0 all well; 1 could not run, or not to its end; 2 usage or configuration;
3 something was lost, damaged or incomplete."""


class Refused(Exception):
    """What cannot be done, with its remedy, and an exit status."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status


def _pixels(text: str) -> int:
    value = int(text) if text.isascii() and text.isdecimal() else 0
    if not 0 < value <= 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of pixels; allowed: 1..65536")
    return value


def _where(text: str) -> tuple[str, int]:
    address, colon, port = text.rpartition(":")
    if not colon and not port.isdecimal():
        address, port = text, str(PORT)
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is no [ADDRESS:]PORT; examples: 8421, 0.0.0.0:8421, [::1]:0")
    return address.strip("[]") or ADDRESS, int(port)


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is no KEY=VALUE; example: frame.size=64-1518")
    return key, value


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python3 -m gdrcap.live", description=ABOUT, epilog=EXAMPLES, allow_abbrev=False,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("config", metavar="CONFIG", nargs="?", help="YAML file with the session's options (docs/configuration.md)")
    made.add_argument("--set", metavar="KEY=VALUE", type=_option, action="append", default=[],
                      help="an option of the table, which wins over CONFIG's; of a list: once for each")
    made.add_argument("--demo", metavar="WHAT", nargs="?", const="images", choices=("images", "frames"),
                      help="in CONFIG's place: a fake camera (images, the default) or a sender of a pattern (frames)")
    page = made.add_argument_group("the page")
    page.add_argument("--listen", metavar="[ADDRESS:]PORT", type=_where, default=(ADDRESS, PORT),
                      help=f"where it is served; default {ADDRESS}:{PORT}, 0 for any free port. An address that is not "
                      "this machine's alone gets a token, which is part of the address that is printed")
    page.add_argument("--token", action="store_true",
                      help="a token also on 127.0.0.1, where other users of this machine could look")
    page.add_argument("--exit", action="store_true", help="ends when the run does, instead of showing its result until Ctrl-C")
    page.add_argument("--json", action="store_true", help="prints the final summary to standard output (docs/json.md)")
    pictures = made.add_argument_group("images", "where neither the layout nor the sender says what pixels these are:")
    pictures.add_argument("--width", metavar="PIXELS", type=_pixels, help="of a picture")
    pictures.add_argument("--height", metavar="PIXELS", type=_pixels, help="of a picture")
    pictures.add_argument("--format", metavar="FORMAT", choices=sorted(FORMATS),
                          help="of pixels: mono8, mono10, mono12, mono14, mono16, rgb8, bgr8, uyvy, yuyv, ...; of samples, which "
                          "are shown as a line: u8, i8, u16, i16, f16, f32")
    return made


def _need(packages: tuple[str, ...]) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise Refused(f"{' and '.join(missing)} cannot be imported; install with: python3 -m pip install {' '.join(missing)} "
                      f"(Debian, Ubuntu: sudo apt-get install {' '.join('python3-' + name for name in missing)})", USAGE)


def _session(arguments: argparse.Namespace, folder: pathlib.Path) -> Any:
    import gdrcap

    config: Any = arguments.config
    if arguments.demo:
        if arguments.demo == "images":
            _need(("numpy",))
        from . import demo
        config = demo.config(arguments.demo, folder)
    options: dict[str, Any] = {}
    for key, value in arguments.set:
        before = options.get(key)
        options[key] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    try:
        session = gdrcap.Session(config, **options)
    except gdrcap.ConfigError as error:
        raise Refused(str(error), USAGE) from None
    except (gdrcap.Error, OSError) as error:
        raise Refused(str(error), NOT_RUN) from None
    if session.image_names:
        _need(("numpy",))
    elif session.option("consumer.name") != "validate":
        session.close()
        raise Refused("consumer.name: the page shows images, or frames that are checked; take it out, or give image", USAGE)
    return session


def _listen(address: str, port: int) -> Any:
    from .server import listen

    try:
        return listen(address, port)
    except OSError as error:
        where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        remedy = {errno.EADDRINUSE: "something listens there already: --listen takes another port, or 0 for any free one",
                  errno.EACCES: "ports below 1024 are root's: --listen takes another",
                  errno.EADDRNOTAVAIL: "no interface of this machine has that address: `ip address` shows those that do"}
        raise Refused(f"--listen {where}: {error.strerror}: {remedy.get(error.errno or 0, 'give an address of this machine')}",
                      NOT_RUN) from None


class Seldom(logging.Filter):
    """Passes so many lines of each logger, then one in a while: what repeats does not fill a disk."""

    LINES, SECONDS = 20, 10.0  # at once; for one more

    def __init__(self) -> None:
        super().__init__()
        self._left: dict[str, tuple[float, float, int]] = {}  # lines that may come, as of when; left out since the last

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        may, since, out = self._left.get(record.name, (float(self.LINES), now, 0))
        may = min(may + (now - since) / self.SECONDS, self.LINES)
        if may < 1:
            self._left[record.name] = may, now, out + 1
            return False
        if out:
            record.msg, record.args = f"{record.getMessage()} ({out} lines before it were left out)", None
        self._left[record.name] = may - 1, now, 0
        return True


def _say(text: str) -> None:
    print(f"gdrcap.live: {text}", file=sys.stderr, flush=True)


async def _serve(run: Run, view: View, arguments: argparse.Namespace, sockets: Any) -> None:
    from .server import Feed, Server, ended_event, is_loopback, served

    address = arguments.listen[0]
    token = secrets.token_urlsafe(24) if arguments.token or not is_loopback(address) else None
    feed = Feed(view.update)
    server = Server(feed, address, token)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopped.set()
        # A second one ends the program at once.
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def failed(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception():
            logging.getLogger("gdrcap.live").error("the page shows no more: %s", task.exception(), exc_info=task.exception())

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    ended = ended_event(run.ended)
    async with served(server, sockets):
        _say(f"the page: {server.url(sockets[0].getsockname()[1])}")
        feeding = asyncio.create_task(feed.run())
        feeding.add_done_callback(failed)
        waits = [asyncio.create_task(one.wait()) for one in (ended, stopped)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.is_set():
            _tell(run, arguments.exit)
            if not arguments.exit:
                await stopped.wait()
        else:
            await asyncio.to_thread(run.stop)
            _tell(run, True)
        await server.say_goodbye()
        for task in (*waits, feeding):
            task.cancel()
        await asyncio.wait([feeding])


def _errors(run: Run) -> list[str]:
    errors = list(run.session.summary()["errors"])
    if run.error and run.error not in errors:
        errors.append(run.error)
    return errors


def _tell(run: Run, leaving: bool) -> None:
    """The verdict, in a line."""
    summary = run.session.summary()
    verdict = "passed" if _status(run, summary) == PASSED else "failed: " + "; ".join(_errors(run))
    _say(f"the run has ended: {verdict}" + ("" if leaving else ". The page stays until Ctrl-C"))


def _status(run: Run, summary: dict[str, Any]) -> int:
    if run.error:
        return NOT_RUN
    return PASSED if summary["result"] == "pass" else FAILED


def _run(arguments: argparse.Namespace, folder: pathlib.Path) -> int:
    session = _session(arguments, folder)
    run = Run(session)
    try:
        sockets = _listen(*arguments.listen)
        try:
            run.start()
        except (OSError, ValueError) as error:
            raise Refused(str(error), NOT_RUN) from None
        wanted = Wanted(arguments.width, arguments.height, FORMATS[arguments.format] if arguments.format else None)
        try:
            asyncio.run(_serve(run, View(run, wanted), arguments, sockets))
        finally:
            run.stop()
        summary = session.summary()
        if arguments.json:
            print(json.dumps(summary), flush=True)
        return _status(run, summary)
    finally:
        run.close()


def main(words: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    made = parser()
    arguments = made.parse_args(words)
    if (arguments.config and arguments.demo) or not (arguments.config or arguments.set or arguments.demo):
        made.error("give CONFIG, --set or --demo: what to capture, or a camera that is none")
    logging.basicConfig(level=logging.WARNING, format="gdrcap.live: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(Seldom())
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # what strangers send is no news
    try:
        _need(("aiohttp",))
        with tempfile.TemporaryDirectory(prefix="gdrcap-live-") as folder:
            return _run(arguments, pathlib.Path(folder))
    except Refused as refused:
        _say(str(refused))
        return refused.status
