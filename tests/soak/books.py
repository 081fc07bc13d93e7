# SPDX-License-Identifier: BSD-3-Clause
"""The lines of a run, each held against the identities of docs/json.md and against the line before it."""
import json

import e2e

# What never falls. Not `lost` and `unexplained`, which have frames in flight while the run goes on.
GROWING = (
    "frames.sent frames.received frames.valid frames.damaged frames.duplicate frames.reordered filtered bytes "
    "lost_by.nic_missed lost_by.nic_error tx_stalled bits.checked bits.wrong stale pool_empty.times "
    "pool_empty.seconds restarts untracked cut queue_restarts sender.frames sender.bytes sender.errors "
    "sender.starved saved.frames saved.missed").split()
GROWING_CAUSES = ("lost_by", "sender")
GROWING_IMAGES = "begun complete incomplete dropped restarts bytes".split()
GROWING_PIECES = "received placed duplicate second_leg conflict late no_room misfit filtered".split()


def value(summary, path):
    for key in path.split("."):
        summary = summary.get(key) if summary else None
    return summary


def counters(summary):
    """Path -> count, of those that never fall and are known."""
    found = {path: value(summary, path) for path in GROWING}
    for place in GROWING_CAUSES:
        for cause, count in (value(summary, place + ".causes") or {}).items():
            found["%s.causes.%s" % (place, cause)] = count
    for number, images in enumerate(summary.get("images") or ()):
        found.update({"images%d.%s" % (number, key): images[key] for key in GROWING_IMAGES})
        found.update({"images%d.frames.%s" % (number, key): images["frames"][key] for key in GROWING_PIECES})
    for path, count in found.items():
        # A number beyond 2^63 is written as text: here it would be one that fell below 0.
        assert not isinstance(count, str), "%s is %s: %s" % (path, count, summary)
    return {path: count for path, count in found.items() if count is not None}


def check_identities(summary):
    """Those that hold in every line: of totals, and of each stream that is listed."""
    frames = summary["frames"]
    if frames and frames["valid"] is not None:
        known = frames["valid"] + frames["damaged"]
        assert frames["received"] == known + frames["duplicate"] + summary["filtered"], summary
        assert frames["sent"] == known + frames["lost"], summary
        assert 0 <= summary["lost_by"]["unexplained"] <= frames["lost"], summary
        for stream in summary.get("streams", ()):
            counts = stream["frames"]
            assert counts["sent"] == counts["valid"] + counts["damaged"] + counts["lost"], stream
    for images in summary.get("images") or ():
        counts = images["frames"]
        assert counts["received"] == sum(counts[key] for key in GROWING_PIECES[1:]), images
        assert images["begun"] == sum(images[key] for key in "complete incomplete dropped open".split()), images
        pieces = images["pieces"]
        assert pieces["expected"] == pieces["placed"] + pieces["lost"], images
    if summary["sending"]:
        e2e.check_sending(summary)


# A frame whose number is in doubt counts as damaged, or the first of a stream as valid, until the next one is there
# (docs/frame-format.md): one of each stream, of which there are so few here.
IN_DOUBT = {"frames.damaged": 16, "frames.valid": 16}


class Book:
    """Takes the lines of one run, in order."""

    def __init__(self):
        self.last, self.lines, self.counters = None, 0, {}

    def take(self, text):
        summary = json.loads(text)
        assert summary["schema"] == "gdrcap.summary/1", summary
        assert self.last is None or self.last["result"] == "running", "a line behind the last: %s" % text
        if summary["frames"]:
            check_identities(summary)
            now = counters(summary)
            for path, before in self.counters.items():
                # What a port cannot tell any more (a memif whose other end left) is null from then on.
                assert now.get(path, before) >= before - IN_DOUBT.get(path, 0), "%s went from %s to %s, line %d: %s" % (
                    path, before, now.get(path), self.lines, text)
            self.counters.update(now)
        self.last = summary
        self.lines += 1

    def count(self, path):
        return value(self.last, path) or 0
