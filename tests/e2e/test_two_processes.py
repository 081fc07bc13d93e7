# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap replay in one process and gdrcap capture in another, over memif and over veth pairs."""
import json
import os
import random
import re
import signal

import e2e
import frames as own
import pace
import pcapfile
import processes

MEMIF_FRAMES = processes.scaled(1000000, 50000)
# More, or faster: for a long run by hand.
VETH_FRAMES = int(os.environ.get("E2E_VETH_FRAMES", processes.scaled(100000, 20000)))
VETH_RATE = os.environ.get("E2E_VETH_RATE", "25kpps")


def memif(directory, role, options=""):
    return "net_memif0,role=%s,id=0,socket=%s%s" % (role, os.path.join(directory, "memif.sock"),
                                                    options)


def receive(directory, *arguments, options="", **process):
    return processes.Running("capture", "--port", memif(directory, "server", options),
                             *arguments, **process)


def send(directory, *arguments, options="", **process):
    return processes.Running("replay", "--tx-port", memif(directory, "client", options),
                             *arguments, **process)


def check_both(sent, received, count):
    """Nothing was lost, and both ends say the same."""
    processes.check_sender(sent, count)
    e2e.check_perfect(received, count)
    assert received["sender"] is None, received["sender"]
    assert received["lost_by"]["unexplained"] == 0, received["lost_by"]
    assert sent["result"] == received["result"] == "pass", (sent["errors"], received["errors"])


def over_memif(directory, count, *arguments, process=None, options=""):
    """(replay's summary, capture's)."""
    process = process or {}
    with receive(directory, options=options, **process) as receiver:
        receiver.wait_until_running()
        with send(directory, "--frames", str(count), *arguments, options=options,
                  **process) as sender:
            sent = sender.finish()
        received = receiver.finish()
    assert received["ended_by_sender"] is True, processes.text_of(received)
    return sent, received


# ---- memif ----

def test_memif():
    """A million frames: both books agree, and nothing is lost."""
    with processes.folder() as directory:
        sent, received = over_memif(directory, MEMIF_FRAMES, "--frame-size", "imix")
    check_both(sent, received, MEMIF_FRAMES)
    print("memif: %d frames, %.3f Mpps, %.3f Gb/s" % (
        MEMIF_FRAMES, received["rate"]["mpps"], received["rate"]["gbps"]))


def test_memif_without_root():
    """Neither end needs any right."""
    process = processes.nobody()
    with processes.folder() as directory:
        sent, received = over_memif(directory, 20000, process=process)
        check_both(sent, received, 20000)
        sent, received = over_memif(directory, 20000, process=process,
                                    options=",socket-abstract=no")
        check_both(sent, received, 20000)


def test_memif_sender_listens():
    """The other way round: the sender is there first and waits for its receiver."""
    with processes.folder() as directory:
        with processes.Running("replay", "--tx-port", memif(directory, "server"), "--frames",
                               "20000", "--streams", "3") as sender:
            sender.wait_until(lambda: len(sender.out) >= 5)
            assert json.loads(sender.out[-1])["sender"]["frames"] == 0, sender.out[-1]
            with processes.Running("capture", "--port", memif(directory, "client")) as receiver:
                sent, received = sender.finish(), receiver.finish()
    check_both(sent, received, 20000)


def test_memif_nobody_listens():
    """A client that is first waits for its server, or says what to start first."""
    with processes.folder() as directory:
        arguments = ("replay", "--tx-port", memif(directory, "client"), "--frames", "1000",
                     "--seconds", "3")
        result = e2e.run(*arguments, expect=None)
    assert result.status == 0 or re.search(r"server|other end|first", result.err.replace(
        " ".join(arguments), "")), result


def connections(directory):
    """Sockets of memif's there: one that listens, and those of which each is a connection."""
    with open("/proc/thread-self/net/unix", encoding="ascii") as file:
        return sum(line.rstrip().endswith(os.path.join(directory, "memif.sock")) for line in file) - 1


def times_run(process):
    """How often its first thread was given a core."""
    with open("/proc/%d/schedstat" % process.pid, encoding="ascii") as file:
        return int(file.read().split()[2])


def test_memif_slow_to_answer():
    """A server that gets no core while its client connects: the client waits, and looks again and again, the server lives."""
    with processes.folder() as directory, receive(directory) as receiver:
        receiver.wait_until_running()
        receiver.signal(signal.SIGSTOP)
        with send(directory, "--frames", "1000") as sender:
            processes.wait_for(lambda: connections(directory) == 1, sender.process, "connect")
            before = times_run(sender.process)
            processes.wait_for(lambda: times_run(sender.process) > before + 20, sender.process, "wait for the server")
            assert not sender.out, sender.out
            receiver.signal(signal.SIGCONT)
            sent, received = sender.finish(), receiver.finish()
    check_both(sent, received, 1000)


