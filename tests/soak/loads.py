# SPDX-License-Identifier: BSD-3-Clause
"""The loads of the soak test. A load's run lasts for a while, has each of its faults once, in the dice's order, then
any of them, and ends with exact counts."""
import collections
import contextlib
import os
import pathlib
import struct
import time

import connectx
import e2e
import faults
import machine
import pcapfile
import processes
import program as programs
import test_images

GPU = os.path.exists("/dev/nvidiactl")
CLOCK = os.environ.get("SOAK_CLOCK_LIBRARY")
FRONTED = os.environ.get("GDRCAP_FRONTED")
RATE = "20kpps"
# Of a run before its memory is compared: each slot of the pool was used.
WARM = 20000
# Frames that a killed sender had handed over and its port had not sent.
UNDER_WAY = 2048
Row = collections.namedtuple("Row", "load runs frames lost faults begin end note")


class Run:
    """One program, and what is done to it, for a `with` block."""

    faults = faults.COMMON

    def __init__(self, soak, dice):
        self.soak, self.dice = soak, dice
        self.planned, self.done, self.killed = (collections.Counter() for _ in range(3))
        self.scraped, self.skipped = {}, {}

    # What a load says of itself.

    def command(self):
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    def executable(self):
        return e2e.PROGRAM

    def after_start(self):
        """Others that belong to the run."""

    def before_end(self):
        """They end."""

    def check(self, summary):
        e2e.check_identities(summary, self.program)

    expect = (0,)
    stalls = True  # has a consumer of the CPU's that the faulty program can hold
    by_count = False  # with --frames

    # The run.

    def preload(self, environment):
        if self.clock:
            environment["SOAK_CLOCK"] = str(self.clock)
            environment["LD_PRELOAD"] = " ".join(filter(None, (environment.get("LD_PRELOAD"), CLOCK)))
        return environment

    def start(self):
        environment, arguments, name = self.preload(self.environment()), list(self.command()), self.executable()
        if self.stalls and connectx.FAULTY and self.dice.random() < 0.5:
            name = connectx.FAULTY
            environment["GDRCAP_FAULTS"] = "stall=%d" % self.dice.randrange(50, 500)
            self.metrics = None  # which that program is built without
            self.done["consumer_late"] += 1
        if self.metrics:
            arguments += ["--metrics", "unix:" + self.metrics]
        return programs.Program(*arguments, "--watchdog", "0.5", file=self.file, program=name, env=environment)

    @contextlib.contextmanager
    def running(self):
        with contextlib.ExitStack() as stack:
            disk = stack.enter_context(machine.small_disk(32))
            self.own_disk = disk is not None
            self.folder = pathlib.Path(stack.enter_context(processes.folder()))
            self.file = (disk or self.folder) / "run.jsonl"
            self.metrics = str(self.folder / "metrics") if self.soak.metrics else None
            self.clock = None
            if CLOCK:
                self.clock = self.folder / "clock"
                self.clock.write_bytes(struct.pack("=q", 0))
            self.stack = stack
            self.prepare()
            self.program = stack.enter_context(self.start())
            self.program.wait(lambda: self.program.book.lines, "the first line")
            stack.callback(self.before_exit)
            self.after_start()
            yield

    def prepare(self):
        pass

    def before_exit(self):
        pass

    def go_on(self):
        self.program.grow("frames.received", 500)

    def do(self, fault):
        try:
            fault(self)
        except faults.Skip as reason:
            self.skipped[fault.__name__] = str(reason)
            return
        self.go_on()
        self.done[fault.__name__] += 1
        self.soak.progress(self, fault.__name__)

    def last_for(self, until):
        """Each fault once, whatever the time; then any, until it is over. Ctrl-C ends it where it is."""
        self.program.grow("frames.received", WARM)
        self.program.note_begin()
        for fault in self.dice.sample(self.faults, len(self.faults)):
            if not self.soak.interrupted:
                self.do(fault)
        while not self.over(until) and not self.soak.interrupted:
            self.soak.sleep(self.dice.uniform(0.1, self.soak.pause))
            self.do(self.dice.choice(self.faults))

    def over(self, until):
        return time.monotonic() >= until

    def play(self, seconds):
        until = time.monotonic() + seconds
        with self.running():
            self.last_for(until)
            begin, end = self.program.check_flat()
            self.before_end()
            lost_lines = self.planned["lost lines"]
            summary = self.program.finish((1, *self.expect) if lost_lines else self.expect)
            told = any("lines that could not be written" in text for text in summary["errors"])
            assert told == bool(lost_lines), self.program
            self.check(summary)
            note = "; ".join("no %s: %s" % item for item in self.skipped.items())
            return Row(self.name, 1, summary["frames"]["received"], summary["frames"]["lost"] or 0, self.done,
                       begin, end, note)


