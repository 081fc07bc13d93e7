# SPDX-License-Identifier: BSD-3-Clause
"""Faults planted in the ports, the memory and the consumer of the real program.

The program is linked from gdrcap's own objects and tests/faults/*.c; the variable GDRCAP_FAULTS, which only that one
reads, names the faults (tests/faults/knobs.h).
"""
import json
import os
import re
import struct

import pytest

import e2e
import frames

pytestmark = pytest.mark.sanitized

PROGRAM = os.environ["GDRCAP_FAULTY"]
SIZES = range(64, 1519)
PAYLOAD = frames.ETHERNET_BYTES + frames.HEADER_BYTES
FCS = 4
# `make check-long` runs 200,000 frames a fault and a million with all together.
SOME = max(20000, min(200000, e2e.FRAMES // 50))
MANY = max(50000, min(1000000, e2e.FRAMES // 10))
STAGES = ["ports up", "memory ready and poisoned", "frame sent", "steered", "completed",
          "bytes changed", "bytes right", "consumer saw it"]
COUNTS = "valid damaged lost duplicate reordered".split()


# What is said of frames that came in two segments.
CUT = ("only the beginning came",)


def environment(faults):
    return dict(os.environ, GDRCAP_FAULTS=faults)


def loopback(faults, *arguments, count=SOME, expect=3, messages=()):
    """A run that counts everything and leaks no slot: that would be a message."""
    # A loaded machine may hold up the consumer for seconds; who tests the watchdog says so.
    summary = e2e.run_json("loopback", "--gpu", "host", "--quiet", "--frames", str(count),
                           "--frame-size", "64-1518", "--watchdog", "60", *arguments,
                           expect=expect, env=environment(faults))
    context = "%s %s" % (faults, json.dumps(summary, indent=1)[:4000])
    e2e.check_identities(summary, faults)
    assert summary["frames"]["sent"] == count, context
    assert [stage["state"] for stage in summary["stages"]] == ["passed"] * 8, context
    assert bool(messages) == bool(summary["messages"]), context
    for i, message in enumerate(summary["messages"]):
        # Again and again where the machine itself stalls.
        assert messages[i % len(messages)] in message, context
    assert len(summary["messages"]) >= len(messages), context
    return summary


def check(summary, filtered=0, wrong=0, missed=0, **counts):
    """Exactly these faults and no other."""
    total = summary["frames"]
    sent = total["sent"]
    wanted = dict.fromkeys(COUNTS, 0)
    wanted.update(counts)
    wanted["valid"] = sent - wanted["damaged"] - wanted["lost"]
    found = {key: total[key] for key in COUNTS}
    assert found == wanted, "counted %s, planted %s: %s" % (found, wanted, summary)
    received = wanted["valid"] + wanted["damaged"] + wanted["duplicate"] + filtered
    assert total["received"] == received, (total, received)
    assert summary["filtered"] == filtered, (summary["filtered"], filtered)
    assert summary["bits"]["wrong"] == wrong, summary["bits"]
    lost_by = dict(summary["lost_by"])
    # A wire in software counts none of what a card does.
    assert set(lost_by.pop("causes").values()) == {None}, summary["lost_by"]
    assert lost_by == {"nic_missed": missed, "in_run": missed, "nic_error": 0,
                       "unexplained": wanted["lost"] - missed}, summary["lost_by"]
    reasons = {"damaged": "damaged", "lost": "lost", "duplicate": "duplicated",
               "reordered": "reordered"}
    errors = [re.sub(r"^[\d,]+ frames? ", "", error) for error in summary["errors"]]
    assert errors == [word for key, word in reasons.items() if wanted[key]], summary["errors"]


def runs(*faults):
    """Lists of faults, one for each run: all of these in one, which keeps them apart by their number or their frames. In
    `make check-long` also each alone."""
    return [faults, *([fault] for fault in faults)] if e2e.LONG else [faults]


def length_of(number):
    """Bytes in memory of a stream's frame, where one stream has all sizes in turn."""
    return SIZES[number % len(SIZES)] - FCS


def payload_byte(number, offset):
    """What the only stream's frame `number` holds at `offset`, by an independent PRBS-31."""
    start = sum(length_of(i) - PAYLOAD for i in range(number))
    return frames.prbs31(start + offset - PAYLOAD + 1)[-1]


# ---- the program ----

def test_without_faults():
    """What is put in between changes nothing."""
    summary = loopback("", expect=0)
    e2e.check_perfect(summary, SOME)
    check(summary)


def test_faults_are_read_strictly():
    for faults in ("nonsense", "drop", "drop=", "drop=x", "drop=1:", "drop=1:2:3", "drop=-1",
                   "drop=1,", ",drop=1", "flip=1", "babble=1", "babble@1", "drop=1@70000",
                   "drop=1@x", "custom-every=0", "drop=99999999999999999999", " drop=1"):
        e2e.run("loopback", "--frames", "1", expect=70, env=environment(faults))


# ---- frames of the sustained run ----

def test_drop():
    for faults in runs(*("drop=%d" % number for number in (0, 5, 63, 64, 16383, 16384))):
        check(loopback(",".join(faults)), lost=len(faults))
    check(loopback("drop=7:1000"), lost=1000)
    check(loopback("drop=0:%d" % (SOME - 1)), lost=SOME - 1)


def test_drop_at_the_end():
    """Nothing follows that would show the gap: the sender's own count does."""
    check(loopback("drop=%d:100" % (SOME - 100)), lost=100)


def test_drop_that_the_card_counts():
    for counted in e2e.some((1, 60, 100), 1):
        check(loopback("drop=5:100,counted=%d" % counted), lost=100, missed=counted)


def test_duplicate():
    for faults in runs(*("dup=%d" % number for number in (0, 9, 63, 16383, SOME - 2))):
        check(loopback(",".join(faults)), duplicate=len(faults))
    check(loopback("dup=%d:5000" % (SOME // 2)), duplicate=5000)


def test_swap():
    """Also with the first of the next burst."""
    for faults in runs(*("late=%d:1" % number for number in (0, 20, 62, 64, 127, 16383))):
        check(loopback(",".join(faults)), reordered=len(faults))


def test_late():
    check(loopback("late=20:10000"), reordered=1)
    check(loopback("late=20:10,late=21:10,late=25:3"), reordered=3)


@pytest.mark.long
def test_late_beyond_the_window():
    """2^20 frames on, nobody remembers that it is missing: lost, and a second copy of nothing. (test_sequence.c has it
    without the program.)"""
    if e2e.FRAMES < 1200000:
        raise e2e.Skip("needs 1,200,000 frames")
    check(loopback("late=5:1040000", count=1200000), reordered=1)
    check(loopback("late=5:1050000", count=1200000), lost=1, duplicate=1)


def test_one_wrong_bit():
    """At the payload's ends and within it: the frame, the byte and what it should be."""
    places = {"flip=%d:%d" % (number, 8 * offset + bit): (number, offset, bit) for number, offset, bit in (
        (0, PAYLOAD, 0), (7, 65, 3), (64, PAYLOAD + 64, 1), (130, length_of(130) - 1, 7), (131, PAYLOAD + 1, 4),
        (len(SIZES), 59, 7))}
    for faults in runs(*places):
        summary = loopback(",".join(faults))
        check(summary, damaged=len(faults), wrong=len(faults))
        rows = []
        for number, offset, bit in map(places.get, faults):
            expected, mask = payload_byte(number, offset), 0x80 >> bit
            rows.append({"kind": "payload", "sequence": number, "stream": 0, "queue": 0, "wrong_bits": 1,
                         "offset": offset, "expected": expected, "got": expected ^ mask})
        assert summary["damage"] == rows, summary["damage"]


def test_every_bit_of_a_frame():
    """No bit of the smallest frame can change unseen but in its MAC addresses. In `make check` each fifth, in 16 frames of
    a run, as many as it names."""
    addresses, ethertype = 8 * 12, 8 * frames.ETHERNET_BYTES
    bits = range(0, 8 * length_of(0), 1 if e2e.LONG else 5)
    for first in range(0, len(bits), 16):
        changed = {100 + 3 * i: bit for i, bit in enumerate(bits[first:first + 16])}
        summary = loopback(",".join("flip=%d:%d" % each for each in changed.items()), "--frame-size", "64", count=2000,
                           expect=0 if max(changed.values()) < addresses else 3)
        kinds = ["payload" if bit >= 8 * PAYLOAD else "header" for bit in changed.values() if bit >= ethertype]
        strangers = sum(addresses <= bit < ethertype for bit in changed.values())
        check(summary, damaged=len(kinds), wrong=kinds.count("payload"), filtered=strangers, lost=strangers)
        assert [row["kind"] for row in summary["damage"]] == kinds, summary["damage"]
        numbers = [number for number, bit in changed.items() if bit >= 8 * PAYLOAD]
        assert [row["sequence"] for row in summary["damage"] if row["kind"] == "payload"] == numbers, summary["damage"]


def test_several_wrong_bits_of_one_frame():
    summary = loopback("flip=300:2000,flip=300:2001,flip=300:2400,flip=300:1000")
    check(summary, damaged=1, wrong=4)
    damage = summary["damage"][0]
    assert (damage["sequence"], damage["offset"], damage["wrong_bits"]) == (300, 125, 4), damage


def test_many_damaged_frames():
    """All are counted, the first 16 are named."""
    numbers = [40 + 101 * i for i in range(30)]
    summary = loopback(",".join("flip=%d:%d" % (number, 8 * 60) for number in numbers))
    check(summary, damaged=30, wrong=30)
    assert [damage["sequence"] for damage in summary["damage"]] == numbers[:16], summary["damage"]


def test_unreadable_header():
    """It has no number, and fills the one gap that is left in the total."""
    magic, version, sequence, crc = 0, 2, 8, 32
    for faults in runs(*("flip=%d:%d" % (77 + field, 8 * (frames.ETHERNET_BYTES + field) + 5)
                         for field in (magic, version, sequence, crc))):
        summary = loopback(",".join(faults))
        check(summary, damaged=len(faults))
        stream = summary["streams"][0]["frames"]
        assert (stream["lost"], stream["damaged"]) == (len(faults), 0), stream
        damage = summary["damage"]
        assert [row["kind"] for row in damage] == ["header"] * len(faults), damage
        assert all(row["sequence"] is None and row["wrong_bits"] is None for row in damage), damage


def test_short_frames():
    """Less than the payload that the header claims, than a header, than an EtherType."""
    known = {"cut=500:%d" % (length_of(500) - 1): 500, "cut=600:%d" % PAYLOAD: 600, "cut=700:%d" % (PAYLOAD - 1): None,
             "cut=800:%d" % frames.ETHERNET_BYTES: None}
    for faults in runs(*known):
        summary = loopback(",".join(faults))
        check(summary, damaged=len(faults))
        assert [(row["kind"], row["sequence"]) for row in summary["damage"]] == [
            ("length", known[fault]) for fault in faults], summary["damage"]
    for faults in runs("cut=500:%d" % (frames.ETHERNET_BYTES - 1), "cut=600:1", "cut=700:0"):
        check(loopback(",".join(faults)), filtered=len(faults), lost=len(faults))


def test_chained_frame():
    """A frame in two segments is its first one; the second goes back to the pool."""
    places = {"split=%d:58" % number: number for number in (9, 63, 16383)}
    for faults in runs(*places):
        summary = loopback(",".join(faults), messages=CUT)
        check(summary, damaged=len(faults))
        assert [(row["kind"], row["sequence"]) for row in summary["damage"]] == [
            ("length", places[fault]) for fault in faults], summary["damage"]
    # What did not fit is not known, though the payload did.
    check(loopback("grow=9:60", messages=CUT), damaged=1)
    check(loopback(",".join("split=%d:56" % number for number in range(5, 35)), messages=CUT),
          damaged=30)


def test_custom_frames():
    """Counted, and nothing else: the run passes."""
    check(loopback("custom=0:1,custom=64:5000", expect=0), filtered=5001)
    check(loopback("custom-every=3", expect=0), filtered=SOME // 3)
    check(loopback("custom-every=1,drop=%d" % (SOME // 2)), filtered=SOME, lost=1)


def test_custom_frames_do_not_end_the_run():
    """More frames have come than were sent, and the sender's last ones are still under way."""
    count = 20000
    for before in ("custom=100:5000", "dup=100:5000", "garble=100:5000"):
        # `hold` counts polls, and a receiver that sleeps makes 100 a second.
        summary = loopback("%s,hold=%d:10000" % (before, count - 1000), "--quiet-time", "20",
                           "--idle-sleep", "0", count=count, expect=0 if "custom" in before else 3)
        check(summary, **{"filtered" if "custom" in before else "duplicate": 5000})


def test_endless_custom_traffic():
    """A port that is never silent: the run ends all the same, also when a frame is missing."""
    for faults, lost in e2e.some((("babble", 0), ("babble,drop=5", 1), ("babble,drop=%d" % (SOME - 1), 1)), 0, 2):
        summary = loopback(faults, expect=3 if lost else 0)
        check(summary, filtered=summary["filtered"], lost=lost)


def test_noise():
    """Random bytes under our own EtherType: with no gap to fill they are copies of something."""
    check(loopback("garble=100:50"), duplicate=50)
    check(loopback("garble=100:50,drop=5:20"), damaged=20, duplicate=30)
    check(loopback("garble=100:50,drop=5:60"), damaged=50, lost=10)


def test_unsteady_ports():
    """Polls that bring few frames or none, a sender that takes few or none: nothing is lost."""
    for faults in ("trickle", "partial") if e2e.LONG else ():
        check(loopback(faults, expect=0))
    summary = loopback("trickle,partial,custom-every=7", "--burst", "256", expect=0)
    check(summary, filtered=SOME // 7)
    check(loopback("trickle,partial", "--burst", "7", "--pool", "8M",
                   expect=0))


FIXED = "drop=5,dup=9:3,late=20:1,flip=37:700,flip=64:117,cut=100:90,split=200:99,custom=300:10"


def test_everything_at_once():
    summary = loopback(FIXED + ",custom-every=1000,trickle,partial", count=MANY, messages=CUT)
    check(summary, damaged=4, lost=1, duplicate=3, reordered=1, filtered=MANY // 1000 + 10, wrong=1)
    assert [(row["kind"], row["sequence"]) for row in summary["damage"]] == [
        ("payload", 37), ("header", None), ("length", 100), ("length", 200)], summary["damage"]
    assert summary["damage"][0]["offset"] == 700 // 8


def test_streams():
    """Bursts of 64 frames take turns: frame 200 is stream 0's 72nd, 5 its 5th."""
    summary = loopback("drop=70:2,dup=130,flip=200:800,late=300:10", "--streams", "3")
    check(summary, lost=2, duplicate=1, damaged=1, reordered=1, wrong=1)
    by_id = {stream["stream"]: stream["frames"] for stream in summary["streams"]}
    found = [[by_id[i][key] for key in ("damaged", "lost", "duplicate", "reordered")]
             for i in range(3)]
    assert found == [[1, 0, 0, 0], [0, 2, 0, 1], [0, 0, 1, 0]], found
    row = summary["damage"][0]
    assert (row["stream"], row["sequence"], row["offset"]) == (0, 72, 100), row


def test_queues():
    """Each fault is that queue's, and that queue's stream's."""
    faults = "drop=5@0,dup=6:4@1,late=7:2@2,flip=8:500@3,custom=9:6@3,cut=10:55@1"
    summary = loopback(faults, "--queues", "4")
    check(summary, lost=1, duplicate=4, reordered=1, damaged=2, filtered=6, wrong=1)
    found = [[queue[key] for key in ("damaged", "duplicate", "reordered", "filtered")]
             for queue in summary["queues"]]
    assert found == [[0, 0, 0, 0], [1, 4, 0, 0], [0, 0, 1, 0], [1, 0, 0, 6]], found
    lost = {stream["stream"]: stream["frames"]["lost"] for stream in summary["streams"]}
    assert lost == {0: 1, 1: 0, 2: 0, 3: 0}, lost
    named = sorted((row["queue"], row["stream"], row["sequence"]) for row in summary["damage"])
    assert named == [(1, 1, 10), (3, 3, 8)], named


def test_blocks():
    """Several workers a queue: bursts are accounted for in their order."""
    for blocks in e2e.some(("2", "3"), 1):
        check(loopback(FIXED, "--blocks", blocks, messages=CUT), damaged=4, lost=1, duplicate=3, reordered=1,
              filtered=10, wrong=1)


def test_capture():
    """The receiver alone, which knows of a sender only what the sequence numbers tell."""
    source = frames.Stream(4, frames.prbs31(200 * 300))
    sent = [source.frame(300) for _ in range(200)]
    with e2e.Folder() as directory:
        path = os.path.join(directory, "frames.pcap")
        frames.write_pcap(path, sent)
        summary = e2e.run_json("capture", "--gpu", "host", "--quiet", "--port",
                               "net_pcap0,rx_pcap=%s" % path, "--frames", "208", expect=3,
                               env=environment("drop=5:2,dup=9:3,late=20:1,flip=37:1131,"
                                               "custom=50:7"))
    check(summary, lost=2, duplicate=3, reordered=1, damaged=1, filtered=7, wrong=1)
    assert summary["frames"]["sent"] == 200


# ---- the consumer and the device ----

def test_consumer_stalls():
    """Reported, waited for, reported again; the wire holds the sender back and loses nothing."""
    reports = ("no progress", "moves again")
    for more in e2e.some(([], ["--pool", "8M"], ["--queues", "3"], ["--blocks", "2"]), 1, 2):
        summary = loopback("stall=20", "--watchdog", "0.5", *more, expect=0, messages=reports)
        e2e.check_perfect(summary, SOME)
    summary = loopback("stall=20,drop=3,dup=%d" % (SOME - 2), "--watchdog", "0.5",
                       messages=reports)
    check(summary, lost=1, duplicate=1)


def test_pcap_waits_for_the_consumer():
    """The driver reads a frame of the file before it has a slot for it, and loses it without one."""
    count = 6000  # more than 1 MiB has slots
    stream = frames.Stream(0, frames.prbs31(10 * count))
    with e2e.Folder() as directory:
        path = os.path.join(directory, "frames.pcap")
        frames.write_pcap(path, [stream.frame(64) for _ in range(count)])
        summary = e2e.run_json("capture", "--gpu", "host", "--quiet", "--port",
                               "net_pcap0,rx_pcap=%s" % path, "--frames", str(count), "--seconds",
                               "60", "--frame-size", "64", "--pool", "1M", "--descriptors", "64",
                               "--burst", "4", "--watchdog", "0.5", expect=None,
                               env=environment("stall=20"))
    assert summary["result"] == "pass" and summary["frames"]["valid"] == count, summary
    assert "no progress" in summary["messages"][0], summary["messages"]


# ---- threads that come late ----

def test_receiver_held_back():
    """Much longer than the quiet time, with frames in its queue: they are not lost."""
    for faults, more in e2e.some((("nap=1000:1500", ["--guard"]), ("nap=0:1500", []),
                                  ("nap=700:1500@1", ["--queues", "2"])), 2):
        e2e.check_perfect(loopback(faults, *more, count=3000, expect=0), 3000)
    # What is really missing is: the frames after it are looked at all the same.
    check(loopback("nap=1000:1500,drop=2900:100", count=3000), lost=100)


def test_receiver_held_back_while_the_run_is_stopped():
    """Frames that were sent before Ctrl-C are taken off the wire, however late."""
    arguments = ["loopback", "--gpu", "host", "--json", "--rate", "1kpps", "--watchdog", "60"]
    process = e2e.start(*arguments, env=environment("nap=100:%d" % (4000 if e2e.LONG else 1500)))
    e2e.interrupt_when_running(process, r"Mpps")
    result = e2e.finish(process, arguments)
    assert result.status == 0 and result.summary["result"] == "pass", result
    found = result.summary["frames"]
    assert found["sent"] == found["valid"] > 0, result


def test_receiver_held_back_is_not_idle():
    """The file goes on: that nobody looked was no silence."""
    stream = frames.Stream(0, frames.prbs31(10 * 1000))
    with e2e.Folder() as directory:
        path = os.path.join(directory, "frames.pcap")
        frames.write_pcap(path, [stream.frame(64) for _ in range(1000)])
        summary = e2e.run_json("capture", "--gpu", "host", "--quiet", "--port",
                               "net_pcap0,rx_pcap=%s" % path, "--idle", "0.2", "--watchdog", "60",
                               expect=0, env=environment("nap=300:1500"))
    assert summary["frames"]["valid"] == 1000, summary


def test_receiver_hangs_in_its_driver():
    """It ends as a failure that says so, not as loss without a word; what it uses stays."""
    for faults, more in e2e.some((("hang=1000", []), ("hang=0:1000@1", ["--queues", "2"])), 1):
        result = e2e.run("loopback", "--gpu", "host", "--json", "--quiet", "--frames", "3000",
                         "--watchdog", "60", *more, expect=3, env=environment(faults))
        summary = result.summary
        e2e.check_identities(summary, result)
        frames = summary["frames"]
        # Before the rest was sent the run may be over.
        assert summary["result"] == "fail" and (frames["lost"] > 0 or frames["sent"] < 3000), result
        assert "has not come back from a call" in summary["errors"][0], result
        assert "queue %d" % ("@1" in faults) in summary["errors"][0], result
        assert "stay allocated" in result.err, result


def test_workers_that_leave_late():
    """All frames were checked before: told, and the verdict stands."""
    summary = loopback("leaves-late", expect=0, messages=("does not leave",))
    assert len(summary["messages"]) == 2, summary
    e2e.check_perfect(summary, SOME)
    check(loopback("leaves-late,drop=5", messages=("does not leave",)), lost=1)


def test_saver_that_leaves_late():
    with e2e.Folder() as directory:
        path = os.path.join(directory, "saved.pcapng")
        summary = loopback("saved-late=1500", "--save", path, count=3000, expect=0)
    e2e.check_perfect(summary, 3000)
    assert summary["saved"]["frames"] == 3000, summary["saved"]


def abandoned(faults, wait_for, *arguments):
    """Interrupted once standard error shows `wait_for`."""
    arguments = ["loopback", "--gpu", "host", "--json", "--seconds", "3600", "--watchdog", "0.1",
                 *arguments]
    process = e2e.start(*arguments, env=environment(faults))
    e2e.interrupt_when_running(process, wait_for)
    result = e2e.finish(process, arguments)
    assert result.status in (1, 3), result
    e2e.check_summary(result.summary, result)
    e2e.check_identities(result.summary, result)
    assert result.summary["result"] == "fail", result
    return result


def test_consumer_never_comes_back():
    for more in e2e.some(([], ["--queues", "2"], ["--blocks", "2"], ["--stale-check", "100"]), 1, 3):
        result = abandoned("abandon=20", r"no progress", *more)
        errors = " ".join(result.summary["errors"])
        assert re.search(r"did not leave|consumer is dead", errors), errors
        assert any("the consumer is dead" in line for line in result.summary["messages"]), result


def test_consumer_never_comes_back_and_the_sender_is_through():
    """All that was sent fits in memory, so the run is over: it ends without Ctrl-C."""
    result = e2e.run("loopback", "--gpu", "host", "--json", "--quiet", "--frames", "1000",
                     "--watchdog", "0.1", expect=3, env=environment("abandon=0"))
    summary = result.summary
    e2e.check_identities(summary, result)
    found = [summary["frames"][key] for key in ("sent", "valid", "lost")]
    assert found == [1000, 0, 1000], result
    assert any("the consumer is dead" in line for line in summary["messages"]), result


def test_workers_that_come_back_too_late():
    """The session is destroyed, and then they go on: what they use must still be there."""
    for faults, wait_for in (("abandon=20", r"no progress"), ("abandon-writer=5", r"Mpps")):
        result = abandoned(faults + ",comes-back", wait_for)
        assert "came back and left" in result.err, result
        assert "stay allocated" in result.err, result


def test_writer_never_comes_back():
    result = abandoned("abandon-writer=5", r"Mpps")
    assert any("frame writer did not end well" in line
               for line in result.summary["messages"]), result
    frames_seen = result.summary["frames"]
    assert frames_seen["sent"] == frames_seen["valid"], result


def test_device_fails():
    """Its own words, and the run ends."""
    for faults, more, words in (("dies=20", [], "this device was made to fail"),
                                ("flush-fails", ["--flush", "host"], "refused to flush")):
        result = e2e.run("loopback", "--gpu", "host", "--json", "--quiet", "--seconds", "3600",
                         *more, expect=None, env=environment(faults))
        summary = result.summary
        assert result.status in (1, 3) and summary["result"] == "fail", result
        e2e.check_identities(summary, result)
        assert any(words in message for message in summary["messages"]), result
        assert any(words in error for error in summary["errors"]) or result.status == 3, result


# ---- the staged first frame ----

def stage_failure(faults, stage, detail, *arguments):
    """That stage fails after all before it have passed, its causes are printed, nothing runs."""
    words = ["loopback", "--gpu", "host", "--json", "--frames", "1000", *arguments]
    result = e2e.run(*words, expect=3, env=environment(faults))
    summary = result.summary
    e2e.check_summary(summary, result)
    assert summary["result"] == "fail" and summary["frames"] is None, result
    number = STAGES.index(stage)
    assert [row["name"] for row in summary["stages"]] == STAGES[:number + 1], result
    assert [row["state"] for row in summary["stages"]] == ["passed"] * number + ["failed"], result
    last = summary["stages"][-1]
    assert re.fullmatch(detail, last["detail"]), "%s: %s" % (faults, last)
    assert summary["errors"] == ['step "%s" failed: %s' % (stage, last["detail"])], result
    assert len(last["causes"]) >= 2, last
    for i, cause in enumerate(last["causes"]):
        assert "%d. %s\n" % (i + 1, cause) in result.err, "not printed: %s: %s" % (cause, result)
    assert all(not row["causes"] for row in summary["stages"][:-1]), result
    return result


def test_stage_ports_up():
    stage_failure("link-down", "ports up", r"ring:wire is down after \d+ s")


def test_stage_memory():
    stage = "memory ready and poisoned"
    stage_failure("memory-forgets", stage,
                  r"byte \d+ is 0x00 after the memory was filled with 0x55")
    stage_failure("fill-fails=1", stage, r"cannot be written: this memory was made to fail.*")
    stage_failure("copy-out-fails=0", stage, r"cannot be read: this memory was made to fail.*")


def test_memory_that_cannot_be_poisoned_at_all():
    summary = e2e.run_json("loopback", "--gpu", "host", "--quiet", "--frames", "1", expect=1,
                           env=environment("fill-fails=0"))
    assert "cannot be poisoned: this memory was made to fail" in summary["errors"][0], summary


def test_stage_sent():
    stage_failure("proof-refused", "frame sent", r"ring:wire took no frame within \d+ ms")
    stage_failure("copy-in-fails=0", "frame sent",
                  r"the frame cannot be written to memory: this memory was made to fail.*")


def test_stage_steered():
    nothing = r"no frame of 74 bytes came to ring:wire within \d+ ms"
    stage_failure("proof-lost", "steered", nothing)
    # Another length is another frame: there may be other traffic on the port.
    stage_failure("proof-cut=73", "steered", nothing)
    stage_failure("proof-cut=0", "steered", nothing)
    stage_failure("proof-queue", "steered", r"the frame came out of queue 1, not 0", "--queues",
                  "2")


def test_stage_completed():
    stage_failure("proof-missed", "completed",
                  r"ring:wire dropped it: 1 more missed, 0 more with errors")
    stage_failure("proof-error", "completed",
                  r"ring:wire dropped it: 0 more missed, 1 more with errors")
    stage_failure("proof-split=40", "completed", r"it has 74 bytes in 2 segments, not 74 in one")
    stage_failure("proof-flagged", "completed", r"the port flagged it as damaged")
    stage_failure("proof-cut=73,proof-flagged", "completed",
                  r"it has 73 bytes in 1 segments, not 74 in one")
    stage_failure("proof-outside", "completed", r"its address is outside the region")


def test_stage_changed():
    """The published proof of concept's failure: a completion, and memory that did not change."""
    stage_failure("proof-stale=0", "bytes changed",
                  r"a completion came, but 74 of 74 bytes still hold 0x55")
    stage_failure("proof-stale=30", "bytes changed",
                  r"a completion came, but 44 of 74 bytes still hold 0x55")
    stage_failure("copy-out-fails=3", "bytes changed",
                  r"the memory cannot be read: this memory was made to fail.*")


def test_stage_right():
    """Any one bit of the 74 bytes."""
    stage_failure("proof-stale=60", "bytes right", r"byte 60 is 0x55, not 0x12")
    stage_failure("proof-stale=73", "bytes right", r"byte 73 is 0x55, not 0x1f")
    for bit in e2e.some([*range(0, 8 * 74, 41), 8 * 74 - 1], 0, 4, 9, -1):
        stage_failure("proof-flip=%d" % bit, "bytes right",
                      r"byte %d is 0x[0-9a-f]{2}, not 0x[0-9a-f]{2}" % (bit // 8))


def test_stage_consumer():
    stage = "consumer saw it"
    stage_failure("consumer-refuses", stage,
                  r"it does not start: this consumer was made not to start.*")
    stage_failure("consumer-mute", stage, r"it gave no result within \d+ ms")
    stage_failure("consumer-dies", stage, r"it died: this device was made to fail.*")
    stage_failure("consumer-stale=0", stage, r"it did not recognise the frame.*")
    stage_failure("consumer-stale=42", stage,
                  r"it found \d+ wrong bits, the first in byte 42: 0x55, not 0x00")
    stage_failure("consumer-stale=73", stage,
                  r"it found 3 wrong bits, the first in byte 73: 0x55, not 0x1f")
    stage_failure("consumer-stays", stage, r"it does not leave: this consumer was made to stay.*")
    with e2e.Folder() as directory:
        path = os.path.join(directory, "saved.pcapng")
        result = stage_failure("consumer-abandons,comes-back", stage,
                               r"it gave no result within \d+ ms", "--save", path)
        assert "came back and left" in result.err, result
        # The session could not be undone; its file was closed all the same. The last block is a
        # queue's statistics.
        with open(path, "rb") as saved:
            data = saved.read()
        length = struct.unpack("<I", data[-4:])[0]
        assert struct.unpack("<II", data[-length:-length + 8]) == (5, length), data[-200:]
