# SPDX-License-Identifier: BSD-3-Clause
"""Frames of a sender that is none of ours (custom_stream.py): every planted fault is counted, with
sequence numbers and without."""
import os
import signal
import subprocess

import pytest

import e2e
import custom_stream
import pcapfile
import processes

pytestmark = pytest.mark.sanitized

SIZES = (64, 65, 512, 777, 1024, 1518)
COUNTER = ("--format", "custom", "--custom-payload", "18", "--sequence-offset", "14",
           "--sequence-bytes", "4", "--pattern", "prbs31")
NO_COUNTER = ("--format", "custom", "--pattern", "prbs31")
FAULTS = dict(lose=[100, 200, 201, 202], repeat={300: 1, 320: 5}, swap=[400, 420],
              flip={500: [0], 520: [7, 8, 4000], 540: range(64, 96)})


def sizes(count, cycle=(1024,)):
    return [cycle[i % len(cycle)] for i in range(count)]


def capture(frames, *arguments, expect=0, file_options=None):
    """The capture's summary of a file's frames: nothing is lost on this port."""
    with processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "stream.pcap"), frames,
                                   **(file_options or {}))
        return processes.run_json(
            "capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s" % path, "--frames",
            str(len(frames)), "--seconds", "60", *arguments, expect=expect)


def check_bits(summary, frames, payload_offset, wrong):
    checked = sum(8 * (len(frame) - payload_offset) for frame in frames)
    assert (summary["bits"]["checked"], summary["bits"]["wrong"]) == (checked, wrong), (
        "bits %s, planted %d of %d" % (summary["bits"], wrong, checked))


# ---- with a counter ----

def with_counter(cycle, faults, *arguments, count=1000, expect=3, **sender_options):
    sender = custom_stream.Sender(**sender_options)
    frames = faults.apply(sender.frames(sizes(count, cycle)), sender.payload_offset)
    summary = capture(frames, *COUNTER, *arguments, expect=expect)
    processes.check_counts(summary, **faults.counts(count), filtered=0)
    check_bits(summary, frames, sender.payload_offset, faults.wrong_bits())
    return summary


def test_clean():
    summary = with_counter((1518,), custom_stream.Faults(), expect=0)
    assert not summary["damage"] and not summary["lock_lost"], summary


def test_longer_than_a_slot():
    """What does not fit a slot cannot be checked to its end: never valid, whatever its beginning."""
    for pattern in ("--pattern", "constant"), ():
        sender = custom_stream.Sender()
        frames = sender.frames([1024] * 4 + [5018] * 3 + [1024] * 4)
        if pattern:
            frames = [frame[:18] + bytes(len(frame) - 18) for frame in frames]
        summary = capture(frames, *COUNTER, *pattern, expect=3)
        processes.check_counts(summary, received=11, valid=8, damaged=3, lost=0, duplicate=0,
                               reordered=0)
        assert all(row["kind"] == "length" for row in summary["damage"]), summary["damage"]
        assert "--frame-size" in processes.messages(summary), summary["messages"]
        whole = capture(frames, *COUNTER, *pattern, "--frame-size", "64-5018", expect=0)
        processes.check_counts(whole, received=11, valid=11, damaged=0)


def test_cut_behind_the_header():
    """A frame of which no byte of payload came is damaged, whatever the pattern."""
    for pattern in ("prbs31", "--pattern-restart"), ("random",), ("counter8",), ("constant",):
        frames = [frame[:18] for frame in custom_stream.Sender().frames([1024] * 20)]
        summary = capture(frames, *COUNTER[:-1], *pattern, expect=3)
        processes.check_counts(summary, received=20, valid=0, damaged=20, lost=0)
        assert {row["kind"] for row in summary["damage"]} == {"length"}, summary["damage"]
    processes.check_counts(capture(frames, *COUNTER[:-1], "none"), received=20, valid=20, damaged=0, lost=0)


def test_planted_faults():
    summary = with_counter((1024,), custom_stream.Faults(**FAULTS))
    named = [(row["sequence"], row["wrong_bits"], row["offset"]) for row in summary["damage"]]
    assert named == [(500, 1, 18), (520, 3, 18), (540, 32, 26)], summary["damage"]


def test_planted_faults_in_mixed_sizes():
    """No position can be computed from the number: each frame's phase is in its own bits."""
    faults = dict(FAULTS, flip={500: [0], 525: [7, 8, 4000], 541: range(96, 128)})
    with_counter(SIZES, custom_stream.Faults(**faults))


def test_the_smallest_frames():
    with_counter((64,), custom_stream.Faults(**dict(FAULTS, flip={500: [300]})))