def test_memif_rings_and_bursts():
    """Small rings and large bursts: held back, not lost."""
    with processes.folder() as directory:
        sent, received = over_memif(directory, 50000, "--burst", "256", "--frame-size", "64",
                                    options=",rsize=6")
    check_both(sent, received, 50000)


def test_memif_at_a_rate():
    """By the receiver's clock, which stamps frames as they come; its saver may miss some on a loaded machine."""
    count, lengths = 10000, list(range(60, 1515))
    with processes.folder() as directory:
        saved = os.path.join(directory, "saved.pcapng")
        with receive(directory, "--save", saved) as receiver:
            receiver.wait_until_running()
            with send(directory, "--frames", str(count), "--rate", "10kpps", "--frame-size", "64-1518") as sender:
                machine = pace.Machine(sender.process, receiver.process)
                sent, received = sender.finish(), receiver.finish()
        got = pcapfile.read_capture(saved).frames
    check_both(sent, received, count)
    pace.check_rate(sent, [lengths[number % len(lengths)] for number in range(count)], mpps=0.01)
    got = [frame for frame in got if own.is_data(frame.data)]
    due = pace.due_at_frames(count, 10000)
    pace.check([frame.time_ns for frame in got], [due[own.number_of(frame.data)] for frame in got], sent, machine, seen_gaps=False)
    # On the wire both count alike.
    assert received["seconds"] * 1e9 > due[-1] - machine.stole - pace.STAMP_NS, received["seconds"]


def test_two_pairs_at_once():
    """Four processes of one machine do not clash."""
    with processes.folder() as first, processes.folder() as second:
        with receive(first) as one, receive(second) as two:
            one.wait_until_running()
            two.wait_until_running()
            with send(first, "--frames", "20000") as left, send(second, "--frames",
                                                                "30000") as right:
                check_both(left.finish(), one.finish(), 20000)
                check_both(right.finish(), two.finish(), 30000)


def test_sender_killed():
    """No end of stream comes: the quiet time ends the capture, the sequence numbers tell."""
    with processes.folder() as directory, receive(directory, "--idle", "1") as receiver:
        receiver.wait_until_running()
        with send(directory, "--seconds", "600", "--rate", "20kpps") as sender:
            # Were it silent so long without a core, the end would be the same.
            receiver.wait_for_frames("received", 1)
            sender.kill()
            received = receiver.finish(expect=None)
    e2e.check_identities(received)
    counts = received["frames"]
    assert counts["valid"] > 0 and counts["damaged"] == counts["lost"] == 0, counts
    assert received["ended_by_sender"] is False, received


def test_sender_of_few_frames_is_interrupted():
    """Ctrl-C at the sender: it says how many it sent, and the receiver ends with it."""
    with processes.folder() as directory, receive(directory) as receiver:
        receiver.wait_until_running()
        with send(directory, "--rate", "5kpps", "--seconds", "600") as sender:
            receiver.wait_for_frames("received", 1000)
            sender.signal(signal.SIGINT)
            sent, received = sender.finish(), receiver.finish()
    check_both(sent, received, sent["sender"]["frames"])
    assert received["ended_by_sender"] is True, received


def test_receiver_killed():
    """The sender is told, waits or counts, and ends when it is asked to."""
    with processes.folder() as directory, receive(directory) as receiver:
        receiver.wait_until_running()
        with send(directory, "--rate", "20kpps", "--seconds", "600") as sender:
            receiver.wait_for_frames("received", 5000)
            receiver.kill()
            sender.wait_until(lambda: any("the link is down" in line for line in sender.err))
            sender.signal(signal.SIGINT)
            sent = sender.finish(expect=None)
    assert 5000 <= sent["sender"]["frames"], sent["sender"]
    assert "link" in processes.messages(sent), sent["messages"]


def stalls(sender):
    return (json.loads(sender.out[-1])["tx_stalled"] if sender.out else None) or 0


