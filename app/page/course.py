# SPDX-License-Identifier: BSD-3-Clause
"""What a run counted over time, from its lines, in a bounded number of points however many lines there are.

A line's time is `elapsed_seconds`, since the run's start. Those of versions before it have none: their time is that of the
last frame, counted from the first (`seconds`, of a sender `sender.seconds`). Where no frame came since the line before, one
usual interval is taken to have passed; the frame that comes then says how long it was.
"""
import collections
import statistics

import values

POINTS = 600  # at most; at least half of them where there are more lines
WIRE_EXTRA = 24  # FCS, preamble and gap: bytes that a frame has on the wire and not in memory
LOSSES = (("lost or in flight", "frames.lost"), ("damaged", "frames.damaged"), ("duplicate", "frames.duplicate"),
          ("reordered", "frames.reordered"))
IMAGE_LOSSES = ("incomplete", "dropped", "skipped")
INTERVALS = 15  # of which the median is the usual one

Point = collections.namedtuple("Point", "time gbps least most mpps sent_gbps losses")


class Side:
    """Frames and bytes of one direction, of which rates are made."""

    def __init__(self, frames, size, seconds):
        self.paths = (frames, size, seconds)

    def read(self, summary):
        frames, size, seconds = (values.at(summary, path) for path in self.paths)
        return values.integer(frames), values.integer(size), values.real(seconds)


RECEIVED = Side("frames.received", "bytes", "seconds")
SENT = Side("sender.frames", "sender.bytes", "sender.seconds")


def rates(before, now, seconds):
    """(Gb/s on the wire, Mpps), or Nones: what is not known, or went back, has no rate."""
    if None in before[:2] or None in now[:2] or seconds <= 0:
        return None, None
    frames, size = now[0] - before[0], now[1] - before[1]
    if frames < 0 or size < 0:
        return None, None
    return (size + WIRE_EXTRA * frames) * 8 / seconds / 1e9, frames / seconds / 1e6


def losses_of(summary):
    """Name -> count so far, None: not known."""
    found = {name: values.integer(values.at(summary, path)) for name, path in LOSSES}
    images, _ = values.rows_of(summary.get("images"), 64)
    for name in IMAGE_LOSSES if images else ():
        counts = [values.integer(image.get(name)) for image in images]
        found["images " + name] = None if None in counts else sum(counts)
    return found


def least_of(*found):
    return min((each for each in found if each is not None), default=None)


def most_of(*found):
    return max((each for each in found if each is not None), default=None)


class Bucket:
    """Lines next to each other: the counters at their two ends, and the extremes of the rates between."""

    def __init__(self, before, now):
        self.lines = 1
        self.before, self.now = before, now
        received = rates(before[1], now[1], now[0] - before[0])[0]
        sent = rates(before[2], now[2], now[0] - before[0])[0]
        rate = sent if now[1][0] is None else received
        self.least = self.most = rate

    def take(self, other):
        """The lines of the next one too."""
        self.lines += other.lines
        self.now = other.now
        self.least = least_of(self.least, other.least)
        self.most = most_of(self.most, other.most)

    def point(self):
        seconds = self.now[0] - self.before[0]
        gbps, mpps = rates(self.before[1], self.now[1], seconds)
        sent_gbps, sent_mpps = rates(self.before[2], self.now[2], seconds)
        return Point(self.now[0], gbps, self.least, self.most, sent_mpps if gbps is None else mpps, sent_gbps, self.now[3])


def began(counts):
    """Where those that are known began."""
    return (0, 0, 0.0) if counts[0] is not None else (None, None, None)


class Course:
    def __init__(self):
        self._buckets = []
        self._lines_each = 1
        self._last = None
        self._seconds = 0.0  # of the last line's last frame
        self._ahead = 0.0  # how far its time is taken to be after that
        self._intervals = collections.deque(maxlen=INTERVALS)
        self.stood = 0  # lines without a time since which no frame had come
        self.exact = True  # each line so far says its time

    def _usual(self):
        return statistics.median(self._intervals) if self._intervals else 1.0

    def _interval(self, seconds):
        """What passed since the line before, from what the counters say."""
        more = seconds - self._seconds
        usual = self._usual()
        if more <= 0:
            self.stood += 1
            self._ahead += usual
            return usual
        # As much as was taken too early is taken back, but of no line more than a tenth.
        passed = max(more - self._ahead, 0.9 * min(more, usual))
        self._intervals.append(passed)
        self._ahead = max(0.0, self._ahead + passed - more)
        self._seconds = seconds
        return passed

    def add(self, summary):
        received, sent = RECEIVED.read(summary), SENT.read(summary)
        seconds = max(received[2] or 0.0, sent[2] or 0.0)
        before = self._last or (0.0, began(received), began(sent), {})
        elapsed, over = values.real(summary.get("elapsed_seconds")), summary.get("result") != "running"
        if self.exact and elapsed is not None and elapsed >= before[0]:
            passed = elapsed - before[0]
            # A rate of an end that is much shorter than an interval would say nothing.
            at_once = over and passed < self._usual() / 2
            if not at_once:
                self._intervals.append(passed)
            self._seconds = seconds
        elif not seconds and self._last is None:
            return  # before the first frame
        else:
            self.exact = False
            at_once = over and seconds <= self._seconds
            passed = 0.0 if at_once else self._interval(seconds)
        self._last = (before[0] + passed, received, sent, losses_of(summary))
        if at_once and self._buckets:
            self._buckets[-1].now = self._last
        else:
            self._put(Bucket(before, self._last))

    def _put(self, bucket):
        if self._buckets and self._buckets[-1].lines < self._lines_each:
            self._buckets[-1].take(bucket)
            return
        if len(self._buckets) == POINTS:
            for first, second in zip(self._buckets[::2], self._buckets[1::2]):
                first.take(second)
            del self._buckets[1::2]
            self._lines_each *= 2
        self._buckets.append(bucket)

    @property
    def lines_each(self):
        return self._lines_each

    def points(self):
        return [bucket.point() for bucket in self._buckets]
