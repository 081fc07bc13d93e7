# SPDX-License-Identifier: BSD-3-Clause
"""Senders that none of us wrote, in a network namespace of their own; on the other end of a veth pair
capture --image, beside tcpdump, whose file says what was on the wire."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess

import e2e
import pcapfile
import processes

SENDER, RECEIVER = "10.77.0.1", "10.77.0.2"
SENTINEL = b"\x88\xb5" + b"the sender has ended".ljust(46)  # behind the two addresses
FILL = 255


class Wire(e2e.VethPair):
    """The left end in a namespace of the sender's. Nothing is on the wire but what is sent: no IPv6."""

    def __init__(self, mtu=1500, ports=None, sink=None):
        super().__init__(mtu=mtu)
        self.inside, self.socket = [], None
        self.sink = sink  # a port that somebody has, so that no sender hears that nobody has it
        self.ports = ports  # that the sender's sockets get when they ask for any

    def __enter__(self):
        super().__enter__()
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.inside = ["nsenter", "-t", str(self.holder.pid), "-n"]
        self.ip("link", "set", self.left, "netns", str(self.holder.pid))
        # Neighbours that are known ask nothing.
        macs = {name: "02:00:00:00:00:0%d" % (i + 1) for i, name in enumerate((self.left, self.right))}
        ends = ((self.inside, self.left, SENDER, RECEIVER, macs[self.right]),
                ([], self.right, RECEIVER, SENDER, macs[self.left]))
        for end, name, own, _, _ in ends:
            self.set(end, "ipv6/conf/%s/disable_ipv6" % name, "1")
            for what in (["link", "set", "lo", "up"],
                         ["link", "set", name, "address", macs[name], "mtu", str(self.mtu), "up"],
                         ["addr", "replace", own + "/24", "dev", name]):
                self.command(*end, "ip", *what)
        self.wait_for_carrier()
        for end, name, _, other, peer in ends:
            self.command(*end, "ip", "neigh", "replace", other, "lladdr", peer, "nud", "permanent",
                         "dev", name)
        if self.ports:
            self.set(self.inside, "ipv4/ip_local_port_range", "%d %d" % self.ports)
        if self.sink:
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.socket.bind((RECEIVER, self.sink))
        return self

    def wait_for_carrier(self):
        for end, name in ((self.inside, self.left), ([], self.right)):
            assert processes.wait_until(lambda: "state UP" in self.command(
                *end, "ip", "link", "show", name)), "%s did not come up" % name

    def set(self, end, name, value):
        """Where there is no such setting, nothing need be set."""
        self.command(*end, "sh", "-c", "test ! -e $0 || echo $1 >$0", "/proc/sys/net/" + name, value)

    @staticmethod
    def command(*command):
        processes.tool(command[0])
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=e2e.TIMEOUT)
        if done.returncode:
            raise e2e.Skip("%s: %s" % (" ".join(command), done.stdout.strip()))
        return done.stdout

    def dropped(self):
        """What the pair itself lost, before any socket, from the sender to us."""
        text = self.command(*self.inside, "ip", "-s", "-j", "link", "show", self.left)
        return json.loads(text)[0]["stats64"]["tx"]["dropped"]

    def run(self, *command, **options):
        """The sender, to its end; its output."""
        processes.tool(command[0])
        done = subprocess.run([*self.inside, *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=e2e.TIMEOUT, **options)
        assert done.returncode == 0, "%s: %s" % (" ".join(command), done.stdout[-3000:])
        return done.stdout

    @contextlib.contextmanager
    def running(self, *command):
        """The sender, beside the block; stopped after it."""
        processes.tool(command[0])
        with subprocess.Popen([*self.inside, *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait_for_socket(self, port):
        """Until a UDP socket of the sender's has it."""
        there = ":%04X " % port
        assert processes.wait_until(lambda: there in self.command(*self.inside, "cat", "/proc/net/udp"),
                                    60), "nobody took port %d" % port

    def send_sentinel(self):
        """A last frame, behind everything else."""
        self.run("python3", "-c", "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW);"
                 "s.bind((%r, 0)); s.send(%r)" % (self.left, bytes(12) + SENTINEL))

    def __exit__(self, *exception):
        if self.socket:
            self.socket.close()
        # The namespace's end goes with ours; with the namespace both would go at a time of the kernel's.
        subprocess.run(["ip", "link", "del", self.right], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.holder.kill()
        self.holder.communicate()
        super().__exit__(*exception)


def datagrams(frames):
    """(source port, destination port, payload) of UDP frames without options or tags."""
    for frame in frames:
        if frame[12:15] == b"\x08\0\x45" and frame[23] == 17:
            source, target, length = struct.unpack_from(">HHH", frame, 34)
            yield source, target, frame[42:34 + length]


class Seen:
    """What came of a capture: its `images` as JSON tells, their bytes, and tcpdump's frames."""

    def __init__(self, summary, out, pcap):
        self.summary, self.images, self.pcap = summary, summary["images"][0], pcap
        self.frames = [frame.data for frame in pcapfile.read(pcap)]
        with open(out, "rb") as file:
            self.data = file.read()

    def split(self, size):
        assert len(self.data) % size == 0, "%d bytes are no images of %d" % (len(self.data), size)
        return [self.data[at:at + size] for at in range(0, len(self.data), size)]


def port_of(wire):
    """Its receiving end, so that the kernel loses nothing while this process has no core."""
    large = wire.mtu > 1500
    return ["--port", "net_af_packet0,iface=%s,framecnt=%d" % (wire.right, 4096 if large else 16384),
            "--idle-sleep", "1000", *(("--frame-size", "9018") if large else ())]


class KernelLost(AssertionError):
    """The receiving kernel says that it dropped frames, as it does where a receiver had no core for long."""


def slower_upon_loss(play):
    """play(divisor) with an ever slower sender (divisor 1, 4, 16) until the kernel drops nothing. Any other failure is
    one at once, and so is the slowest sender's loss."""
    for divisor in (1, 4):
        try:
            return play(divisor)
        except KernelLost as lost:
            print("# again, with a slower sender:", lost)
    return play(16)


class Counting(processes.Running):
    """gdrcap, which ends once it counted what was on the wire."""

    def end(self, count, expect=0):
        def all_there():
            last = json.loads(self.out[-1])
            return last["frames"]["received"] + (last["lost_by"]["nic_missed"] or 0) >= count

        self.wait_until(lambda: self.out and all_there())
        self.signal(signal.SIGINT)
        # Frames that the kernel dropped make it 3.
        summary = self.finish((expect, 3) if isinstance(expect, int) else expect)
        if summary["lost_by"]["nic_missed"] != 0:
            raise KernelLost("the kernel lost frames: %s" % summary["lost_by"])
        assert expect in (None, self.process.returncode), self.result()
        assert summary["frames"]["received"] == count, (summary["frames"], count)
        return summary


class Saver(Counting):
    """capture --save of the same frames."""

    def __init__(self, wire, path):
        super().__init__("capture", "--quiet", "--gpu", "host", *port_of(wire), "--save", path)
        self.wait_until_running()


class Capture:
    """tcpdump and gdrcap on the receiving end, for a `with` block; then seen()."""

    def __init__(self, wire, folder, image, *arguments):
        self.wire, self.out = wire, os.path.join(folder, "out.raw")
        self.pcap = os.path.join(folder, "wire.pcap")
        self.stack = contextlib.ExitStack()
        self.arguments = ["capture", "--quiet", "--gpu", "host", *port_of(wire), "--image", image,
                          "--save-images", self.out, *arguments]

    def __enter__(self):
        self.tcpdump = self.stack.enter_context(self.dump())
        self.running = self.stack.enter_context(Counting(*self.arguments))
        self.running.wait_until_running()
        return self

    def dump(self):
        return processes.Tcpdump(self.wire.right, self.pcap, direction="inout", live=True)

    def __exit__(self, *exception):
        self.stack.__exit__(*exception)

    def seen(self, expect=0):
        """Once all that was sent is in tcpdump's file and counted by gdrcap. Loss of the kernel's, before
        the sockets or in their rings, is none of a sender's: it would be in these counts."""
        self.wire.send_sentinel()
        tail = SENTINEL
        assert processes.wait_until(lambda: ends_with(self.pcap, tail), e2e.TIMEOUT), "no sentinel"
        said = self.tcpdump.interrupt()
        if "\n0 packets dropped by kernel" not in said:
            raise KernelLost("tcpdump: " + said)
        if self.wire.dropped() != 0:
            raise KernelLost("the veth pair lost %d frames" % self.wire.dropped())
        summary = self.running.end(len(pcapfile.read(self.pcap)), expect)
        check_identities(summary)
        return Seen(summary, self.out, self.pcap)


def ends_with(path, tail):
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - len(tail)))
        return file.read() == tail


def from_file(folder, pcap, image, *arguments, expect=0):
    """The images of what tcpdump saw."""
    out = os.path.join(folder, "again.raw")
    summary = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port",
                           "net_pcap0,rx_pcap=%s" % pcap, "--image", image, "--save-images", out,
                           "--frames", str(len(pcapfile.read(pcap))), *arguments, expect=expect)
    check_identities(summary)
    return Seen(summary, out, pcap)


def check_identities(summary, late=0):
    """And that the file has all images that were handed out."""
    images, = summary["images"]
    frames, pieces = images["frames"], images["pieces"]
    assert frames["received"] == sum(frames[key] for key in (
        "placed", "duplicate", "second_leg", "conflict", "late", "no_room", "misfit", "filtered")), images
    assert images["begun"] == images["complete"] + images["incomplete"] + images["dropped"], images
    assert pieces["expected"] == pieces["placed"] + pieces["lost"], images
    assert images["dropped"] == frames["no_room"] == 0, images
    assert frames["late"] <= late, images
    assert images["saved"] == {"images": images["complete"] + images["incomplete"], "missed": 0}, images


def counts(images):
    """What two runs over the same packets must have in common."""
    return {key: images[key] for key in ("frames", "begun", "complete", "incomplete", "dropped",
                                         "skipped", "restarts", "pieces", "bytes")}