def test_receiver_killed_with_frames_left():
    """It stops taking, the ring fills, and it is killed: the sender says how many were lost at most."""
    with processes.folder() as directory, receive(directory) as receiver:
        receiver.wait_until_running()
        with send(directory, "--rate", "20kpps", "--seconds", "600") as sender:
            receiver.wait_for_frames("received", 2000)
            receiver.signal(signal.SIGSTOP)
            before = stalls(sender)
            sender.wait_until(lambda: stalls(sender) > before)
            receiver.kill()
            sender.wait_until(lambda: any("the link is down" in line for line in sender.err))
            sender.signal(signal.SIGINT)
            sent = sender.finish(expect=None)
    found = re.search(r"up to (\d+) frames that it took are lost: its other end left", processes.messages(sent))
    assert found and 0 < int(found[1]) <= 1024, sent["messages"]


def test_receiver_killed_at_full_speed():
    """Its memory is unmapped while the sender copies into it: nobody falls into the hole."""
    with processes.folder() as directory:
        for _ in range(3 if e2e.LONG else 1):
            with receive(directory) as receiver:
                receiver.wait_until_running()
                with send(directory, "--burst", "256", "--frame-size", "1518", "--seconds",
                          "600") as sender:
                    receiver.wait_for_frames("received", 5000)
                    receiver.kill()
                    sender.wait_until(lambda: any("the link is down" in line
                                                  for line in sender.err))
                    sender.signal(signal.SIGINT)
                    sent = sender.finish(expect=None)
            assert 5000 <= sent["sender"]["frames"], sent["sender"]


def test_end_by_the_receiver():
    """--frames and --seconds end a capture whatever the sender does, and with --end never the sender's end does not."""
    with processes.folder() as directory:
        with receive(directory, "--frames", "5000") as receiver:
            receiver.wait_until_running()
            with send(directory, "--rate", "5kpps", "--seconds", "600") as sender:
                received = receiver.finish()
                sender.signal(signal.SIGINT)
                sender.finish(expect=None)
        assert received["frames"]["valid"] >= 5000, received["frames"]
        assert received["ended_by_sender"] is False, received
        # The sender is there first: no part of the time is spent on its start.
        with processes.Running("replay", "--tx-port", memif(directory, "server"), "--rate", "5kpps", "--seconds",
                               "600") as sender:
            sender.wait_until_running()
            with processes.Running("capture", "--port", memif(directory, "client"), "--seconds", "2") as receiver:
                received = receiver.finish(expect=None)
                sender.kill()
        assert received["elapsed_seconds"] >= 2 and received["ended_by_sender"] is False, received
        with receive(directory, "--end", "never") as receiver:
            receiver.wait_until_running()
            with send(directory, "--frames", "1000") as sender:
                sender.finish()
            receiver.wait_for_frames("received", 1000)
            lines = len(receiver.out)
            receiver.wait_until(lambda: len(receiver.out) >= lines + 5)
            receiver.signal(signal.SIGINT)
            received = receiver.finish()
        assert received["frames"]["valid"] == 1000 and received["seconds"] is not None, received
        assert received["ended_by_sender"] is False, received


# ---- what is expected stands in a file ----

def distinct_frames(count):
    """No two alike, and no part of one in another."""
    pattern = random.Random(count).randbytes(count * 1500)
    return [own.DESTINATION + own.SOURCE + b"\x88\xb6" +
            pattern[i * 1500:i * 1500 + 46 + i * 37 % 1400] for i in range(count)]


def expect(wanted, sent, *arguments, status=0):
    """Replays `sent` into a capture that expects `wanted`."""
    with processes.folder() as directory:
        paths = [pcapfile.write_pcap(os.path.join(directory, name), frames)
                 for name, frames in (("wanted.pcap", wanted), ("sent.pcap", sent))]
        with receive(directory, "--expect", paths[0], "--frames", str(len(sent)), "--idle", "60",
                     *arguments) as receiver:
            receiver.wait_until_running()
            with send(directory, "--pcap", paths[1], "--rate", "max") as sender:
                processes.check_sender(sender.finish(), len(sent))
            return receiver.finish(expect=status)


def test_expect_clean():
    wanted = distinct_frames(2000)
    summary = expect(wanted, wanted)
    processes.check_counts(summary, sent=2000, received=2000, valid=2000, damaged=0, lost=0,
                           duplicate=0, reordered=0, filtered=0)
    assert summary["bits"] == {"checked": sum(8 * len(frame) for frame in wanted), "wrong": 0,
                               "ratio": 0.0}, summary["bits"]