# ---- loopbacks ----

class Ring(Run):
    """A software wire in the program: nothing is ever lost, whatever is done to it."""

    name = "ring"
    more = ("--gpu", "host")

    def command(self):
        return ("loopback", "--seconds", "0", "--rate", RATE, "--frame-size", "64-1518", "--pool", "16M", "--streams",
                str(self.dice.choice((1, 7))), "--idle-sleep", "500", *self.more)

    def check(self, summary):
        e2e.check_perfect(summary)


class Cards(Run):
    """Two ConnectX cards in software. What is planted is counted, to the frame, under its cause's name."""

    name = "connectx"
    rx = ()
    memory = connectx.DEVICE
    expect = (3,)
    faults = faults.COMMON + faults.CARDS

    def prepare(self):
        if not connectx.LIBRARY:
            raise e2e.Skip("SOFTMLX5 does not name the library of tests/softmlx5")
        self.cards = self.folder / "cards"
        self.cards.write_text("")

    def environment(self):
        environment = connectx.environment(softmlx5_faults_file=str(self.cards))
        environment["SOFTMLX5_VERBOSE"] = "0"
        return environment

    def command(self):
        return ("loopback", "--seconds", "0", "--rate", RATE, "--frame-size", "64-1518", "--pool", "16M",
                "--quiet-time", "2", "--idle-sleep", "500", *self.rx, "--port", connectx.port(connectx.RECEIVER),
                "--tx-port", connectx.port(connectx.SENDER), *self.memory)

    def check(self, summary):
        e2e.check_identities(summary, self.program)
        frames, lost_by, planned = summary["frames"], summary["lost_by"], self.planned
        found = {key: frames[key] for key in ("duplicate", "damaged")}
        assert frames["reordered"] <= planned["reordered"], self.program
        assert found == {key: planned[key] for key in found}, (found, planned, self.program)
        causes = lost_by["causes"]
        found = {"missed": lost_by["nic_missed"], "crc": causes["wire_crc"], "full": causes["card_full"]}
        assert found == {key: planned[key] for key in found}, (found, planned, self.program)
        discarded = summary["sender"]["causes"]["tx_discard"]
        known = sum(found.values()) + discarded + (lost_by["nic_error"] or 0)
        assert frames["lost"] == known and lost_by["unexplained"] == 0, (frames["lost"], known, lost_by, self.program)
        assert summary["queue_restarts"] == planned["restarts"], self.program
        # A bit that turned in a header is none of the payload's.
        assert summary["bits"]["wrong"] <= planned["damaged"], self.program


class CardsCpu(Cards):
    name = "connectx-cpu"
    rx = ("--rx-by", "cpu")
    faults = Cards.faults + [faults.queue_error]


class CardsStrides(CardsCpu):
    name = "connectx-strides"
    rx = ("--rx-by", "cpu", "--rx-strides", "64")


class CardsFronts(CardsCpu):
    """What polls on a GPU, played by CPU threads (tests/softmlx5/front_thread.c)."""

    name = "connectx-fronts"
    rx = ("--rx-by", "gpu")
    stalls = False

    def executable(self):
        if not FRONTED:
            raise e2e.Skip("GDRCAP_FRONTED does not name the program of tests/softmlx5")
        self.metrics = None  # which that program is built without
        return FRONTED


# ---- a receiver, and senders that come and go ----

