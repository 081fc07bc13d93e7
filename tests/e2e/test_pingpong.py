# SPDX-License-Identifier: BSD-3-Clause
"""examples/pingpong without a GPU: processes in a ring, by hand and by mpirun, over memif and over veth; what was lost
and what is wrong is told, and fails."""
import os
import re
import socket
import subprocess

import e2e
import processes

ROUNDS = processes.scaled(1000, 100)
WAYS = ("CPU-driven", "stream-ordered", "kernel-driven")


def start(*arguments, prefix=(), **options):
    return subprocess.Popen([*prefix, os.environ["PINGPONG"], *map(str, arguments)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def rank(number, ranks, directory, *arguments):
    return start("--rank", number, "--ranks", ranks, "--dir", directory, "--timeout", "60",
                 "gpu=host", *arguments)


def finish(process, status=0):
    result = e2e.finish(process, ["pingpong"])
    assert result.status == status, result
    return result


def line(result, way):
    """(round trips, lost, wrong)."""
    found = re.search(r"^%s +(\d+) +(\d+) +(\d+)( |$)" % way, result.out, re.M)
    assert found, result
    return tuple(map(int, found.groups()[:3]))


def check(result, ranks, ways=WAYS, rounds=ROUNDS):
    assert result.out.startswith("%d ranks in a ring\n" % ranks), result
    assert len(result.out.splitlines()) == 2 + len(ways), result
    for way in ways:
        assert line(result, way) == (rounds, 0, 0), result
        assert re.search(r"^%s( +\d+){3}( +\d+\.\d\d){3}   \S" % way, result.out, re.M), result


def by_hand(ranks, *arguments):
    with processes.folder() as directory:
        others = [rank(i, ranks, directory, "--rounds", ROUNDS, *arguments)
                  for i in range(1, ranks)]
        result = finish(rank(0, ranks, directory, "--rounds", ROUNDS, *arguments))
        for other in others:
            assert finish(other).out == "", "others than rank 0 have no table"
    return result


def test_by_hand():
    check(by_hand(2), 2)


def test_long_frames():
    check(by_hand(2, "frame.size=1518"), 2)


def test_three_ranks():
    check(by_hand(3), 3)


def test_threads():
    """All ranks in one process, a session each."""
    with processes.folder() as directory:
        for ranks in (2, 3):
            check(finish(start("--threads", ranks, "--dir", directory, "--rounds", ROUNDS,
                               "--timeout", "60", "gpu=host")), ranks)


def test_one_way():
    check(by_hand(2, "--ways", "stream"), 2, WAYS[1:2])


def mpirun(ranks, *arguments):
    processes.tool("mpirun", "openmpi-bin")
    # As root, and more ranks than cores: mpirun wants to be told.
    return finish(start(*arguments, prefix=(
        "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks))))


def test_mpirun():
    """It says to each who it is; nothing of MPI is linked."""
    with processes.folder() as directory:
        check(mpirun(3, "--dir", directory, "--rounds", ROUNDS, "--timeout", "60", "gpu=host"), 3)
    linked = subprocess.run(["ldd", os.environ["PINGPONG"]], capture_output=True, text=True).stdout
    assert "libmpi" not in linked, linked


def test_veth():
    with e2e.VethPair() as pair, processes.folder() as directory:
        sides = [rank(i, 2, directory, "--rounds", ROUNDS, "port=net_af_packet0,iface=" + name,
                      "tx_port=net_af_packet0,iface=" + name)
                 for i, name in enumerate((pair.left, pair.right))]
        check(finish(sides[0]), 2)
        finish(sides[1])


class Neighbour:
    """Plays rank 1, until rank 0 has ended; `change` says what of a message goes back (None: nothing)."""

    def __init__(self, interface, change):
        self.change = change
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.05)

    def play(self, process):
        while process.poll() is None:
            try:
                frame, address = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            if address[2] == socket.PACKET_OUTGOING:
                continue
            back = bytearray(frame[6:12] + frame[0:6] + frame[12:])
            back[17] += 1
            back = self.change(back)
            if back:
                self.socket.send(back)


def against(change, way):
    """Rank 0 with that neighbour: its line, when nothing came any more."""
    with e2e.VethPair() as pair, processes.folder() as directory:
        name = "net_af_packet0,iface=" + pair.left
        neighbour = Neighbour(pair.right, change)
        process = start("--rank", 0, "--ranks", 2, "--dir", directory, "--timeout", "5", "--rounds",
                        10, "--ways", way, "gpu=host", "port=" + name, "tx_port=" + name)
        neighbour.play(process)
        result = finish(process, 1)
    assert "no message came for" in result.err, result
    return line(result, WAYS[("cpu", "stream", "kernel").index(way)])


def number_of(message):
    return int.from_bytes(message[18:26], "big")


def test_wrong_byte():
    """A byte of message 3 is not what was sent: it is told, and no other follows it. One way in `make check`."""
    def change(message):
        if number_of(message) == 3:
            message[-1] ^= 4
        return message

    for way in e2e.some(("cpu", "stream", "kernel"), 0):
        assert against(change, way) == (2, 8, 1), way


def test_lost():
    """Message 5 does not come back. One way in `make check`."""
    def change(message):
        return None if number_of(message) == 5 else message

    for way in e2e.some(("cpu", "stream", "kernel"), 1):
        assert against(change, way) == (4, 6, 0), way


def test_others_frames():
    """What is for another rank, or has passed too few, is no message. The second in `make check`."""
    def change(message):
        if number_of(message) == 4:
            message[5] = 7
        return message

    def short_cut(message):
        if number_of(message) == 4:
            message[17] -= 1
        return message

    for made, wanted in e2e.some(((change, (3, 7, 0)), (short_cut, (3, 7, 1))), 1):
        assert against(made, "kernel") == wanted


def test_refused():
    for arguments in ((), ("--threads", 1), ("--rank", 1), ("--rank", 2, "--ranks", 2), ("--ranks", 300, "--rank", 0),
                      ("--rank", 0, "--ranks", 2, "--ways", "none"), ("--what",),
                      ("--rank", 0, "--ranks", 2, "--rounds", "0"), ("--rank", 0, "--ranks", 2, "x")):
        assert "usage: " in finish(start(*arguments), 2).err, arguments
    with processes.folder() as directory:
        result = finish(rank(0, 2, directory, "frame.size=10"), 1)
        assert "frame.size" in result.err, result
        result = finish(rank(0, 2, directory, "gpu=nonsense"), 1)
        assert "gpu" in result.err, result