def test_expect_finds_what_was_planted():
    wanted = distinct_frames(2000)
    sent = list(wanted)
    sent[500] = sent[500][:40] + bytes([sent[500][40] ^ 0x11]) + sent[500][41:]
    sent[501] = sent[501][:-1] + bytes([sent[501][-1] ^ 0x01])
    sent[700], sent[701] = sent[701], sent[700]
    sent.insert(905, sent[900])
    del sent[1200:1350], sent[100]
    summary = expect(wanted, sent, status=3)
    processes.check_counts(summary, sent=2000, received=1850, valid=1847, damaged=2, lost=151,
                           duplicate=1, reordered=1)
    assert summary["bits"]["wrong"] == 3, summary["bits"]
    assert [(row["sequence"], row["offset"], row["wrong_bits"], row["expected"], row["got"])
            for row in summary["damage"]] == [
                (500, 40, 2, wanted[500][40], wanted[500][40] ^ 0x11),
                (501, len(wanted[501]) - 1, 1, wanted[501][-1], wanted[501][-1] ^ 1)], (
                    summary["damage"])


def test_expect_strangers():
    """Frames that are in no part of the file: damaged without a place, unless rules leave them
    out."""
    wanted = distinct_frames(300)
    stranger = b"\xff" * 6 + own.SOURCE + b"\x08\x06" + bytes(range(46))
    sent = wanted[:150] + [stranger] + wanted[150:]
    summary = expect(wanted, sent, "--match", "ethertype=0x88b6")
    processes.check_counts(summary, sent=300, received=301, valid=300, damaged=0, lost=0,
                           filtered=1)
    summary = expect(wanted, sent, status=3)
    e2e.check_identities(summary)
    assert summary["frames"]["valid"] == 300 and summary["frames"]["lost"] == 0, summary["frames"]


def test_expect_frames_that_are_alike():
    """A, B, C again and again, one lost: the next tells which it is."""
    wanted = distinct_frames(3) * 200
    processes.check_counts(expect(wanted, wanted), sent=600, valid=600, damaged=0, lost=0,
                           duplicate=0, reordered=0)
    sent = wanted[:250] + wanted[251:]
    processes.check_counts(expect(wanted, sent, status=3), sent=600, valid=599, lost=1, damaged=0,
                           duplicate=0, reordered=0)


# ---- veth ----

# Frames for which there is room before the receiver: a ring of ours that holds all of them, or a driver's own.
ROOM = {"af_packet": 32768, "af_xdp": 2048}


def over_veth(driver, count, rate):
    """The kernel may drop; what it drops is lost in our books too, and nothing else is wrong."""
    with e2e.VethPair() as pair:
        left, right = ("net_%s0,iface=%s" % (driver, name) for name in (pair.left, pair.right))
        if driver == "af_packet":
            right += ",framecnt=%d" % ROOM[driver]
        # The kernel may drop the frames that say the end, too.
        with processes.Running("capture", "--port", right, "--idle", "60") as receiver:
            receiver.wait_until_running_on(driver)
            arguments = ("--frames", str(count), "--frame-size", "64-1518", "--streams", "2")
            with processes.Running("replay", "--tx-port", left, "--rate", rate,
                                   *arguments) as sender:
                sent = sender.finish()
            received = receiver.finish(expect=None)
        dropped = pair.dropped()
    processes.check_sender(sent, count)
    e2e.check_identities(received)
    counts = received["frames"]
    if not received["ended_by_sender"]:
        assert driver == "af_xdp" and received["lost_by"]["nic_missed"], processes.text_of(received)
        count = counts["sent"]  # up to the last that came
    assert counts["sent"] == count, "%s\n%s" % (counts, processes.text_of(sent))
    # Whatever was lost, somebody counted.
    assert received["lost_by"]["unexplained"] <= dropped, (received["lost_by"], dropped)
    for key in ("damaged", "duplicate", "reordered"):
        assert counts[key] == 0, processes.text_of(received)
    # A receiver without a core gets what there is room for.
    assert counts["valid"] >= min(count, ROOM[driver]) - dropped, (counts, dropped)
    print("%s: %d of %d frames lost by the kernel at %s" % (driver, counts["lost"], count, rate))
    return received


def test_veth_af_packet():
    over_veth("af_packet", VETH_FRAMES, VETH_RATE)


def test_veth_af_xdp():
    over_veth("af_xdp", VETH_FRAMES, VETH_RATE)


def test_veth_sender_killed():
    with e2e.VethPair() as pair:
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s,framecnt=4096" %
                               pair.right, "--idle", "1") as receiver:
            receiver.wait_until_running()
            with processes.Running("replay", "--tx-port", "net_af_packet0,iface=%s" % pair.left,
                                   "--rate", "5kpps", "--seconds", "600") as sender:
                receiver.wait_for_frames("received", 1)
                sender.kill()
            received = receiver.finish(expect=None)
    e2e.check_identities(received)
    assert received["frames"]["valid"] > 0, received["frames"]
    assert received["ended_by_sender"] is False, received