def test_sender_that_began_long_ago():
    """Both its counter and its PRBS are somewhere, and the counter goes past its end."""
    with_counter((1024,), custom_stream.Faults(**FAULTS), "--sequence-start", str(2**32 - 450),
                 start=2**32 - 450, skip_bytes=123457)


def test_little_endian_with_steps():
    summary = with_counter((1024,), custom_stream.Faults(**FAULTS), "--sequence-order", "little",
                           "--sequence-start", "1000", "--sequence-step", "7", start=1000, step=7,
                           counter="little")
    assert summary["frames"]["lost"] == 4, summary["frames"]


def test_streams():
    """Two devices, told apart by a byte after the counter."""
    sent = {}
    for number in (3, 200):
        sender = custom_stream.Sender(stream=number, skip_bytes=number * 1000)
        faults = custom_stream.Faults(lose=[number, number + 1], flip={50: [number]})
        sent[number] = faults.apply(sender.frames(sizes(400)), sender.payload_offset)
    frames = [frame for pair in zip(*sent.values()) for frame in pair]
    summary = capture(frames, "--format", "custom", "--custom-payload", "19", "--sequence-offset",
                      "14", "--sequence-bytes", "4", "--stream-offset", "18", "--stream-bytes", "1",
                      expect=3)
    processes.check_counts(summary, sent=800, received=796, valid=794, damaged=2, lost=4,
                           duplicate=0, reordered=0)
    by_number = {row["stream"]: row["frames"] for row in summary["streams"]}
    for number in sent:
        counts = by_number[number]
        assert (counts["sent"], counts["valid"], counts["damaged"], counts["lost"]) == (
            400, 397, 1, 2), summary["streams"]


def test_layout_in_yaml():
    sender = custom_stream.Sender()
    faults = custom_stream.Faults(lose=[7], flip={9: [5]})
    frames = faults.apply(sender.frames(sizes(50)), 18)
    with processes.folder() as directory:
        path = os.path.join(directory, "layout.yaml")
        with open(path, "w") as file:
            file.write("frame:\n  format: custom\ncustom:\n  payload: 18\n  sequence_offset: 14\n"
                       "  sequence_bytes: 4\npattern:\n  name: prbs31\n")
        summary = capture(frames, "--config", path, expect=3)
    processes.check_counts(summary, **faults.counts(50))


def test_pattern_in_each_frame():
    """restart: the same payload again and again, found by nothing but its beginning."""
    payload = custom_stream.prbs31(500)
    head = custom_stream.Sender().frames([64])[0][:14]
    frames = [head + i.to_bytes(4, "big") + payload for i in range(200)]
    frames[50] = frames[50][:20] + bytes([frames[50][20] ^ 0x81]) + frames[50][21:]
    summary = capture(frames, *COUNTER, "--pattern-restart", expect=3)
    processes.check_counts(summary, sent=200, valid=199, damaged=1, lost=0)
    assert summary["bits"]["wrong"] == 2, summary["bits"]


# ---- without ----

def without_counter(cycle, faults, count=1000, expect=3, **sender_options):
    sender = custom_stream.Sender(counter=None, **sender_options)
    frames = faults.apply(sender.frames(sizes(count, cycle)), sender.payload_offset)
    summary = capture(frames, *NO_COUNTER, expect=expect)
    check_bits(summary, frames, sender.payload_offset, faults.wrong_bits())
    e2e.check_identities(summary)
    return summary


def check_valid(summary, valid, damaged, received):
    frames = summary["frames"]
    assert (frames["valid"], frames["damaged"], frames["received"]) == (
        valid, damaged, received), processes.text_of(summary)


def test_unlocked_clean():
    """Locks on the first frames, wherever the sequence is, and never lets go."""
    for skip in (0, 1, 4321):
        summary = without_counter((1024,), custom_stream.Faults(), expect=0, skip_bytes=skip,
                                  count=300)
        check_valid(summary, 300, 0, 300)
        assert summary["lock_lost"] == 0, summary["lock_lost"]


def test_unlocked_mixed_sizes():
    summary = without_counter(SIZES, custom_stream.Faults(), expect=0)
    check_valid(summary, 1000, 0, 1000)
    assert summary["lock_lost"] == 0, summary["lock_lost"]


def test_unlocked_wrong_bits():
    faults = custom_stream.Faults(flip={1: [3], 2: [0], 100: [0, 31, 32, 8000], 500: range(64, 96),
                                         501: [7], 999: [4000]})
    summary = without_counter((1024,), faults)
    check_valid(summary, 994, 6, 1000)
    assert summary["lock_lost"] == 0, "wrong bits are no loss of lock: %s" % summary["lock_lost"]
    assert [row["wrong_bits"] for row in summary["damage"]] == [1, 1, 4, 32, 1, 1], (
        summary["damage"])


