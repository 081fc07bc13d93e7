# SPDX-License-Identifier: BSD-3-Clause
"""When frames went by another's clock (that of a file's driver, or the kernel's), against when they were due.

A sender without a core is late, and that is the machine's doing: no frame has to be in time here. A sender that keeps to its times
is never early, though, and of many frames some are in time. So frames are put into groups (those of each third of the run, those
behind each gap of a file), and the most punctual of each group are compared: a rate that is wrong, or gaps that are not kept,
set the groups apart. By as much as the kernel says that the sender's threads waited for a core, they may be.
"""
import pathlib
import re
import threading
import time

import e2e
import processes

WIRE_OVERHEAD = 24  # FCS, preamble and gap, bytes a frame
TICK_NS = 10_000_000
# Two clocks differ by as much a second at most, and a stamp is taken some time after the frame was handed over.
CLOCKS, STAMP_NS = 0.005, 1_000_000
# Those of gdrcap's threads for which a frame waits: who reads it, writes it, hands it over, stamps it.
HANDS = ("gdrcap-file", "gdrcap-wrt", "gdrcap-tx", "gdrcap-rx")


class Machine:
    """What a machine did to a sender, and to who stamps its frames: how long their threads waited for a core, and how late
    this one woke, in ns."""

    def __init__(self, *processes_of):
        self.processes = processes_of
        self.waited, self.late, self.due = {}, 0, time.time_ns()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while any(process.returncode is None for process in self.processes):
            # What the threads waited for behind the last look at them is not known: as long as this one had no core.
            late = time.time_ns() - self.due
            self.late += late if late > TICK_NS // 2 else 0
            for task in (task for process in self.processes for task in pathlib.Path("/proc/%d/task" % process.pid).glob("*")):
                try:
                    if (task / "comm").read_text().startswith(HANDS):
                        self.waited[task.name] = int((task / "schedstat").read_text().split()[1])
                except (OSError, IndexError):  # it has ended
                    pass
            self.due = max(self.due + TICK_NS, time.time_ns())
            time.sleep(TICK_NS / 1e9)

    @property
    def stole(self):
        self.thread.join()
        return sum(self.waited.values()) + self.late


def replay(*arguments):
    """(summary, machine) of a replay."""
    arguments = ("replay", "--quiet", "--json", *arguments)
    process = e2e.start(*arguments)
    machine = Machine(process)
    result = e2e.finish(process, arguments)
    assert result.status == 0, result
    processes.check_summary(result.summary, result)
    return result.summary, machine


def due_at_bits(lengths, rate):
    """When frames of these lengths are due, in ns since the first."""
    due, bits = [], 0
    for length in lengths:
        due.append(bits * 1e9 / rate)
        bits += 8 * (length + WIRE_OVERHEAD)
    return due


def due_at_frames(count, rate):
    return [number * 1e9 / rate for number in range(count)]


def given_up(summary):
    """How often the sender was too late to catch up, which moved what was due after it."""
    found = re.search(r"did not catch up, times: (\d+)", processes.messages(summary))
    return int(found[1]) if found else 0


def median(values):
    return sorted(values)[len(values) // 2]


def check_gaps(stamps, due, gaps, stole):
    """The sender's median gap error equals the stamps' one, within a bucket of one eighth, 0.1 ms for the way to the stamp, and
    the time that a frame waited for a core."""
    seen = median([abs(b - a - (d - c)) for a, b, c, d in zip(stamps, stamps[1:], due, due[1:])])
    assert abs(seen - gaps["p50"]) < gaps["p50"] / 8 + 100_000 + stole / len(stamps), "median gap error: told %d ns, seen %d ns" % (
        gaps["p50"], seen)


def check(stamps, due, summary, machine, groups=None, apart_ns=5_000_000, seen_gaps=True):
    """Frames stamped `stamps` (ns since the epoch) were due at `due` (ns since the first). groups: [which frames], beside the
    thirds of the run; apart_ns: how far their most punctual frames may be apart on a machine that is free; seen_gaps: False where
    frames are not stamped one by one."""
    sender, count = summary["sender"], len(due)
    assert len(stamps) == count and stamps == sorted(stamps), "stamps go back"
    late = [stamp - at for stamp, at in zip(stamps, due)]
    begin = min(late)
    late = [each - begin for each in late]
    # No frame is early, so the last one is not, and the sender says so; nor does it claim more than was seen, or less.
    took, slack, stole = sender["seconds"] * 1e9, CLOCKS * due[-1] + STAMP_NS, machine.stole
    print("due %.6f s, told %.6f s, last %.6f s late, gap error %s ns, %.6f s without a core" % (
        due[-1] / 1e9, took / 1e9, late[-1] / 1e9, sender["gap_error_ns"], stole / 1e9))
    assert took >= due[-1] - 1000, "due %d ns, told %d ns" % (due[-1], took)
    assert -stole - slack <= took - due[-1] - late[-1] <= slack, "due %d ns, last %d ns late, told %d ns" % (due[-1], late[-1], took)
    if seen_gaps:
        check_gaps(stamps, due, sender["gap_error_ns"], stole)
    if given_up(summary):
        assert max(late) > 0.9e9, "%d ns late at most, and given up" % max(late)
        return
    third = count // 3
    thirds = [range(third), range(third, 2 * third), range(2 * third, count)]
    for frames, most in (*((each, max(apart_ns, CLOCKS * due[-1])) for each in thirds), *((each, apart_ns) for each in groups or ())):
        least = min(late[number] for number in frames)
        assert least < most + stole, "frames %s: %d ns late at least, not %d: %s" % (frames, least, most + stole, sender)


def check_rate(summary, lengths, gbps=None, mpps=None):
    """What the sender says of its rate is what it says of its time, never above what was asked, and said where it is below."""
    sender = summary["sender"]
    assert sender["asked"]["seconds"] is None and sender["asked"]["gbps"] == gbps and sender["asked"]["mpps"] == mpps, sender["asked"]
    # Without the frames of the last hand-over, which begin when its time ends.
    before = sender["mpps"] * 1e6 * sender["seconds"]
    assert abs(before - round(before)) < 0.01 and 0 < len(lengths) - round(before) <= 256, (before, sender)
    bits = 8 * sum(length + WIRE_OVERHEAD for length in lengths[:round(before)])
    assert abs(sender["gbps"] * 1e9 * sender["seconds"] / bits - 1) < 1e-6, (bits, sender)
    told, asked = (sender["gbps"], gbps) if gbps else (sender["mpps"], mpps)
    assert told < asked * 1.0001, processes.text_of(summary)
    missed = told < 0.99 * asked and sender["seconds"] * (1 - told / asked) > 0.002
    assert ("the rate was not reached" in processes.messages(summary)) == missed, processes.text_of(summary)
