# SPDX-License-Identifier: BSD-3-Clause
"""The run that a page shows: takes its images so that none waits for the page, and keeps the newest for it."""
from __future__ import annotations

import collections
import threading
import time
from typing import Any, Protocol

from .layout import Layout, read_layout

LATENCIES = 2000  # of the last images, of which p50 and p99 are
RING_TO_KEEP = 4  # buffers: with fewer the page keeps none between two looks
WAIT = 0.2  # seconds that a thread waits before it looks whether it is to end


class Session(Protocol):
    """What is used of gdrcap.Session."""

    image_names: tuple[str, ...]

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def wait(self, timeout: float | None = None) -> bool: ...
    def images(self, index: int = 0) -> Any: ...
    def summary(self) -> dict[str, Any]: ...
    def option(self, key: str, index: int = 0) -> str | None: ...


class Taker:
    """Takes the images of one description on a thread of its own and gives all back but the newest.

    Until it is drawn, one with pieces missing is kept before those that are whole. With several streams the one
    that was drawn longest ago has its turn, so that each is seen.
    """

    def __init__(self, source: Any, name: str, layout: Layout):
        self.name, self.layout = name, layout
        self.taken = 0
        self.error: str | None = None
        self._source = source
        self._lock = threading.Lock()
        self._kept: Any = None
        self._wanted = False
        self._keeps = layout.ring >= RING_TO_KEEP
        self._drawn: dict[int, int] = {}  # stream: when
        self._draws = 0
        self._latencies: collections.deque[int] = collections.deque(maxlen=LATENCIES)
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"live-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._closing:
                try:
                    image = self._source.wait(WAIT)
                except TimeoutError:
                    continue
                if image is not None:
                    self._take(image)
        except EOFError:
            pass
        except Exception as error:  # noqa: BLE001 - shown on the page; images are dropped and counted from here on
            self.error = f"{self.name}: no more images can be taken: {error}"

    def _take(self, image: Any) -> None:
        if image.complete:
            self._latencies.append(time.time_ns() - image.last_time)
        self.taken += 1
        given_back = image
        with self._lock:
            if (self._keeps or self._wanted) and self._is_next(image):
                given_back, self._kept = self._kept, image
        if given_back is not None:
            given_back.release()

    def _is_next(self, image: Any) -> bool:
        if self._kept is None:
            return True
        if image.complete != self._kept.complete:
            return bool(self._kept.complete)
        return self._drawn.get(image.stream, 0) <= self._drawn.get(self._kept.stream, 0)

    def newest(self) -> Any:
        """An image that was not drawn yet, which is the caller's to release; None where there is none."""
        with self._lock:
            image, self._kept = self._kept, None
            self._wanted = image is None
            if image is not None:
                self._draws += 1
                self._drawn[image.stream] = self._draws
        return image

    def latency(self) -> dict[str, Any]:
        """From the last piece's arrival to the image in this process, of the last complete images."""
        found = sorted(self._latencies.copy())
        if not found:
            return {"images": 0, "p50": None, "p99": None}
        return {"images": len(found), "p50": found[len(found) // 2], "p99": found[min(len(found) * 99 // 100, len(found) - 1)]}

    def join(self) -> None:
        """Until the last image was taken."""
        self._thread.join()

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        image = self.newest()
        if image is not None:
            image.release()


class Run:
    """A session from its start to its end."""

    def __init__(self, session: Session):
        self.session = session
        self.takers: list[Taker] = []
        self.ended = threading.Event()
        self.error: str | None = None
        self._started = time.monotonic()
        self._seconds: float | None = None
        self._ender = threading.Thread(target=self._end, name="live-end", daemon=True)

    def start(self) -> None:
        memory = self.session.summary()["memory"] or {}
        if self.session.image_names and memory.get("driver") == "gpu_cuda":
            from .scale import prepare  # here, since numpy is needed for images alone

            prepare()
        self._started = time.monotonic()
        self.session.start()
        self.takers = [Taker(self.session.images(i), name, read_layout(self.session.option("image", i)))
                       for i, name in enumerate(self.session.image_names)]
        for taker in self.takers:
            taker.start()
        self._ender.start()

    def _end(self) -> None:
        try:
            self.session.wait()
            self.session.stop()
        except Exception as error:  # noqa: BLE001 - it is the run's result, and shown
            self.error = str(error)
        for taker in self.takers:
            taker.join()
        self._seconds = time.monotonic() - self._started
        self.ended.set()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started if self._seconds is None else self._seconds

    def stop(self) -> None:
        """Ends the run, if it goes on; returns when it has ended. Any thread."""
        try:
            self.session.stop()
        except Exception as error:  # noqa: BLE001 - as in _end()
            self.error = self.error or str(error)
        self.ended.wait()

    def close(self) -> None:
        for taker in self.takers:
            taker.close()
        self.session.close()
