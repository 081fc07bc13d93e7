# SPDX-License-Identifier: BSD-3-Clause
"""The caller's own frames over every kind of port, in slots and from his own memory: each comes once, whole
and in order (send_play.c); and examples/answer.c, which answers frames on the port that they came by."""
import errno
import fcntl
import os
import pathlib
import re
import socket
import struct
import subprocess
import threading
import time

import pytest

import connectx
import e2e
import processes

MANY = processes.scaled(100000, 20000)
SOME = processes.scaled(20000, 5000)
TUNSETIFF, TAP_NO_PI = 0x400454ca, 0x1002  # <linux/if_tun.h>
BASE = """
gpu: host
consumer: {name: host}
sender: {name: host}
frame: {size: 1518}
"""


def play(text, frames, how="whole", expect=0, mirror=None, **options):
    with processes.folder() as folder:
        paths = [pathlib.Path(folder) / name for name in ("config", "mirror")]
        for path, written in zip(paths, (text, mirror or "")):
            base = BASE.replace("sender: {name: host}\n", "") if "sender:" in written else BASE
            path.write_text(base + written)
        process = subprocess.Popen([os.environ["SEND_PLAY"], str(paths[0]), str(frames), how] +
                                   ([str(paths[1])] if mirror else []), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        result = e2e.finish(process, [text, how])
    assert result.status == expect, result
    if expect == 0:
        assert result.out == ("%d submitted, %d sent, %d received, 0 unsent, 0 failed\n" %
                              ((frames,) * 3)), result
    return result


def test_ring():
    result = play("port: ring:a\ntx_port: ring:a\n", MANY)
    assert result.err == "", result


def test_ring_guard():
    play("port: ring:a\ntx_port: ring:a\nguard: true\n", MANY)


def test_ring_in_one_piece():
    """A wire hands mbufs over, and its receiver knows one piece only."""
    result = play("port: ring:a\ntx_port: ring:a\n", MANY, "host", expect=1)
    assert re.search(r"port ring:a \(software wire\) sends frames of one piece only", result.err), result


def veth(driver, frames, how="whole", expect=0):
    with e2e.VethPair() as pair:
        return play("port: \"net_%s0,iface=%s\"\ntx_port: \"net_%s1,iface=%s\"\n" %
                    (driver, pair.right, driver, pair.left), frames, how, expect)


def test_af_packet():
    veth("af_packet", SOME)


def test_link_goes_down_and_up():
    """Frames that are submitted meanwhile wait, and leave when it is up again."""
    with e2e.VethPair() as pair, processes.folder() as folder:
        path = pathlib.Path(folder) / "config"
        path.write_text(BASE + "port: \"net_af_packet0,iface=%s\"\n"
                        "tx_port: \"net_af_packet1,iface=%s\"\n" % (pair.right, pair.left))
        process = subprocess.Popen([os.environ["SEND_PLAY"], str(path), "100", "link"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        for line, state in (("half", "down"), ("waits", "up")):
            told = process.stdout.readline()
            assert told == line + "\n", (told, process.communicate())
            pair.ip("link", "set", pair.left, state)
            if state == "down":
                process.stdin.write("\n")
                process.stdin.flush()
        result = e2e.finish(process, ["link"])
        assert result.status == 0, result
        assert result.out == "100 submitted, 100 sent, 100 received, 0 unsent, 0 failed\n", result


def stopped(port, tx_port, how, pair):
    """Ends a run in which frames wait: unsent, ms, what gdrcap_stop() said, and lines."""
    with processes.folder() as folder:
        path = pathlib.Path(folder) / "config"
        path.write_text(BASE + "port: \"%s\"\ntx_port: \"%s\"\n" % (port, tx_port))
        process = subprocess.Popen([os.environ["SEND_PLAY"], str(path), "100", how],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        if how == "down" and process.stdout.readline() == "half\n":
            pair.ip("link", "set", pair.left, "down")
            process.stdin.write("\n")
            process.stdin.flush()
            told = process.stdout.readline()
            assert told == "waits\n", (told, process.communicate())
        result = e2e.finish(process, [how])
    if "af_xdp" in tx_port and re.search("cannot be opened|no AF_XDP", result.err):
        raise e2e.Skip("no AF_XDP here: %s" % result.err[-300:])
    assert result.status == 0, result
    found = re.fullmatch(r"(\d+) unsent, (\d+) ms, (-?\d+)\n", result.out)
    assert found and (found.group(1) == "0") != ("frames submitted and not sent" in result.err), result
    return (*map(int, found.groups()), result.err)


class Delays(threading.Thread):
    """How many ms at most a thread waited for a core while this block ran."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.over = 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            began = time.monotonic()
            time.sleep(0.002)
            self.most = max(self.most, 1000 * (time.monotonic() - began) - 2)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def stops_soon(stop):
    """A stop takes 100 ms, and what the threads that hand it on to each other wait for cores: of some, one does."""
    least = []
    for _ in range(40):
        with Delays() as delays:
            ms = stop()
        if ms <= 100 + 3 * delays.most:
            return
        least = min(least or [ms], [ms])
    raise AssertionError("no stop took 100 ms or less, the fastest %d" % least[0])


def link_down(driver):
    """Ten frames wait for the link."""
    with e2e.VethPair() as pair:
        unsent, ms, code, _ = stopped("net_%s0,iface=%s" % (driver, pair.right),
                                      "net_%s1,iface=%s" % (driver, pair.left), "down", pair)
    assert (unsent, code) == (10, 0), (unsent, code)
    return ms


def test_stop_af_packet_link_down():
    stops_soon(lambda: link_down("af_packet"))


def test_stop_af_xdp_link_down():
    stops_soon(lambda: link_down("af_xdp"))


def nobody_reads(driver):
    """The interface is a TAP whose program takes nothing: the kernel keeps what the driver has put into its ring."""
    with e2e.VethPair() as pair:
        try:
            tap = os.open("/dev/net/tun", os.O_RDWR)
        except OSError as error:
            raise e2e.Skip("no TAP here: %s" % error) from error
        try:
            fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"gdrcap2", TAP_NO_PI))
            pair.ip("link", "set", "gdrcap2", "up")
            unsent, ms, code, lines = stopped("net_af_packet0,iface=%s" % pair.right,
                                              "net_%s1,iface=gdrcap2" % driver, "full", pair)
        finally:
            os.close(tap)
    return unsent, ms, code, lines


def test_stop_af_packet_takes_nothing():
    def stop():
        unsent, ms, code, lines = nobody_reads("af_packet")
        assert unsent and code == -errno.ENOBUFS and "still with the kernel, which does not send them" in lines, (code, lines)
        return ms
    stops_soon(stop)


def test_stop_af_xdp_takes_nothing():
    def stop():
        _, ms, code, lines = nobody_reads("af_xdp")  # its ring may have room for all slots
        assert code == 0, (code, lines)
        return ms
    stops_soon(stop)


def test_af_packet_two_pieces():
    veth("af_packet", SOME, "host")


def test_af_packet_no_gpu_memory():
    result = veth("af_packet", SOME, "device", expect=1)
    assert re.search(r"port net_af_packet1,\S+ \(kernel interface \(AF_PACKET\)\) copies frames with "
                     r"the CPU and cannot reach GPU memory", result.err), result


def test_af_xdp():
    try:
        veth("af_xdp", SOME)
    except AssertionError as error:
        if re.search("cannot be opened|no AF_XDP", str(error)):
            raise e2e.Skip("no AF_XDP here: %s" % str(error)[-300:]) from error
        raise


def memif(frames, how="whole"):
    with processes.folder() as folder:
        end = "net_memif%d,role=%s,id=0,socket=" + str(pathlib.Path(folder) / "s") + \
            ",socket-abstract=no"
        return play("port: \"%s\"\ntx_port: \"%s\"\n" % (end % (0, "server"), end % (1, "client")),
                    frames, how)


def test_memif():
    memif(SOME)


def test_memif_two_pieces():
    memif(SOME, "host")


# ---- the software ConnectX: the driver is the real one, and the CPU cannot read frames ----

def cards(mode, frames, how="whole"):
    if not connectx.LIBRARY:
        raise e2e.Skip("no software ConnectX: SOFTMLX5")
    return play("port: \"%s\"\ntx_port: \"%s\"\nguard: true\n" %
                (connectx.port(connectx.RECEIVER, mode), connectx.port(connectx.SENDER, mode)),
                frames, how, env=connectx.environment(mode=mode))


def test_connectx_devx():
    cards("devx", MANY)


@pytest.mark.long
def test_connectx_verbs_scalar():
    cards("verbs scalar", SOME)


def test_connectx_two_pieces():
    cards("devx", MANY, "device")


@pytest.mark.long
def test_connectx_two_pieces_verbs():
    cards("verbs", SOME, "device")


def test_connectx_host_slots():
    """What comes lies where the CPU cannot read it; headers are the CPU's, payloads are not."""
    if not connectx.LIBRARY:
        raise e2e.Skip("no software ConnectX: SOFTMLX5")
    play("port: \"%s\"\ntx_port: \"%s\"\nguard: true\nsender: {name: host, memory: host}\n" %
         (connectx.port(connectx.RECEIVER), connectx.port(connectx.SENDER)), SOME, "device",
         env=connectx.environment())


# ---- one port receives and sends ----

def both_ways(ports, frames, how="whole", more="", **options):
    texts = ["port: \"%s\"\ntx_port: \"%s\"\n%s" % (port, port, more) for port in ports]
    return play(texts[0], frames, how, mirror=texts[1], **options)


def test_both_ways_af_packet():
    with e2e.VethPair() as pair:
        both_ways(["net_af_packet%d,iface=%s" % (i, name)
                   for i, name in enumerate((pair.left, pair.right))], SOME)


def test_both_ways_memif():
    with processes.folder() as folder:
        both_ways(["net_memif%d,role=%s,id=0,socket=%s/s,socket-abstract=no" % (i, role, folder)
                   for i, role in enumerate(("server", "client"))], SOME)


def both_ways_cards(mode, frames, how="whole", more=""):
    if not connectx.LIBRARY:
        raise e2e.Skip("no software ConnectX: SOFTMLX5")
    both_ways([connectx.port(name, mode) for name in (connectx.SENDER, connectx.RECEIVER)], frames,
              how, "guard: true\n" + more, env=connectx.environment(mode=mode))


def test_both_ways_connectx():
    both_ways_cards("devx", MANY)


@pytest.mark.long
def test_both_ways_connectx_two_pieces():
    both_ways_cards("verbs flow scalar", SOME, "device")


def test_both_ways_connectx_host_slots():
    both_ways_cards("devx", SOME, "host", "sender: {name: host, memory: pinned}\n")


# ---- answers on the port that the frames came by ----

def answered(port, interface, count=200):
    """One frame at a time, as a camera's; each answer is a right UDP datagram to its sender."""
    with processes.folder() as folder, socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                                     socket.htons(0x0800)) as wire:
        path = pathlib.Path(folder) / "config"
        path.write_text(BASE + "port: \"%s\"\ntx_port: \"%s\"\nframes: %d\nmatch: "
                        "[ethertype=0x88b5]\n" % (port, port, count))
        wire.bind((interface, 0x0800))
        wire.settimeout(0.5)
        process = subprocess.Popen([os.environ["ANSWER"], str(path)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        answers, sent = [], 0
        try:
            while process.poll() is None and len(answers) < count:
                wire.send(b"\xff" * 6 + b"\x02\0\0\0\0\x07" + b"\x88\xb5" + bytes(100))
                sent += 1
                try:
                    answers.append(wire.recv(2048))
                except TimeoutError:
                    continue  # it does not run yet
        finally:
            result = e2e.finish(process, ["answer"])
    assert result.status == 0, result
    return answers, result


def check_answers(answers, result):
    assert answers, result
    for frame in answers:
        assert frame[:6] == b"\x02\0\0\0\0\x07", frame
        words = struct.unpack(">10H", frame[14:34])
        total = sum(words)
        assert (total & 0xffff) + (total >> 16) == 0xffff, frame
        length, = struct.unpack(">H", frame[38:40])
        datagram = frame[34:34 + length]
        pseudo = frame[26:34] + struct.pack(">HH", 17, length)
        total = sum(struct.unpack(">%dH" % ((len(pseudo) + length) // 2), pseudo + datagram))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        assert total == 0xffff, frame
        assert datagram[8:16] == b"COMMAND ", frame
    numbers = [struct.unpack(">Q", frame[50:58])[0] for frame in answers]
    assert numbers == sorted(set(numbers)), numbers
    # Where the port of a busy machine is slow to give slots back, there is none for an answer: told.
    found = re.fullmatch(r"(\d+) came, (\d+) answered, (\d+) held up, 0 unsent\n", result.out)
    assert found, result
    came, sent, held_up = (int(count) for count in found.groups())
    assert came == sent + held_up and sent > came // 2, result


def test_answer_af_packet():
    with e2e.VethPair() as pair:
        check_answers(*answered("net_af_packet0,iface=%s" % pair.right, pair.left))


def test_answer_af_xdp():
    with e2e.VethPair() as pair:
        try:
            check_answers(*answered("net_af_xdp0,iface=%s" % pair.right, pair.left))
        except AssertionError as error:
            if "cannot be opened" in str(error):
                raise e2e.Skip("no AF_XDP here: %s" % str(error)[-300:]) from error
            raise
