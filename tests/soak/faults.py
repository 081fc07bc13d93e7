# SPDX-License-Identifier: BSD-3-Clause
"""What happens to a run while it goes on. Each function is given a Run of loads.py, does its harm, and returns when the
run has gone on after it; what it does to counts it writes into run.planned."""
import contextlib
import os
import signal
import socket
import struct
import time

import machine
import metrics_text


class Skip(Exception):
    """This fault cannot be made here."""


# ---- the process, its files and who reads them ----

def stand_still(run):
    run.program.stand_still(run.dice.uniform(0.05, 0.8))


def reopen(run):
    """The file of lines is renamed and opened anew, as logrotate does it."""
    old = run.file.with_suffix(".old")
    os.rename(run.file, old)
    run.program.send(signal.SIGHUP)
    run.program.wait(lambda: run.file.exists() and run.program.renamed() is False, "the file is opened anew")
    os.unlink(old)


def disk_full(run):
    """No line fits any more for a while. Each is there whole, or not at all and counted."""
    if not run.own_disk:
        raise Skip("no file system of our own")
    hog = run.file.with_name("hog")
    said = run.program.said
    try:
        machine.fill(hog)
        if said:  # told of once in a run
            time.sleep(run.dice.uniform(0.3, 1))
        else:
            run.program.wait(lambda: run.program.said > said, "a line without room")
    finally:
        hog.unlink()
    run.planned["lost lines"] = True
    lines = run.program.book.lines
    run.program.wait(lambda: run.program.book.lines > lines, "a line after there was room")


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(60)
    client.connect(path)
    return client


def scrape(run):
    """One that asks as it should, beside such as ask half a question, do not read, or leave in the middle."""
    if not run.metrics:
        raise Skip("the program has no --metrics")
    with contextlib.ExitStack() as stack:
        for request in run.dice.choices((b"", b"GET /met", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20), k=4):
            with contextlib.suppress(OSError):
                stack.enter_context(connect(run.metrics)).sendall(request)
        answer = b""
        with connect(run.metrics) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while part := client.recv(65536):
                answer += part
    head, _, body = answer.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 "), head
    values = metrics_text.flat(body)
    # What a port cannot tell any more (a memif whose other end left) is absent from then on.
    metrics_text.check_grow({key: value for key, value in run.scraped.items()
                             if key in values or not key.startswith("gdrcap_lost_total")}, values)
    run.scraped = values


def set_clock(run):
    """By up to a day, in either direction, or back to the right time."""
    if not run.clock:
        raise Skip("SOAK_CLOCK_LIBRARY does not name the library of tests/soak/clock.c")
    offset = run.dice.choice((0, run.dice.randrange(-86400, 86400) * 10 ** 9 + run.dice.randrange(10 ** 9)))
    with open(run.clock, "r+b") as file:
        file.write(struct.pack("=q", offset))


# ---- on the cable and in the cards of the software ConnectX ----

def cards(run, text):
    """The cards look when the file's time has changed, and read it as a whole. Where they have no core for long they see
    the next file only: so each one ends what those before it began."""
    new = run.cards.with_suffix(".new")
    new.write_text("0.reorder=off,%s%s\n" % ("" if text.startswith("link=") else "link=1,", text))
    os.rename(new, run.cards)


def link(run):
    """Out and in again: the sending card throws away what it is given meanwhile, and counts it."""
    cards(run, "link=0")
    time.sleep(run.dice.uniform(0.1, 0.6))
    cards(run, "link=1")


def planted(knob, path, key=None):
    def fault(run):
        count = run.dice.randrange(1, 20)
        start, step = run.dice.randrange(1, 500), run.dice.randrange(2, 9)
        until = run.program.count(path) + count
        cards(run, "%s=%d/%d/%d" % (knob, start, step, count))
        run.program.wait(lambda: run.program.count(path) >= until, "%d of %s" % (count, knob))
        if key:
            run.planned[key] += count
        cards(run, "%s=off" % knob)
    fault.__name__ = knob.partition(".")[2]
    return fault


duplicate = planted("0.duplicate", "frames.duplicate", "duplicate")


def reorder(run):
    """At most so many: a frame that is to be overtaken and has no successor for a while comes without one."""
    count, step = run.dice.randrange(1, 20), run.dice.randrange(2, 9)
    run.planned["reordered"] += count
    cards(run, "0.reorder=%d/%d/%d" % (run.dice.randrange(1, 500), step, count))
    run.program.grow("frames.sent", 1000)
    cards(run, "0.reorder=off")


corrupt = planted("0.corrupt", "frames.damaged", "damaged")
no_buffers = planted("1.no_buffers", "lost_by.nic_missed", "missed")
crc = planted("1.crc", "lost_by.causes.wire_crc", "crc")
discard = planted("1.discard", "lost_by.causes.card_full", "full")


def queue_error(run):
    """The card stops a receive queue of ours; it is started again, and what it cost is counted."""
    before = run.program.count("queue_restarts")
    cards(run, "1.rx_error=%d" % run.dice.randrange(10, 2000))
    run.program.wait(lambda: run.program.count("queue_restarts") > before, "the queue is started again")
    run.planned["restarts"] += 1
    cards(run, "1.rx_error=off")


# ---- a sender that is another process ----

def sender_killed(run):
    """Nobody knows of what it sent last; its last line and the receiver's counts bound it."""
    sender = run.sender
    sender.send(signal.SIGKILL)
    sender.kill()
    run.killed[run.stream] = sender.count("sender.frames")
    run.start_sender(run.stream + 1)


def sender_ends(run):
    run.end_sender()
    run.start_sender(run.stream + 1)


def sender_again(run):
    """The same streams from 0 again: a restart, and no frame of the two runs is taken for one of the other's."""
    run.end_sender()
    run.planned["stream restarts"] += 1
    run.start_sender(run.stream)


def sender_stands_still(run):
    run.sender.stand_still(run.dice.uniform(0.05, 0.8))


def veth_link(run):
    """The receiver's interface goes down: its sender sees that too, and waits."""
    run.pair.ip("link", "set", run.pair.right, "down")
    time.sleep(run.dice.uniform(0.1, 0.6))
    run.pair.ip("link", "set", run.pair.right, "up")


COMMON = [stand_still, reopen, disk_full, scrape, set_clock]
CARDS = [link, duplicate, reorder, corrupt, no_buffers, crc, discard]
SENDER = [sender_killed, sender_ends, sender_again, sender_stands_still]
