# SPDX-License-Identifier: BSD-3-Clause
"""Files that gdrcap wrote: summaries, one or one a line; a bench; an examination. Known by their `schema`."""
import collections
import json
import os
import sys

import course
import values
import verdict

SUMMARY, BENCH, DOCTOR = "gdrcap.summary/1", "gdrcap.bench/1", "gdrcap.doctor/1"
LINE_MOST = 16 << 20  # bytes of one line, and of a file that is one object
RUNS_MOST = 16  # of one file


class Wrong(Exception):
    """What is wrong with a file, and what helps: exit status 2."""


class Run:
    """One run: its last line, and its course over time where there were several."""

    def __init__(self):
        self.last = None
        self.followed = False  # another run begins behind its last line
        self.course = course.Course()
        self.lines = 0

    def add(self, summary):
        self.last = summary
        self.lines += 1
        self.course.add(summary)

    def verdict(self):
        return verdict.of(self.last, self.followed)


def identity(summary):
    """Which run it is, of all (docs/json.md); None: the line does not say."""
    run = summary.get("run")
    return (run.get("host"), run.get("pid"), run.get("started_ns")) if isinstance(run, dict) else None


class File:
    def __init__(self, name, kind):
        self.name = name
        self.kind = kind
        self.objects = []  # of a bench or an examination
        self.runs = []
        self.first = 1  # number of the first of them in the file
        self.left_out = collections.Counter()  # states of runs that are not shown
        self.notes = []  # what a reader has to know of the file


def no_number(_):
    """NaN and the infinities are no JSON: nothing is known of what they stand for."""
    return None


class Twice(Exception):
    """Two values of one key: which of them is meant nobody knows."""


def once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        name = next(key for key, times in collections.Counter(key for key, _ in pairs).items() if times > 1)
        raise Twice("the key “%s” stands twice in one object, which gdrcap does not write" % values.say(name, 60))
    return found


def parse(line):
    """An object; ValueError says why it is none."""
    try:
        found = json.loads(line.decode(), parse_constant=no_number, object_pairs_hook=once)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except UnicodeDecodeError as error:
        raise ValueError("no UTF-8 at byte %d" % error.start) from error
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def schema_of(found, name):
    """The one that is understood, or an error that says what to do."""
    schema = found.get("schema")
    if schema in (SUMMARY, BENCH, DOCTOR):
        return schema
    if not isinstance(schema, str):
        raise Wrong("%s: JSON, but no `schema` in it: give what gdrcap --json, --json-lines, bench --save or doctor "
                    "--json wrote" % name)
    known = (SUMMARY, BENCH, DOCTOR)
    kin = [each for each in known if each.split("/")[0] == schema.split("/")[0]]
    if kin:
        raise Wrong("%s: its schema is %s, and this gdrcap knows %s: use the gdrcap that wrote it, or a later one" % (
            name, values.say(schema, 60), kin[0]))
    raise Wrong("%s: its schema is %s; known are %s" % (name, values.say(schema, 60), ", ".join(known)))