def test_unlocked_first_frame_wrong():
    """The very first bits it sees are wrong: locked by the second frame all the same."""
    faults = custom_stream.Faults(flip={0: [0, 40, 5000]})
    summary = without_counter((1024,), faults, count=100)
    check_valid(summary, 99, 1, 100)


def test_unlocked_loss():
    """Each gap is one loss of lock; equal frames tell how many are missing."""
    faults = custom_stream.Faults(lose=[100, 200, 201, 202, *range(500, 540)])
    summary = without_counter((1024,), faults)
    check_valid(summary, 956, 0, 956)
    assert summary["lock_lost"] == 3, summary["lock_lost"]
    assert summary["frames"]["lost"] == 44, summary["frames"]


def test_unlocked_repeats_and_swaps():
    faults = custom_stream.Faults(repeat={300: 1, 320: 5}, swap=[400, 420])
    summary = without_counter((1024,), faults)
    assert summary["lock_lost"] >= 1, summary["lock_lost"]
    frames = summary["frames"]
    assert (frames["valid"], frames["damaged"], frames["duplicate"], frames["reordered"],
            frames["lost"]) == (1000, 0, 2, 2, 0), processes.text_of(summary)


def test_unlocked_sender_starts_anew():
    """The device is switched off and on: another place in the sequence, and locked at once."""
    first = custom_stream.Sender(counter=None, skip_bytes=500000)
    frames = first.frames(sizes(200))
    frames += custom_stream.Sender(counter=None).frames(sizes(200))
    summary = capture(frames, *NO_COUNTER, expect=None)
    assert summary["frames"]["valid"] == 400, processes.text_of(summary)
    assert summary["frames"]["damaged"] == 0, summary["frames"]
    assert summary["lock_lost"] == 1, summary["lock_lost"]
    assert summary["bits"]["wrong"] == 0, summary["bits"]


def test_unlocked_garbage():
    """A frame in which no phase can be found is one damaged frame and spoils no other."""
    faults = custom_stream.Faults(garble=[50, 150])
    sender = custom_stream.Sender(counter=None)
    frames = faults.apply(sender.frames(sizes(300)), sender.payload_offset)
    summary = capture(frames, *NO_COUNTER, expect=3)
    processes.check_counts(summary, received=300, valid=298, damaged=2, lost=0, duplicate=0)
    assert summary["bits"]["wrong"] == 0, "no bit of a frame without phase is compared"


def test_another_pattern_is_no_prbs31():
    """Payloads of zeros, of ones and of PRBS-31 that is not inverted: nothing of it is valid."""
    sender = custom_stream.Sender(counter=None)
    inverted = [frame[:14] + bytes(byte ^ 0xFF for byte in frame[14:])
                for frame in sender.frames(sizes(20))]
    head = inverted[0][:14]
    for frames in (inverted, [head + bytes(1000)] * 20, [head + b"\xff" * 1000] * 20):
        summary = capture(frames, *NO_COUNTER, expect=3)
        assert summary["frames"]["valid"] == 0, processes.text_of(summary)
        assert summary["frames"]["damaged"] == 20, processes.text_of(summary)
    summary = capture(inverted, *NO_COUNTER, "--pattern-invert", "no")
    assert summary["frames"]["valid"] == 20, processes.text_of(summary)


# ---- sent by another tool ----

def test_tcpreplay_over_veth():
    """Another tool sends it over the kernel: every frame that came is right, the rest is lost."""
    processes.tool("tcpreplay")
    count = 3000
    sender = custom_stream.Sender()
    faults = custom_stream.Faults(lose=[1000, 1001], repeat={1500: 3}, swap=[2000],
                                   flip={2500: [9, 99]})
    planted = faults.counts(count)
    with e2e.VethPair() as pair, processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "stream.pcap"),
                                   faults.apply(sender.frames(sizes(count)), 18))
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s,framecnt=4096" %
                               pair.right, *COUNTER) as receiver:
            receiver.wait_until_running()
            subprocess.run(["tcpreplay", "-q", "--pps=5000", "-i", pair.left, path], check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=e2e.TIMEOUT)
            dropped = pair.dropped()
            receiver.wait_for_all(planted["received"] - dropped)
            receiver.signal(signal.SIGINT)
            summary = receiver.finish(expect=3)
    e2e.check_identities(summary)
    counts = summary["frames"]
    kernel = summary["lost_by"]["nic_missed"] + dropped
    assert counts["received"] == planted["received"] - kernel, (counts, kernel)
    if kernel == 0:
        assert counts["sent"] == count, counts
        processes.check_counts(summary, **planted)
        assert summary["bits"]["wrong"] == 2, summary["bits"]
    else:
        print("the kernel dropped %d frames" % kernel)
    assert summary["ended_by_sender"] is False, summary
