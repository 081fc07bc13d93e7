# SPDX-License-Identifier: BSD-3-Clause
"""Several senders into one receiver, and frames whose numbers are not their stream's."""
import contextlib
import os
import signal
import socket
import struct
import time

import e2e
import frames as own
import processes

COUNT = processes.scaled(50000, 10000)
SIZE = 200
PAYLOAD = SIZE - 4 - own.ETHERNET_BYTES - own.HEADER_BYTES
PATTERN = own.prbs31(2200 * PAYLOAD)


def memif(directory, role, number):
    return "net_memif%u,role=%s,id=%u,socket=%s,socket-abstract=no" % (
        number, role, number, os.path.join(directory, "memif%u.sock" % number))


def receive(ports, *arguments):
    return processes.Running("capture", *(word for port in ports for word in ("--port", port)),
                             *arguments)


def send(port, *arguments):
    return processes.Running("replay", "--tx-port", port, "--frame-size", "64-1518", *arguments)


def play(directory, senders, apart, *arguments):
    """So many senders over memif, all at once: (their summaries, the receiver's)."""
    with receive([memif(directory, "server", i) for i in range(senders)], *arguments) as receiver:
        receiver.wait_until_running()
        with contextlib.ExitStack() as stack:
            running = [stack.enter_context(send(
                memif(directory, "client", i), "--frames", str(COUNT), "--streams", "2",
                *(("--first-stream", str(2 * i)) if apart else ()))) for i in range(senders)]
            sent = [sender.finish() for sender in running]
        return sent, receiver.finish(expect=None)


def check_all(received, senders):
    e2e.check_identities(received)
    processes.check_counts(received, sent=senders * COUNT, valid=senders * COUNT, damaged=0,
                           lost=0, duplicate=0, reordered=0)
    assert received["ended_by_sender"] is True, processes.text_of(received)


def test_two_and_four_senders():
    """Each has its own streams: every frame of each is there, and the end comes with the last."""
    for senders in e2e.some((2, 4), 1):
        with processes.folder() as directory:
            _, received = play(directory, senders, True, "--senders", str(senders))
        check_all(received, senders)
        assert received["result"] == "pass", processes.text_of(received)
        assert received["conflicts"] == 0, received["conflicts"]
        assert len(received["streams"]) == 2 * senders, received["streams"]


def test_same_streams():
    """Ids that two senders use are kept apart, and are no pass: the remedy is said."""
    with processes.folder() as directory:
        _, received = play(directory, 2, False, "--senders", "2")
    check_all(received, 2)
    assert received["result"] == "fail" and received["conflicts"] == 2, received["conflicts"]
    assert any("--first-stream" in line for line in received["errors"]), received["errors"]


def test_one_is_killed():
    """What it had not sent is not the other's loss; and what nobody says is no pass."""
    with processes.folder() as directory:
        ports = [memif(directory, "server", i) for i in range(2)]
        with receive(ports, "--senders", "2") as receiver:
            receiver.wait_until_running()
            with send(memif(directory, "client", 1), "--first-stream", "7", "--rate", "5kpps",
                      "--seconds", "600") as doomed:
                receiver.wait_for_frames("received", 1000)
                with send(memif(directory, "client", 0), "--frames", str(COUNT)) as sender:
                    doomed.kill()
                    sender.finish()
            receiver.wait_for_frames("received", COUNT + 1000)
            receiver.signal(signal.SIGINT)
            received = receiver.finish(expect=None)
    streams = {entry["stream"]: entry["frames"] for entry in received["streams"]}
    assert streams[0]["valid"] == streams[0]["sent"] == COUNT, streams
    assert streams[7]["valid"] >= 1000 and streams[7]["damaged"] == 0, streams
    assert streams[7]["duplicate"] == 0, streams
    assert received["ended_by_sender"] is False, received["ended_by_sender"]
    assert received["result"] == "fail", processes.text_of(received)
    assert any("streams whose end did not come: 1;" in line for line in received["errors"]), \
        received["errors"]


def test_two_interfaces():
    """Two veth pairs: senders in two processes, each with its interface's address. DPDK's fanout
    group is process id ^ interface index: with neighbouring numbers of both, the two would be one
    group, which the kernel refuses."""
    with e2e.VethPair() as one, e2e.VethPair("gdrcap2", "gdrcap3", index=4096) as two:
        ports = ["net_af_packet%u,iface=%s" % (i, pair.right)
                 for i, pair in enumerate((one, two))]
        with receive(ports, "--senders", "2") as receiver:
            receiver.wait_until_running()
            with contextlib.ExitStack() as stack:
                running = [stack.enter_context(send(
                    "net_af_packet0,iface=%s" % pair.left, "--frames", "5000", "--rate", "5kpps",
                    "--first-stream", str(i))) for i, pair in enumerate((one, two))]
                for sender in running:
                    sender.finish()
            received = receiver.finish(expect=None)
    e2e.check_identities(received)
    processes.check_counts(received, sent=10000, damaged=0, duplicate=0, reordered=0)
    assert received["lost_by"]["unexplained"] == 0, received["lost_by"]
    assert received["conflicts"] == 0 and received["ended_by_sender"] is True, received


# ---- numbers that are not the stream's, by a generator that is not ours ----

def frame(stream, sequence, at=None, **header):
    """Its payload is that of frame `at` of the pattern."""
    position = (sequence if at is None else at) * PAYLOAD
    return (own.DESTINATION + own.SOURCE + struct.pack(">H", own.ETHERTYPE) +
            own.own_header(stream, sequence, position, PAYLOAD, **header) +
            PATTERN[position:position + PAYLOAD])


