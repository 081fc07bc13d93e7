# SPDX-License-Identifier: BSD-3-Clause
"""Sessions, and the images and batches that come from them."""
from __future__ import annotations

import asyncio
import atexit
import errno
import json
import logging
import math
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Generic, Optional, TypeVar, Union

from . import _config, _log, _native
from ._errors import Error, Single
from ._sending import Sender
from ._streams import _BATCH, _FRAMES, _IMAGE, StreamBatches, StreamFrames, StreamImages

_EVENTS = ("", "first_frame", "link_down", "link_up", "port_gone", "no_slots", "slots_again", "queue_restarted",
           "consumer_late", "consumer_moves", "saver_behind", "saver_moves", "end", "missed", "missed_over")
_SLICE_MS = 50
_IMAGES_MAX = 4

Taken = TypeVar("Taken")
Kept = TypeVar("Kept", "Images", "Batches")


class _Source(Single, Generic[Taken], Iterator[Taken], AsyncIterator[Taken]):
    """One thread's, or one task's, at a time. Ends when the run is over and the last one was taken."""

    def __init__(self, session: Session, native: _native.Source[Taken], timeout: Optional[float]) -> None:
        self._session = session
        self._native = native
        self._timeout = timeout

    def poll(self) -> Optional[Taken]:
        """The next one, or None when there is none yet. EOFError: there will never be one again."""
        return self._native.poll()

    def wait(self, timeout: Optional[float] = None) -> Optional[Taken]:
        """The next one, waited for; None when none came for `timeout` seconds. EOFError: there will never be one
        again. Signals are handled within 0.05 s."""
        return self._native.wait(timeout)

    def fileno(self) -> int:
        """A descriptor that is readable when there is one, or never will be again. A poll() that returned None
        arms it."""
        return self._native.fileno()

    def _late(self) -> TimeoutError:
        return TimeoutError("nothing came for %g s" % (self._timeout or 0))

    def __iter__(self) -> _Source[Taken]:
        return self

    def __next__(self) -> Taken:
        try:
            taken = self._native.wait(self._timeout)
        except EOFError:
            raise StopIteration from None
        except ValueError:
            if self._session.closed:
                raise StopIteration from None
            raise
        if taken is None:
            raise self._late()
        return taken

    def __aiter__(self) -> _Source[Taken]:
        return self

    async def __anext__(self) -> Taken:
        loop = asyncio.get_running_loop()
        until = math.inf if self._timeout is None else loop.time() + self._timeout
        while True:
            # The descriptor is made, and armed by the look that finds nothing.
            try:
                descriptor = self._native.fileno()
                taken = self._native.poll()
            except EOFError:
                raise StopAsyncIteration from None
            except ValueError:
                if self._session.closed:
                    raise StopAsyncIteration from None
                raise
            if taken is not None:
                return taken
            await self._readable(loop, descriptor, until)

    async def _readable(self, loop: asyncio.AbstractEventLoop, descriptor: int, until: float) -> None:
        ready = asyncio.Event()
        # What the descriptor is of stays until nobody waits on it.
        held = self._native.hold()
        loop.add_reader(descriptor, ready.set)
        try:
            await asyncio.wait_for(ready.wait(), None if until == math.inf else max(0.0, until - loop.time()))
        except asyncio.TimeoutError:
            raise self._late() from None
        finally:
            loop.remove_reader(descriptor)
            held.close()


class Images(_Source[_native.Image]):
    """The images of one description, in the order in which they are handed out."""


class Batches(_Source[_native.Batch]):
    """The batches of one receive queue."""


