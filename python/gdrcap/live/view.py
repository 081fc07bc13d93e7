# SPDX-License-Identifier: BSD-3-Clause
"""One update of the page: what the summary says, rates of the last second, and the newest images."""
from __future__ import annotations

import collections
import json
import secrets
import struct
import time
from typing import Any

from .layout import Wanted
from .run import Run

WINDOW = 1.0  # seconds over which a rate is taken
WINDOW_MAX = 3.0  # older looks, of before nobody looked, are forgotten
EXACT = 1 << 53  # beyond it JavaScript's numbers are not exact: such counts go as text
STREAMS_MAX = 64  # rows of a table
MESSAGES_MAX = 20
WIRE_EXTRA = 24  # bytes of FCS, preamble and gap that a frame has beside those in memory


def exact(value: Any) -> Any:
    """The same with integers that JavaScript would round as text."""
    if isinstance(value, dict):
        return {key: exact(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(part) for part in value]
    if isinstance(value, int) and abs(value) > EXACT:
        return str(value)
    return value


def _count(value: Any) -> int:
    """Of a count in the summary that is to be computed with: text beyond 63 bits, None unknown."""
    return int(value) if value is not None else 0


class Rates:
    """Of counts that grow: how fast they did in the last second."""

    def __init__(self) -> None:
        self._looks: collections.deque[tuple[float, dict[str, int]]] = collections.deque()

    def look(self, now: float, counts: dict[str, int]) -> dict[str, float]:
        while self._looks and now - self._looks[0][0] > WINDOW_MAX:
            self._looks.popleft()
        while len(self._looks) > 1 and now - self._looks[1][0] >= WINDOW:
            self._looks.popleft()
        rates = {}
        if self._looks and now - self._looks[0][0] >= WINDOW / 2:
            then, before = self._looks[0]
            rates = {key: max(count - before.get(key, 0), 0) / (now - then) for key, count in counts.items()}
        self._looks.append((now, counts))
        return rates


def _counts(summary: dict[str, Any]) -> dict[str, int]:
    """All that has a rate."""
    frames = summary["frames"] or {}
    counts = {"frames": _count(frames.get("received")), "bytes": _count(summary["bytes"])}
    for i, images in enumerate(summary["images"] or []):
        for key, one in ((f"{i}", images), *((f"{i}/{j}", stream) for j, stream in enumerate(images["streams"]))):
            counts[f"images {key}"] = _count(one["complete"]) + _count(one["incomplete"])
            counts[f"bytes {key}"] = _count(one["bytes"])
    return counts


IMAGE_KEYS = ("frames", "begun", "complete", "incomplete", "incomplete_by", "dropped", "open", "skipped", "restarts",
              "pieces", "bytes")


class Update:
    """What is sent to browsers: made once, for all of them."""

    def __init__(self, facts: dict[str, Any], pictures: list[tuple[int, bytes]], final: bool):
        self.facts, self.final = facts, final
        self._text = json.dumps(exact(facts), separators=(",", ":"), allow_nan=False).encode()
        self._pictures = pictures  # and what number each has

    def message(self, has: set[int]) -> bytes:
        """Length and text, then length and PNG of each picture, 0 for one that the browser has; `has` is brought up to date."""
        parts = [struct.pack("<I", len(self._text)), self._text]
        for number, png in self._pictures:
            new = b"" if number in has else png
            parts += [struct.pack("<I", len(new)), new]
            has.add(number)
        has.intersection_update(number for number, _ in self._pictures)
        return b"".join(parts)


class View:
    """What browsers are shown of a run. Used by one thread at a time."""

    def __init__(self, run: Run, wanted: Wanted):
        self._run, self._wanted = run, wanted
        self._rates = Rates()
        # Of each description the last picture drawn, and its number; and of those with pieces missing.
        self._drawn: dict[tuple[int, str], tuple[int, Any]] = {}
        self._draws = 0
        self._id = secrets.token_hex(8)  # of the run: a page that was connected to another one begins anew

    def update(self) -> Update:
        ended = self._run.ended.is_set()  # before the summary: so that "ended" means its last one
        facts = self._facts(self._run.session.summary(), ended)
        self._draw()
        drawn = sorted(self._drawn.items())
        facts["pictures"] = [{"index": i, "which": which, "drawn": number, **picture.facts}
                             for (i, which), (number, picture) in drawn]
        return Update(facts, [(number, picture.png) for _, (number, picture) in drawn], ended)

    def _state(self, summary: dict[str, Any], ended: bool) -> str:
        if ended:
            return "pass" if summary["result"] == "pass" and not self._run.error else "fail"
        return "running" if _count((summary["frames"] or {}).get("received")) else "waiting"

    def _facts(self, summary: dict[str, Any], ended: bool) -> dict[str, Any]:
        rates = self._rates.look(time.monotonic(), _counts(summary))
        errors = list(summary["errors"])
        if self._run.error and self._run.error not in errors:
            errors.append(self._run.error)
        errors += [taker.error for taker in self._run.takers if taker.error]
        rate = summary["rate"] if ended else None
        wire = (rates["bytes"] + WIRE_EXTRA * rates["frames"]) * 8e-9 if rates else None
        return {
            "schema": "gdrcap.live/1", "run": self._id, "state": self._state(summary, ended), "seconds": self._run.seconds,
            "version": summary["version"], "ports": summary["ports"], "tx_ports": summary["tx_ports"],
            "pattern": summary["pattern"], "frame_size": summary["frame_size"], "memory": summary["memory"],
            "rate": {"gbps": rate["gbps"], "mpps": rate["mpps"], "whole": True} if rate else
                    {"gbps": wire, "mpps": rates["frames"] * 1e-6 if rates else None, "whole": False},
            "frames": summary["frames"], "filtered": summary["filtered"], "bytes": summary["bytes"],
            "lost_by": summary["lost_by"], "bits": summary["bits"], "stale": summary["stale"],
            "lock_lost": summary["lock_lost"], "cut": summary["cut"], "pool_empty": summary["pool_empty"],
            "restarts": summary["restarts"], "ended_by_sender": summary["ended_by_sender"],
            "streams": summary["streams"][:STREAMS_MAX], "streams_left": max(len(summary["streams"]) - STREAMS_MAX, 0),
            "damage": summary["damage"], "images": self._images(summary, rates),
            "errors": errors, "messages": summary["messages"][-MESSAGES_MAX:],
        }

    def _images(self, summary: dict[str, Any], rates: dict[str, float]) -> list[dict[str, Any]] | None:
        if summary["images"] is None:
            return None

        def counts(one: dict[str, Any], key: str) -> dict[str, Any]:
            return {**{name: one[name] for name in IMAGE_KEYS},
                    "rate": rates.get(f"images {key}"), "gbps": rates[f"bytes {key}"] * 8e-9 if f"bytes {key}" in rates else None}

        return [{**counts(images, f"{i}"), "name": images["name"], "latency": self._run.takers[i].latency(),
                 "first_incomplete": images["first_incomplete"],
                 "streams": [{**counts(stream, f"{i}/{j}"), "id": stream["id"]}
                             for j, stream in enumerate(images["streams"])]}
                for i, images in enumerate(summary["images"])]

    def _draw(self) -> None:
        """The newest image of each description, where there is one that was not drawn yet."""
        for i, taker in enumerate(self._run.takers):
            image = taker.newest()
            if image is None:
                continue
            from .picture import draw  # here, since numpy is needed for pictures alone

            try:
                picture = draw(image, taker.layout, self._wanted)
            finally:
                image.release()
            self._draws += 1
            for which in ("last", "incomplete") if picture.facts["holes"] else ("last",):
                self._drawn[i, which] = self._draws, picture