class Receiver(Run):
    """Senders of other processes, each with a stream of its own unless it takes up the one before it."""

    expect = (0, 3)
    lossy = False
    stalls = False
    faults = faults.COMMON + faults.SENDER
    never = ("--end", "never")
    source = ("--frame-size", "64-1518")

    def command(self):
        return ("capture", "--seconds", "0", *self.never, "--pool", "16M", "--gpu", "host", "--idle-sleep", "500",
                *self.receive_words())

    def after_start(self):
        self.exact = collections.Counter()
        self.start_sender(0)

    def start_sender(self, stream):
        self.stream = stream
        before = self.program.count("frames.received")
        self.sender = programs.Program(
            "replay", *self.send_words(), *self.source, *self.stream_words(), "--rate", RATE, "--src-mac",
            "02:00:00:00:00:07", "--idle-sleep", "500", env=self.preload(dict(os.environ)))
        self.program.wait(lambda: self.program.count("frames.received") > before + 100, "frames of stream %d: %s" % (
            stream, self.sender))

    def stream_words(self):
        return ("--seconds", "0", "--first-stream", str(self.stream))

    def end_sender(self):
        with self.sender:
            summary = self.sender.finish()
        self.exact[self.stream] += summary["sender"]["frames"]

    def before_end(self):
        self.end_sender()
        whole = sum(self.exact.values())
        if not self.lossy:
            self.program.wait(lambda: self.program.count("frames.received") >= whole, "all that was sent is here")

    def before_exit(self):
        if self.sender:
            self.sender.kill()

    sender = None

    def dropped(self):
        """What the kernel threw away before the port."""
        return 0

    def check(self, summary):
        e2e.check_identities(summary, self.program)
        frames = summary["frames"]
        found = {row["stream"]: row["frames"] for row in summary["streams"]}
        room = (summary["lost_by"]["nic_missed"] or 0) + self.dropped()
        assert frames["damaged"] == frames["duplicate"] == frames["reordered"] == 0, self.program
        assert frames["lost"] <= room and (self.lossy or frames["lost"] == 0), (room, self.program)
        assert summary["lost_by"]["unexplained"] <= self.dropped(), self.program
        for stream, sent in self.exact.items():
            if stream in self.killed:
                continue
            told = found[stream]["sent"]
            assert told == sent or sent - room <= told <= sent, (stream, sent, found[stream], self.program)
        for stream, least in self.killed.items():
            assert found[stream]["sent"] >= least - UNDER_WAY - room, (stream, least, found[stream], self.program)
        assert set(found) == set(self.exact) | set(self.killed), (found, self.exact, self.killed)
        if not self.lossy:
            assert summary["restarts"] == self.planned["stream restarts"], self.program


class Memif(Receiver):
    """Shared memory between two processes: held back, and never lost."""

    name = "memif"

    def port(self, role):
        return "net_memif0,role=%s,id=0,socket=%s,socket-abstract=no" % (role, self.folder / "wire")

    def receive_words(self):
        return ("--port", self.port("server"))

    def send_words(self):
        return ("--tx-port", self.port("client"))


class Veth(Receiver):
    """AF_PACKET on a veth pair. The kernel may throw frames away, and says how many."""

    name = "veth"
    lossy = True
    faults = Receiver.faults + [faults.veth_link]

    def prepare(self):
        number = self.soak.number()
        self.pair = self.stack.enter_context(e2e.VethPair("soakl%d" % number, "soakr%d" % number))

    def dropped(self):
        return self.pair.dropped()

    def receive_words(self):
        return ("--port", "net_af_packet0,iface=" + self.pair.right)

    def send_words(self):
        return ("--tx-port", "net_af_packet0,iface=" + self.pair.left)


class Images(Memif):
    """The same wire with images of a file that is played again and again; numbers wrap where it does."""

    name = "images"
    faults = faults.COMMON + [faults.sender_killed, faults.sender_ends, faults.sender_stands_still]
    numbers = 64

    def prepare(self):
        sender = test_images.Sender(range(self.numbers), wrap=self.numbers)
        self.pcap = pcapfile.write_pcap(str(self.folder / "images.pcap"), sender.frames())
        self.layout = test_images.layout(str(self.folder), ring=16, wrap=self.numbers)

    source = never = ()

    def receive_words(self):
        return (*super().receive_words(), "--image", self.layout)

    def stream_words(self):
        return ("--pcap", self.pcap, "--loops", "forever")

    def check(self, summary):
        test_images.check_images(summary)
        images, frames = summary["images"][0], summary["frames"]
        assert frames["received"] >= sum(self.exact.values()), (self.exact, self.program)
        # No buffer may be free after a time without a core; then an image is dropped as a whole, and counted.
        assert images["frames"]["misfit"] == 0 and images["complete"] > 0, self.program
        assert images["bytes"] >= images["complete"] * test_images.BYTES, self.program


