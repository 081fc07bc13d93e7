# SPDX-License-Identifier: BSD-3-Clause
"""Ends in the middle of sending, with slots, views and frames out: of sessions, of the interpreter, by exceptions, signals and
fork; 10,000 slots and frames leave nothing behind."""
import asyncio
import gc
import os
import sys
import threading
import time

import e2e
import harness
import gdrcap
from test_sending import frame, loopback, received, told


def test_session_ends_first():
    """A session that is left with slots out: they stay, and its end comes with the last of them."""
    with loopback() as session:
        descriptor = session.event_fd()
        slots = session.senders[0].reserve(3)
        view = memoryview(slots[2])
    assert session.closed
    slots[0].write(b"still there")
    assert bytes(memoryview(slots[0])[:5]) == b"still"
    view[:5] = b"still"
    harness.refused(ValueError, "the session is closed", lambda: session.senders)
    harness.refused(ValueError, "the session is closed", session.register, gdrcap.aligned(1))
    del slots
    os.fstat(descriptor)
    view.release()
    harness.refused(OSError, "", os.fstat, descriptor)


def test_wait_after_the_stop():
    """What the receiver still has is told by nobody then, and who waits for it is not left there."""
    with loopback() as session:
        queue, = session.senders
        batches = session.batches(timeout=harness.TIMEOUT)
        queue.send(frame(1), tag=1)
        batch = next(batches)
        waits = threading.Thread(target=lambda: harness.refused(EOFError, "the run is over", queue.wait, None))
        waits.start()
        session.stop()
        waits.join(harness.TIMEOUT)
        assert not waits.is_alive()
        assert queue.poll() == []
        harness.refused(EOFError, "the run is over", asyncio.run, queue.sent())
        batch.release()


def test_10000_objects():
    """References and memory of 10,000 slots, and of 10,000 frames."""
    numpy = harness.need_numpy()
    with loopback() as session:
        queue, = session.senders
        data = frame(1)

        def use():
            slots = queue.reserve(10)
            for slot in slots:
                slot.write(data)
                slot.payload, slot.tag = None, 5
                numpy.from_dlpack(slot)[0] = 2
                memoryview(slot)
                slot.view("uint16", (-1, 1))
            harness.refused(BufferError, "views", lambda view: queue.submit(slots), memoryview(slots[9]))
            harness.refused(TypeError, "", slots[0].write, 5)
            queue.submit(slots[:5])
            harness.refused(ValueError, "submitted", queue.submit, slots)
            assert queue.send([data] * 5, tag=4) == 5
            assert len(received(session, 10)) == 10
            told(queue, 10)

        for _ in range(20):
            use()
        gc.collect()
        kinds = [gdrcap.Slot, gdrcap.Array, gdrcap.Sender]
        before, blocks = [sys.getrefcount(kind) for kind in kinds], sys.getallocatedblocks()
        own = sys.getrefcount(data)
        for _ in range(1000):
            use()
        gc.collect()
        assert [sys.getrefcount(kind) for kind in kinds] == before and sys.getrefcount(data) == own
        assert sys.getallocatedblocks() - blocks < 500, sys.getallocatedblocks() - blocks


def test_exception():
    """It comes out, slots that were out are no hindrance, and the wire can be had again."""
    wire = harness.wire()
    for _ in range(3):
        try:
            with loopback(port=wire, tx_port=wire) as session:
                slots = session.senders[0].reserve(10)
                slots[0].write(frame(1))
                session.senders[0].submit(slots[0], time=time.time_ns() + 10**10)
                raise KeyError("the program's own")
        except KeyError:
            pass
        del slots
        assert session.closed


RUNNING = """
import os, sys, threading, time
import harness, gdrcap, test_sending
session = test_sending.loopback()
session.start()
queue, = session.senders
slots = queue.reserve(5)

def waits(call):
    try:
        call()
    except (EOFError, gdrcap.Error):
        pass

slots[0].write(test_sending.frame(1))
"""


def test_exit():
    """The interpreter ends with slots, views and frames out, and with a thread that waits."""
    for number, held in enumerate((
                 "view = memoryview(slots[1])", "keep = slots[1].view(); sys.modules['keep'] = keep",
                 "queue.submit(slots[0], time=time.time_ns() + 10**10, tag=1)",
                 "slots += queue.reserve(1 << 20); threading.Thread(target=waits, args=(queue.wait,), daemon=True).start()",
                 "slots += queue.reserve(1 << 20); threading.Thread(target=waits, args=(lambda: queue.reserve(timeout=None),),"
                 " daemon=True).start()")):
        for end, status in e2e.some((("sys.exit(3)", 3), ("", 0), ("os._exit(6)", 6)), number % 3):
            done = harness.program(RUNNING + held + "\n" + end, status=status, flags=("-X", "dev"))
            words = [line for line in done.stderr.splitlines() if "not sent" not in line]
            assert not words, done.stderr


def test_interrupt():
    for wait in ("queue.wait()", "queue.reserve(1, timeout=None)", "queue.send(b'x' * 60, timeout=None)"):
        harness.program("import signal\n" + RUNNING + """
slots += queue.reserve(1 << 20)
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    %s
except KeyboardInterrupt:
    session.close()
    sys.exit(5)
""" % wait, status=5)


def test_fork():
    """A child that uses its parent's queue is told why not; the parent goes on."""
    harness.program(RUNNING + """
pid = os.fork()
if pid == 0:
    told = 0
    for use in (queue.poll, queue.wait, queue.reserve, queue.fileno, lambda: queue.send(b"x" * 60), lambda: queue.counts,
                lambda: queue.submit(slots[0]), lambda: memoryview(slots[0]), lambda: slots[0].write(b"x"),
                lambda: session.register(gdrcap.aligned(1)), lambda: session.senders):
        try:
            use()
        except gdrcap.Error as error:
            told += "child" in str(error)
    slots.clear()
    os._exit(told)
told = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert told == 11, told
queue.submit(slots[0])
assert test_sending.received(session, 1) == [test_sending.frame(1)]
session.close()
""")
