# SPDX-License-Identifier: BSD-3-Clause
"""Idle threads sleep: the CPU time of whole runs, which the kernel counts for the program alone.

A thread that polls takes a core, or what others leave of it. So the bounds are of sums over all threads, several
times what was measured on two cores at a load of 15, and less than one thread that polls would take there. The start
of a run may cost more than that of its twin, hence the mark `rate`.
"""
import resource

import pytest

import e2e
import processes

pytestmark = pytest.mark.rate

SECONDS = 4
START = 0.5  # a run's start and end: less than this of them is subtracted


def cpu_seconds(*arguments, expect=None):
    """Of the run, beyond what the same run takes that lasts for START only."""
    spent = []
    for seconds in (START, START + SECONDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        e2e.run(*arguments, "--gpu", "host", "--quiet", "--seconds", str(seconds), expect=expect)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return spent[1] - spent[0]


def takes_at_most(share, *arguments):
    """Of a core."""
    took = cpu_seconds(*arguments) / SECONDS
    assert took <= share, "%.1f %% of a core, %.1f at most: %s" % (100 * took, 100 * share, " ".join(arguments))


def test_nothing_comes_on_memif():
    with processes.folder() as folder:
        takes_at_most(0.1, "capture", "--port", "net_memif0,role=server,id=0,socket=%s/idle,socket-abstract=no" % folder)


def test_nothing_comes_on_an_interface():
    with e2e.VethPair() as pair:
        takes_at_most(0.1, "capture", "--port", "net_af_packet0,iface=%s" % pair.right)


def test_slow_frames():
    """All threads of a sender and a receiver: five, and control."""
    takes_at_most(0.3, "loopback", "--rate", "1kpps")