class Session(Single):
    """Ports, memory, and one run of frames or images from them.

    config: a dictionary of options, nested or with dots in its keys, or the path of a YAML file, or None.
    log: a logging.Logger, or its name; default "gdrcap". Further options, "__" for the dot in their keys, are set
    after those of config.

    The ports are opened here; `with` starts the run, and stops it and closes the session at its end.
    """

    def __init__(self, config: _config.Config = None, *, log: Union[logging.Logger, str, None] = None,
                 **options: Any) -> None:
        self._lock = threading.RLock()
        self._state = "idle"
        self._last: Optional[dict[str, Any]] = None
        self._log = _log.register(log)
        self._native = _native.Session(self._log)
        self._sources: weakref.WeakSet[Any] = weakref.WeakSet()
        self._senders: weakref.WeakValueDictionary[int, Sender] = weakref.WeakValueDictionary()
        self._memories: list[_native.Memory] = []
        self.closed = False
        try:
            _config.apply(self._native, config, options)
            self._create()
        except BaseException:
            self._native.close()
            _log.forget(self._log)
            raise
        _log.deliver()
        _sessions.add(self)

    def _create(self) -> None:
        try:
            self._native.create()
        except Error as error:
            left = _native.left()
            if error.errno not in (errno.EBUSY, errno.EEXIST, errno.EADDRINUSE) or not left:
                raise
            raise type(error)(error.errno, "%s (sessions that were left and still have their ports: %d, since images, "
                              "frames, slots or arrays of theirs are alive: release() or drop these)" % (error, left)) from None

    def __repr__(self) -> str:
        return "<gdrcap.Session, %s>" % ("closed" if self.closed else self._state)

    # ---- control ----

    @property
    def started(self) -> bool:
        """Whether start() was called."""
        return self._state != "idle"

    def start(self) -> None:
        """Starts the run. A session runs once."""
        try:
            self._native.start()
            self._state = "running"
        finally:
            _log.deliver()

    def stop(self) -> None:
        """Ends the run; any thread, at any time. Raises what ended it early."""
        if self.closed:
            return
        try:
            self._native.stop()
        finally:
            if self._state == "running":
                self._state = "over"
            _log.deliver()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Until the run has reached its end, or for `timeout` seconds: whether it has. stop() is next."""
        native = self._started()
        until = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            left = until - time.monotonic()
            if native.wait_end(int(max(0.0, min(_SLICE_MS, left * 1000)))):
                return True
            if left <= 0:
                return False

    def close(self) -> None:
        """Stops, and gives all back: at once, or when the last image, frame and tensor of it is gone."""
        with self._lock:
            if self.closed:
                return
            try:
                if self.started:
                    self.stop()
            finally:
                try:
                    self._last = self.summary()
                finally:
                    self.closed = True
                    for source in (*self._sources, *self._senders.values()):
                        source._native.close()
                    while self._memories:
                        self._memories.pop().close()
                    self._native.close()
                    _log.forget(self._log)

    def __enter__(self) -> Session:
        started = self.started
        try:
            self.start()
        except BaseException:
            if not started:  # else who began it goes on with it
                self.close()
            raise
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self.close()
        except Error as failed:
            # What the loop raised is what matters; this came on top of it.
            if error is None:
                raise
            logging.getLogger("gdrcap").error("%s", failed)

    # ---- what comes ----

    def _started(self) -> _native.Session:
        if not self.closed and not self.started:
            raise ValueError("the session is not started: use it in a with statement, or call start()")
        return self._native

    def _kept(self, source: Kept) -> Kept:
        self._sources.add(source)
        return source

    def images(self, index: int = 0, *, timeout: Optional[float] = None) -> Images:
        """Images of description `index`, to iterate over, with `async for` too. timeout: seconds without one until
        TimeoutError."""
        return self._kept(Images(self, self._started().source(True, index), timeout))

    def batches(self, queue: int = 0, *, timeout: Optional[float] = None) -> Batches:
        """Batches of receive queue `queue` (ports in order, then queues), with consumer="host" and no image."""
        return self._kept(Batches(self, self._started().source(False, queue), timeout))

    @property
    def image_names(self) -> tuple[str, ...]:
        """Names of the descriptions: of presets, or files."""
        names = (self._native.image_name(index) for index in range(_IMAGES_MAX))
        return tuple(name for name in names if name is not None)

    # ---- by CUDA streams ----

    def stream_batches(self, queue: int = 0) -> StreamBatches:
        """Batches of receive queue `queue` for CUDA streams to wait for and give back, with consumer="gpu" and no image."""
        return StreamBatches(self, self._native, _BATCH, queue)

    def stream_images(self, index: int = 0) -> StreamImages:
        """Images of description `index` for CUDA streams, with consumer="gpu"."""
        return StreamImages(self, self._native, _IMAGE, index)

    def stream_frames(self, sender: int = 0) -> StreamFrames:
        """Frames of send queue `sender` for CUDA streams to fill and send, with sender="gpu"."""
        return StreamFrames(self, self._native, _FRAMES, sender)

    # ---- what is sent ----

    @property
    def senders(self) -> list[Sender]:
        """The send queues (sending ports in order, then queues), with sender="host"; there before the start, too."""
        senders: list[Sender] = []
        with self._lock:
            while True:
                sender = self._senders.get(len(senders))
                if sender is None:
                    native = self._native.sender(len(senders))
                    if native is None:
                        return senders
                    sender = self._senders[len(senders)] = Sender(self, native)
                senders.append(sender)

    def register(self, memory: Any) -> _native.Memory:
        """Makes memory ready for payloads (Slot.payload, and pairs of Sender.send()), which are then sent from where they
        lie: a buffer in host memory, as gdrcap.aligned() makes them, or an array on the session's GPU. It begins at, and
        has, a multiple of 64 KiB, and stays registered until its unregister() or the session's end. Error: a sending port
        can send frames of one piece only, or not from there."""
        registered = self._native.register(memory)
        self._memories = [other for other in self._memories if other.registered] + [registered]
        return registered

    # ---- what is known ----

    def option(self, key: str, index: int = 0) -> Optional[str]:
        """An option's value, as it was written, or its default; None where there is none."""
        return self._native.get(key, index)

    def selftest(self) -> list[dict[str, Any]]:
        """A loopback's first frame, step by step, before the start: name, state, detail, causes. Raises Error where a
        step failed."""
        try:
            code, text = self._native.selftest()
        finally:
            _log.deliver()
        if text is not None:
            raise Error(-code, text)
        steps: list[dict[str, Any]] = self.summary()["stages"]
        return steps

    def summary(self) -> dict[str, Any]:
        """The object that `gdrcap --json` prints of such a run (docs/json.md): any thread, at any time; of a closed
        session the last one."""
        if self._last is not None:
            return self._last
        summary: dict[str, Any] = json.loads(self._native.results())
        return summary

    def event(self) -> Optional[dict[str, Any]]:
        """The oldest event that waits, or None: kind, name, code, time_ns (since the Unix epoch), count, dropped,
        port, sends, queue, text."""
        event = self._native.event()
        if event is not None:
            event["name"] = _EVENTS[event["kind"]] if event["kind"] < len(_EVENTS) else "unknown"
        return event

    def event_fd(self) -> int:
        """A descriptor that is readable while an event waits."""
        return self._native.event_fd()


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """What is saved to files is whole, and threads that wait are woken up. Nothing is freed under them."""
    for session in list(_sessions):
        try:
            if not session.closed and session.started:
                session.stop()
        except Error as error:
            logging.getLogger("gdrcap").error("%s", error)
