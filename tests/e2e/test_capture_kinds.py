# SPDX-License-Identifier: BSD-3-Clause
"""Capture files of every kind (capture_kinds.py) through `replay`, a file port, --expect and --save: frames, bytes and times
are those that tshark and tcpdump read. What is refused on purpose is refused by all, with the cause and what mends it."""
import contextlib
import hashlib
import os
import re
import subprocess
import threading

import pytest

import capture_kinds
import e2e
import pcapfile
import processes
import test_file_ports
import test_replay

pytestmark = pytest.mark.sanitized

ANY = (*test_file_ports.ANY, "--frame-size", "9216")
ETHERNET = "1"  # Wireshark's number
REMEDY = re.compile(r"editcap (?:-F \w+ )?OLD NEW(?: \d+)?|editcap -r FILE NEW 1-\d+|tshark -r OLD .*? -w NEW")
EVERY = [pytest.param(kind, id=kind.name, marks=[pytest.mark.long] if kind.name in capture_kinds.LONG else [])
         for kind in capture_kinds.KINDS]


# ---- what others read ----

def tshark(path):
    """[(time in ns, its MD5 sum)] of the Ethernet frames, an FCS included; a packet without a time is of 1970."""
    done = subprocess.run(["tshark", "-r", path, "-o", "frame.generate_md5_hash:TRUE", "-T", "fields", "-e", "frame.encap_type",
                           "-e", "frame.time_epoch", "-e", "frame.md5_hash"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=e2e.TIMEOUT)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [(int(time.replace(".", "") or 0), md5) for encapsulation, time, md5 in rows if encapsulation == ETHERNET]


def tcpdump(path):
    """The frames as libpcap reads them, None where it does not to the end."""
    copy = path + ".tcpdump"
    done = subprocess.run(["tcpdump", "-r", path, "-w", copy, "--time-stamp-precision=nano"], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=e2e.TIMEOUT)
    return None if done.returncode else pcapfile.read(copy)


class Reference:
    """What is good in the file: [(time in ns, MD5 sum with FCS)]."""

    def __init__(self, kind, path):
        self.fcs, self.frames, self.others = bytes(kind.fcs), [], None
        if kind.good != 0:
            self.others = tcpdump(path) if kind.by != "pcapfile" else pcapfile.read(path)
            self.frames = tshark(path) if kind.by == "tshark" else self.of(self.others, bytes())

    @staticmethod
    def of(frames, fcs):
        return [(frame.time_ns, hashlib.md5(frame.data + fcs).hexdigest()) for frame in frames]

    def check(self, frames, numbers, times=True):
        """These frames are those of the numbers."""
        got, wanted = self.of(frames, self.fcs), [self.frames[i] for i in numbers]
        if not times:
            got, wanted = ([md5 for _, md5 in rows] for rows in (got, wanted))
        assert got == wanted, ([(len(frame.data), frame.time_ns) for frame in frames], wanted)
        # libpcap cuts what is longer than the file's snap length.
        for frame, number in zip(frames, numbers):
            other = self.others[number] if self.others else frame
            assert frame.data.startswith(other.data[:len(frame.data)]) and (not times or frame.time_ns == other.time_ns), other


# ---- what we do ----

def check_refused(summary, kind, words):
    said = test_file_ports.errors(summary)
    for word in (kind.name, *words):
        assert word in said, (word, said)
    assert ("corrupt" in said) == (capture_kinds.BROKEN in words), said
    return said


def check_port(kind, port, out, reference, **options):
    """A port takes what is good of it, and saves that."""
    words, numbers = kind.port or (kind.words, range(len(reference.frames) if kind.good is None else kind.good))
    expect = 3 if kind.port else 1 if kind.words else 0
    summary = processes.run_json("capture", "--quiet", "--port", port, *ANY, "--save", out, expect=expect, **options)
    if kind.port:
        assert words in test_file_ports.errors(summary), summary["errors"]
    elif kind.words:
        check_refused(summary, kind, words)
    saved = pcapfile.read_capture(out).frames if os.path.exists(out) and os.path.getsize(out) else []
    reference.check(saved, numbers)


def check_taken(directory, path, reference):
    """All of it is sent, and received, expected and saved, the times included."""
    numbers = range(len(reference.frames))
    summary, sent = test_replay.replay_to_file(directory, "--pcap", path, "--rate", "max")
    reference.check(sent, numbers, times=False)
    processes.check_sender(summary, len(numbers))
    out = os.path.join(directory, "out.pcapng")
    summary = processes.run_json("capture", "--quiet", *test_file_ports.port(path), "--expect", path, "--frame-size", "9216",
                                 "--save", out)
    processes.check_counts(summary, received=len(numbers), valid=len(numbers))
    reference.check(pcapfile.read_capture(out).frames, numbers)


def check_not_taken(directory, kind, path, reference):
    for arguments in (("replay", "--tx-port", "net_null0", "--rate", "max", "--pcap"), ("capture", "--port", "net_null0", "--expect")):
        said = check_refused(processes.run_json(*arguments, path, "--quiet", expect=1), kind, kind.words)
    check_port(kind, test_file_ports.port(path)[1], os.path.join(directory, "out.pcapng"), reference)
    if not kind.remedy:
        return
    new = os.path.join(directory, "new")
    command = REMEDY.findall(said)
    assert command, said
    subprocess.run(command[0].replace("OLD", path).replace("FILE", path).replace("NEW", new), shell=True, check=False,
                   stdin=subprocess.DEVNULL, capture_output=True, timeout=e2e.TIMEOUT)
    processes.run_json("replay", "--quiet", "--tx-port", "net_null0", "--rate", "max", "--pcap", new)


@contextlib.contextmanager
def made(kind):
    """(folder, path, reference) of a file of this kind."""
    for name in ("tshark", "tcpdump", "editcap"):
        processes.tool(name)
    with processes.folder() as directory:
        path = pcapfile.write(os.path.join(directory, kind.name), kind.data)
        yield directory, path, Reference(kind, path)


@pytest.mark.parametrize("kind", EVERY)
def test_kind(kind):
    with made(kind) as (directory, path, reference):
        if kind.words:
            check_not_taken(directory, kind, path, reference)
        else:
            assert len(reference.frames) > 0
            check_taken(directory, path, reference)


class Writer:
    """Writes bytes into a pipe, in pieces, until its reader leaves."""

    def __init__(self, path, data, piece):
        self.path, self.data, self.piece = path, data, piece
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(BrokenPipeError), open(self.path, "wb", buffering=0) as file:
            for at in range(0, len(self.data), self.piece):
                file.write(self.data[at:at + self.piece])


@pytest.mark.long
@pytest.mark.parametrize("kind", capture_kinds.KINDS, ids=lambda kind: kind.name)
def test_kind_by_a_pipe(kind):
    """The same, wherever a piece of it ends."""
    with made(kind) as (directory, path, reference):
        pipe = os.path.join(directory, "pipe", kind.name)
        os.mkdir(os.path.dirname(pipe))
        os.mkfifo(pipe)
        writer = Writer(pipe, kind.data, 7 if len(kind.data) < 10000 else 7777)
        check_port(kind, test_file_ports.port(pipe)[1], os.path.join(directory, "out.pcapng"), reference)
        if writer.thread.is_alive():
            os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        writer.thread.join(e2e.TIMEOUT)


# ---- files that are none, or not only one ----

PLAIN = next(kind for kind in capture_kinds.KINDS if kind.name == "pcapng-little")


def test_standard_input():
    """A pipe or a file; the name is /dev/stdin, as of other programs that have no other."""
    with made(PLAIN) as (directory, path, reference):
        out = os.path.join(directory, "out.pcapng")
        for source in (["cat", path], None):
            pipe = subprocess.Popen(source, stdout=subprocess.PIPE) if source else None
            with pipe.stdout if pipe else open(path, "rb") as stream:
                done = subprocess.run([e2e.PROGRAM, "capture", "--quiet", *test_file_ports.port("/dev/stdin"), *ANY, "--save", out],
                                      stdin=stream, capture_output=True, text=True, timeout=e2e.TIMEOUT)
            if pipe:
                pipe.wait()
            assert done.returncode == 0, done
            reference.check(pcapfile.read_capture(out).frames, range(len(reference.frames)))


def test_file_that_grows():
    """What is there when the end is read is received; no half of a frame."""
    record = pcapfile.pcap_record(capture_kinds.FRAMES[3], pcapfile.START_NS)
    with processes.folder() as directory:
        path = pcapfile.write(os.path.join(directory, "in.pcap"), pcapfile.pcap_header() + 3000 * record)
        out, over = os.path.join(directory, "out.pcapng"), threading.Event()

        def grow():
            with open(path, "ab", buffering=0) as file:
                while not over.is_set() and file.tell() < 1 << 23:
                    file.write(record)

        writer = threading.Thread(target=grow)
        writer.start()
        result = e2e.run("capture", "--quiet", *test_file_ports.port(path), *ANY, "--save", out, "--json", expect=None)
        over.set()
        writer.join()
        frames = pcapfile.read_capture(out).frames
        assert result.status == 0 or "ends in the middle of frame %d" % (len(frames) + 1) in result.out, result
        assert len(frames) >= 3000 and {frame.data for frame in frames} == {capture_kinds.FRAMES[3]}


@pytest.mark.long
def test_file_of_more_than_2_gib():
    """Most of it is a hole: blocks of others, behind which the frames are."""
    block, path_bytes = 1 << 24, (1 << 31) + (1 << 26)
    with processes.folder() as directory:
        path = os.path.join(directory, PLAIN.name)
        with open(path, "wb") as file:
            file.write(capture_kinds.section() + capture_kinds.interface())
            while file.tell() < path_bytes:
                file.write(capture_kinds.struct.pack("<II", 0x1234, block))
                file.seek(block - 12, os.SEEK_CUR)
                file.write(capture_kinds.struct.pack("<I", block))
            file.write(capture_kinds.packets())
        check_taken(directory, path, Reference(PLAIN, path))