def capture(directory, frames, expect):
    path = os.path.join(directory, "in.pcap")
    own.write_pcap(path, frames)
    return processes.run_json("capture", "--quiet", "--port",
                              "net_pcap0,rx_pcap=%s" % path, "--frames", str(len(frames)),
                              expect=expect)


def test_strays():
    """One frame with a number from elsewhere: it is one damaged frame, and all others are right."""
    whole = [frame(5, i) for i in range(2000)]
    for number in (3000000, 1 << 63, (1 << 64) - 2, (1 << 64) - 1):
        for place in (0, 1000):
            with processes.folder() as directory:
                summary = capture(directory, whole[:place] + [frame(5, number, at=0)] +
                                  whole[place:], 3)
            processes.check_counts(summary, valid=2000, damaged=1, lost=0, duplicate=0,
                                   reordered=0)
            assert summary["damage"][0]["kind"] == "stray", summary["damage"]
            # What JSON's integers cannot hold is text.
            assert int(summary["damage"][0]["sequence"]) == number, summary["damage"]


def test_a_copy_and_a_restart():
    """Frame 0 again: a copy has its send time; a sender that begins anew has another."""
    first = [frame(5, i) for i in range(500)]
    again = [frame(5, i, time_ns=1_700_000_100_000_000_000) for i in range(300)]
    with processes.folder() as directory:
        summary = capture(directory, first + first[:300], 3)
        processes.check_counts(summary, valid=500, damaged=0, lost=0, duplicate=300)
        assert summary["restarts"] == 0, summary["restarts"]
        summary = capture(directory, first + again, 0)
        processes.check_counts(summary, valid=800, damaged=0, lost=0, duplicate=0)
        assert summary["restarts"] == 1, summary["restarts"]
        assert "began again" in processes.messages(summary), summary["messages"]
        # What the first life lost stays lost, and the second has its own.
        summary = capture(directory, first[:100] + first[110:] + again[:50] + again[55:], 3)
        processes.check_counts(summary, valid=785, damaged=0, lost=15, duplicate=0)


def test_stray_ids():
    """Ids by the thousand, a frame each: the stream that was meant is judged all the same."""
    strays = [frame(id, 77, at=77) for id in range(1000, 2200)]
    whole = [frame(5, i) for i in range(400)]
    with processes.folder() as directory:
        summary = capture(directory, strays + whole[:200] + whole[300:], 3)
    processes.check_counts(summary, valid=300 + len(strays), damaged=0, lost=100)
    assert summary["untracked"] == 0, summary["untracked"]


def from_source(frames, last):
    return [data[:11] + bytes([last]) + data[12:] for data in frames]


def test_one_says_no_end():
    """Of two senders that are waited for one falls silent: what it lost last is not known."""
    one = [frame(5, i) for i in range(500)] + 5 * [own.end_of_stream(5, 500)]
    two = from_source([frame(6, i) for i in range(300)], 9)
    end = from_source(5 * [own.end_of_stream(6, 300)], 9)
    with processes.folder() as directory:
        path = os.path.join(directory, "in.pcap")
        for frames, senders, status in ((one + two, 2, 3), (one + two + end, 2, 0),
                                        (two, 1, 0), (one + two[:-1] + end, 2, 3)):
            own.write_pcap(path, frames)
            summary = processes.run_json(
                "capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s" % path, "--idle", "0.3",
                "--senders", str(senders), expect=status)
            said = "\n".join(summary["errors"] + summary["messages"])
            assert ("whose end did not come: 1;" in said) == (frames == one + two), said
            assert ("no stream said its end" in said) == (senders == 1), said


def test_ends_that_come_apart():
    """A sender that is kept from its core between the ends of its two streams, while --frames stops
    the receiver: the other end is waited for."""
    wire = [frame(id, i) for i in range(100) for id in (5, 6)]
    with e2e.VethPair() as pair, socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((pair.left, 0))
        with receive(["net_af_packet0,iface=" + pair.right], "--frames", str(len(wire))) as receiver:
            receiver.wait_until_running()
            for data in [*wire[:-1], own.end_of_stream(5, 100, streams=2), wire[-1]]:
                sender.send(data)
            time.sleep(0.2)
            sender.send(own.end_of_stream(6, 100, streams=2))
            received = receiver.finish()
    e2e.check_identities(received)
    processes.check_counts(received, sent=200, valid=200, damaged=0, lost=0, duplicate=0)


def test_a_restart_whose_beginning_is_lost():
    """After the end its frames are copies, as far as anybody can know: what it may be is said."""
    first = [frame(5, i) for i in range(500)] + 5 * [own.end_of_stream(5, 500)]
    again = [frame(5, i, time_ns=1_700_000_100_000_000_000) for i in range(3, 100)]
    with processes.folder() as directory:
        summary = capture(directory, first + again, 3)
    processes.check_counts(summary, valid=500, damaged=0, lost=0, duplicate=97)
    assert "started again" in processes.messages(summary), summary["messages"]


def test_more_streams_than_room():
    """1,100 streams of two frames: what was not judged is said, and is no pass."""
    frames = [frame(id, i) for i in range(2) for id in range(1100)]
    with processes.folder() as directory:
        summary = capture(directory, frames, 3)
    assert summary["untracked"] == 76, summary["untracked"]
    assert any("not judged" in line for line in summary["errors"]), summary["errors"]