class Lines:
    """A run a line, or several, one after the other: read as they come, and thinned."""

    def __init__(self, name):
        self.file = File(name, SUMMARY)
        self._runs = collections.deque()
        self._over = True
        self._broken = collections.Counter()
        self._between = 0  # broken lines behind a run's end
        self._first_broken = None

    def add(self, found):
        if schema_of(found, self.file.name) != SUMMARY:
            raise Wrong("%s: a summary and another kind of object in one file: give them in files of their own" % self.file.name)
        # Runs that write at once are told apart; else another run's line is where one ended.
        run = next((run for run in reversed(self._runs) if run.last.get("result") == "running" and identity(run.last) == identity(found)), None)
        if run is None:
            self._begin()
            run = self._runs[-1]
        run.add(found)
        self._over = found.get("result") != "running"

    def _begin(self):
        for run in self._runs:
            run.followed = True
        if len(self._runs) == RUNS_MOST:
            self.file.left_out[self._runs.popleft().verdict()[0]] += 1
        self._runs.append(Run())

    def broken(self, line, number, why):
        self._between += self._over
        if not line.endswith(b"\n"):
            self.file.notes.append("The last line is cut off after %s bytes; what stands before it is shown." % values.count(len(line)))
            return
        self._broken[why] += 1
        self._first_broken = self._first_broken or number

    def finish(self):
        file = self.file
        if self._broken:
            file.notes.append("Left out, as they are no JSON objects: %s; the first is line %d: %s." % (
                values.many(sum(self._broken.values()), "line"), self._first_broken, next(iter(self._broken))))
        if self._between:
            file.notes.append("%s behind the end of a run: of another run that stood there nothing is known." % values.many(
                self._between, "broken line"))
        if file.left_out:
            file.first += sum(file.left_out.values())
            file.notes.append("The file has %s runs, of which the last %d are shown. Of those before: %s." % (
                values.count(file.first - 1 + len(self._runs)), len(self._runs),
                ", ".join("%s: %s" % (verdict.STATES.get(state, verdict.NOT_KNOWN), values.count(times))
                          for state, times in file.left_out.items())))
        # A run of which only that is left counts, too.
        file.left_out["unknown"] += self._between
        file.runs = list(self._runs)
        if file.runs and not self._over:
            file.notes.append("The last run has no end here: its last line says that it was still running. Frames in flight "
                              "count as lost in it.")
        return file


def read_lines(name, source, first, found):
    lines = Lines(name)
    lines.add(found)
    number = 1
    while True:
        line = source.readline(LINE_MOST + 1)
        if not line:
            return lines.finish()
        number += 1
        if len(line) > LINE_MOST:
            raise Wrong("%s: line %d is longer than %d bytes, which no summary is" % (name, number, LINE_MOST))
        if not line.strip():
            continue
        try:
            found = parse(line)
        except ValueError as error:
            lines.broken(line, number, reason(error))
            continue
        lines.add(found)


def reason(error):
    return values.say(getattr(error, "msg", str(error)), 120)


def read_whole(name, source, first):
    """One object on several lines."""
    whole = first + source.read(LINE_MOST + 1 - len(first))
    if len(whole) > LINE_MOST:
        raise Wrong("%s: longer than %d bytes, and not one JSON object a line" % (name, LINE_MOST))
    try:
        return parse(whole)
    except ValueError as error:
        where = " in line %d" % error.lineno if hasattr(error, "lineno") else ""
        raise Wrong("%s: no JSON that gdrcap wrote: %s%s; is the file whole?" % (name, reason(error), where)) from error


def read_source(name, source):
    first = source.readline(LINE_MOST + 1)
    if not first.strip() and not (first := first + source.read(LINE_MOST)).strip():
        raise Wrong("%s: empty: did the run that should have written it end, and with --json?" % name)
    if len(first) > LINE_MOST:
        raise Wrong("%s: its first line is longer than %d bytes" % (name, LINE_MOST))
    try:
        found = parse(first)
        whole = False
    except ValueError:
        found = read_whole(name, source, first)
        whole = True
    kind = schema_of(found, name)
    if kind == SUMMARY and not whole:
        return read_lines(name, source, first, found)
    file = File(name, kind)
    if kind == SUMMARY:
        run = Run()
        run.add(found)
        file.runs = [run]
        return file
    if not whole and source.read(LINE_MOST).strip():
        raise Wrong("%s: something stands behind the object of schema %s: give each in a file of its own" % (name, kind))
    file.objects = [found]
    return file


def read(path):
    """One file, or standard input for "-". OSError: it cannot be read."""
    name = "standard input" if path == "-" else values.say(os.path.basename(path), 120)
    try:
        if path == "-":
            return read_source(name, sys.stdin.buffer)
        with open(path, "rb") as source:
            return read_source(name, source)
    except Twice as error:
        raise Wrong("%s: %s" % (name, error)) from error
