#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hours of mixed load with faults: gdrcap runs of several kinds side by side, to which is done what happens to a
program that runs for weeks. At the end every count is exact, and nothing has grown.

    GDRCAP=build/app/gdrcap GDRCAP_FAULTY=build/tests/gdrcap-faulty SOFTMLX5=build/tests/libsoftmlx5.so \\
        SOAK_CLOCK_LIBRARY=build/tests/libsoakclock.so tests/soak/soak.py --hours 1

It needs Python 3 and the programs. What needs root (a small disk, network interfaces) is skipped without it, and said.
Exit status 0: all is well; 1: it is not; 77: nothing could be run."""
import argparse
import collections
import itertools
import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import e2e  # noqa: E402
import loads  # noqa: E402
import machine  # noqa: E402
import program as programs  # noqa: E402


class Soak:
    """What all runs have in common, and what came of them."""

    def __init__(self, options):
        self.options, self.frames = options, options.frames
        self.pause = options.pause
        self.started = time.monotonic()
        self.interrupted = False
        self.wake = threading.Event()
        self.lock = threading.Lock()
        self.rows, self.failed, self.skipped = collections.defaultdict(list), {}, {}
        self.numbers, self.told = 0, self.started
        self.null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        result = e2e.run("loopback", "--metrics", "nowhere", expect=2)
        self.metrics = "built without libmicrohttpd" not in result.err

    def sleep(self, seconds):
        self.wake.wait(seconds)

    def interrupt(self, *_):
        if self.interrupted:
            os._exit(130)  # programs go with this process
        print("ending; once more ends at once", flush=True)
        self.interrupted = True
        self.wake.set()

    def number(self):
        with self.lock:
            self.numbers += 1
            return self.numbers

    def progress(self, run, fault):
        """A line every so often."""
        with self.lock:
            now = time.monotonic()
            if now < self.told + self.options.progress:
                return
            self.told = now
        book = getattr(getattr(run, "program", None), "book", None)
        print("%5d s  %s: after %s%s" % (
            now - self.started, run.name, fault, ", %d frames of this run, %d lost" % (
                book.count("frames.received"), book.count("frames.lost")) if book else ""), flush=True)

    def play(self, load, turn, seconds):
        run = load(self, random.Random("%d %s %d" % (self.options.seed, load.name, turn)))
        try:
            row = run.play(seconds)
            self.rows[load.name].append(row)
        except e2e.Skip as reason:
            self.skipped[load.name] = str(reason)
        except Exception:
            self.failed.setdefault(load.name, traceback.format_exc())
            print("%s, run %d FAILED\n%s" % (load.name, turn, traceback.format_exc()), flush=True)

    def turns(self, chosen):
        """(load, which of its runs), one load after the other, again and again."""
        for turn in itertools.count():
            left = [load for load in chosen if load.name not in self.skipped and
                    not (turn and self.frames and load.by_count)]
            if not left:
                return
            for load in left:
                yield load, turn

    def work(self, turns, seconds, until):
        """One of those that play loads beside each other."""
        while not self.interrupted:
            with self.lock:
                load, turn = next(turns, (None, 0))
            if not load or (turn and time.monotonic() >= until):
                return
            self.play(load, turn, min(seconds, max(0, until - time.monotonic())))

    def run(self, chosen):
        total = self.options.seconds
        each = min(self.options.run, total * self.options.beside / len(chosen))
        turns = self.turns(chosen)
        until = self.started + total
        workers = [threading.Thread(target=self.work, args=(turns, each, until))
                   for _ in range(min(self.options.beside, len(chosen)))]
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(0.2)  # so that a signal is seen

    # ---- the end ----

    def table(self):
        """What was done, and what each had at the beginning and at the end: of its runs the one that grew most."""
        heads = ("load", "runs", "frames", "lost", "RSS MiB", "descriptors", "threads", "faults")
        lines = [heads]
        for name, rows in self.rows.items():
            most = max(rows, key=lambda row: row.end.rss_kb - row.begin.rss_kb)
            done = sum((row.faults for row in rows), collections.Counter())
            lines.append((
                name, str(len(rows)), "%d" % sum(row.frames for row in rows), "%d" % sum(row.lost for row in rows),
                "%.1f, %.1f" % (most.begin.rss_kb / 1024, most.end.rss_kb / 1024),
                "%d, %d" % (most.begin.descriptors, most.end.descriptors),
                "%d, %d" % (most.begin.threads, most.end.threads),
                " ".join("%s %d" % item for item in sorted(done.items()))))
        widths = [max(len(line[i]) for line in lines) for i in range(len(heads) - 1)]
        for line in lines:
            print("  ".join([*(text.ljust(width) for text, width in zip(line, widths)), line[-1]]))

    def end(self, leftovers):
        notes = {(name, row.note) for name, rows in self.rows.items() for row in rows if row.note}
        for name, reason in [*sorted(self.skipped.items()), *sorted(notes)]:
            print("skipped: %s: %s" % (name, reason))
        self.table()
        try:
            leftovers.check(programs.pids)
            defunct = machine.defunct_children(os.getpid())
            assert not defunct, "not waited for: %s" % defunct
        except AssertionError as error:
            self.failed["leftovers"] = str(error)
            print(error)
        every = [row for rows in self.rows.values() for row in rows]
        print("%s: %d runs, %d frames, %d lost and each accounted for, %d faults, %d s, seed %d%s" % (
            "FAILED: %s" % ", ".join(self.failed) if self.failed else "passed" if every else "nothing could be run",
            len(every),
            sum(row.frames for row in every), sum(row.lost for row in every),
            sum(sum(row.faults.values()) for row in every), time.monotonic() - self.started, self.options.seed,
            ", interrupted" if self.interrupted else ""))
        return 1 if self.failed else 0 if every else 77


def options_of(names):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="so long, in all (60)")
    parser.add_argument("--hours", type=float, help="the same")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32),
                        help="which faults, in which order: the same number, the same")
    parser.add_argument("--only", metavar="LOAD[,LOAD...]", help="of " + ", ".join(names))
    parser.add_argument("--beside", type=int, default=2, help="so many loads at a time (2)")
    parser.add_argument("--run", type=float, default=600, help="a run lasts so many seconds at most (600)")
    parser.add_argument("--pause", type=float, default=2, help="seconds between faults, at most (2)")
    parser.add_argument("--frames", type=lambda text: int(float(text)), default=0,
                        help="of the loads frames and gpu-frames: so many, however long it takes (1e10)")
    parser.add_argument("--progress", type=float, default=10, help="a line every so many seconds (10)")
    options = parser.parse_args()
    if options.hours:
        options.seconds = options.hours * 3600
    return parser, options


def main():
    known = {load.name: load for load in (*loads.LOADS, *loads.GPU_LOADS, *loads.BY_COUNT)}
    parser, options = options_of(known)
    default = loads.LOADS + (loads.GPU_LOADS if loads.GPU else [])
    names = options.only.split(",") if options.only else [load.name for load in default]
    unknown = set(names) - set(known)
    if unknown or options.beside < 1:
        parser.error("no such load: %s" % ", ".join(unknown) if unknown else "--beside: one at least")
    own_mounts = machine.enter_mounts()
    try:
        e2e.enter_network()
    except e2e.Skip as reason:
        print("no network interfaces: %s" % reason)
    leftovers = machine.Leftovers(own_mounts)
    print("seed %d, %d s, loads: %s" % (options.seed, options.seconds, " ".join(names)), flush=True)
    soak = Soak(options)
    signal.signal(signal.SIGINT, soak.interrupt)
    signal.signal(signal.SIGTERM, soak.interrupt)
    soak.run([known[name] for name in names])
    return soak.end(leftovers)


if __name__ == "__main__":
    sys.exit(main())