# ---- who reads what the program writes ----

class Readers(Run):
    """Short runs, one after the other: the reader of standard output leaves, the disk of --save is full, the reader of
    a pipe of --save leaves. Each ends by itself, says so, and counts what is missing."""

    name = "readers"
    faults = []

    def loopback(self, *arguments, **options):
        return programs.Program("loopback", "--gpu", "host", "--rate", RATE, "--pool", "16M", "--idle-sleep", "500",
                                *arguments, env=dict(os.environ), **options)

    def standard_output(self):
        with self.loopback("--seconds", "0") as run:
            run.grow("frames.received", 1000)
            # From now on nobody reads; what was read of a line is no line.
            run.reader_left = True
            os.dup2(self.soak.null, run.process.stdout.fileno())
            run.process.wait(e2e.TIMEOUT)
            run.join()
            assert run.process.returncode == 1 and "standard output" in "\n".join(run.errors), run
            return run.book.last["frames"]["received"]

    def saved(self, path, *arguments):
        with self.loopback("--frames", "20000", "--save", str(path), *arguments) as run:
            yield run
            summary = run.finish((1, 3), number=None)
            frames, saved = summary["frames"], summary["saved"]
            assert frames["valid"] == frames["sent"] == 20000, run
            assert saved["frames"] + saved["missed"] == 20000 and saved["missed"] > 0, run

    def full_disk(self):
        with machine.small_disk(4) as disk:
            if not disk:
                raise faults.Skip("no file system of our own")
            for _ in self.saved(disk / "all.pcapng"):
                pass
        return 20000

    def pipe(self):
        path = self.folder / "pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            for run in self.saved(path):
                run.grow("frames.received", 1000)
                os.close(reader)
                reader = None
        finally:
            if reader is not None:
                os.close(reader)
            os.unlink(path)
        return 20000

    def play(self, seconds):
        until, frames = time.monotonic() + seconds, 0
        begin = machine.usage(os.getpid())
        with processes.folder() as folder:
            self.folder = pathlib.Path(folder)
            ways = [self.standard_output, self.full_disk, self.pipe]
            while ways and not self.soak.interrupted:
                way = ways.pop(self.dice.randrange(len(ways)))
                try:
                    frames += way()
                    self.done[way.__name__] += 1
                    self.soak.progress(self, way.__name__)
                except faults.Skip as reason:
                    self.skipped[way.__name__] = str(reason)
                if not ways and time.monotonic() < until:
                    ways = [self.standard_output, self.full_disk, self.pipe]
        return Row(self.name, 1, frames, 0, self.done, begin, machine.usage(os.getpid()),
                   "; ".join("no %s: %s" % item for item in self.skipped.items()))


# ---- frames by the billion ----

class Frames(Ring):
    """As fast as it goes, until --frames came."""

    name = "frames"
    stalls = False
    by_count = True

    def command(self):
        return ("loopback", "--seconds", "0", "--rate", "max", "--frame-size", "64", "--pool", "16M", *self.more)

    def over(self, until):
        return self.program.count("frames.received") >= self.soak.frames if self.soak.frames else super().over(until)


class GpuFrames(Frames):
    name = "gpu-frames"
    more = ("--gpu", "0", "--pool", "64M")


class GpuRing(Ring):
    name = "gpu-ring"
    more = ("--gpu", "0")
    stalls = False


class GpuCards(CardsFronts):
    """Cards in software that write into a GPU's memory, polled by a kernel."""

    name = "gpu-connectx"
    memory = ("--gpu", "0", "--memory", "device")

    def executable(self):
        return e2e.PROGRAM


LOADS = [Ring, Cards, CardsCpu, CardsStrides, CardsFronts, Memif, Veth, Images, Readers]
GPU_LOADS = [GpuRing, GpuCards]
BY_COUNT = [Frames, GpuFrames]
