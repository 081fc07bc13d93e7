# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong in a card and on its cable: each fault of the software ConnectX, planted a
known number of times, is exactly that count, cause or message in the summary.  Events are counted
from 1, and the staged first frame is one of them: event N is frame N - 2."""
import json
import os
import re
import signal

import pytest

import connectx
import e2e
import processes

SOME = processes.scaled(100000, 20000)
FEW = 20000
HALF = FEW // 2  # of which the first half has come before a fault of the queue
both_modes = connectx.modes("devx", "verbs flow scalar")
# So slow that no frame comes while a receiver gathers (0.5 ms): it sleeps between any two.
SLEEPING = ("--idle-sleep", "10000", "--rate", "1kpps")


def loopback(faults, *arguments, count=FEW, expect=3, **options):
    return connectx.loopback("--frame-size", "64-1518", *arguments, count=count, expect=expect,
                             faults=connectx.LOSSLESS + "," + faults, **options)


# ---- on the cable ----

@both_modes
def test_drop(mode):
    loopback("0.drop=100/100/10", mode=mode).check(lost=10)


def test_drop_first_or_last():
    loopback("0.drop=2").check(lost=1)
    # The last ones: nothing follows that would show the gap.
    loopback("0.drop=%d/1/5" % (FEW + 1 - 4)).check(lost=5)


@both_modes
def test_corrupt(mode):
    """One bit on the wire: the frame, the byte and what it should be."""
    done = loopback("0.corrupt=1000/1000/7,0.corrupt_at=58", mode=mode)
    done.check(damaged=7, wrong=7)
    rows = done.summary["damage"]
    assert [row["sequence"] for row in rows] == [998 + 1000 * i for i in range(7)], rows
    for row in rows:
        assert (row["kind"], row["offset"], row["wrong_bits"]) == ("payload", 58, 1), row
        assert row["got"] == row["expected"] ^ 0x10, row


def test_corrupt_header():
    done = loopback("0.corrupt=500,0.corrupt_at=30").check(damaged=1)
    assert [row["kind"] for row in done.summary["damage"]] == ["header"], done


@both_modes
def test_duplicate(mode):
    loopback("0.duplicate=50/50/40", mode=mode).check(duplicate=40)


@both_modes
def test_reorder(mode):
    loopback("0.reorder=50/50/40", mode=mode).check(reordered=40)


def test_all_on_the_cable():
    loopback("0.drop=1000/1000/5,0.corrupt=1501/1000/4,0.corrupt_at=56,0.duplicate=1703/1000/3,"
             "0.reorder=1907/1000/2").check(lost=5, damaged=4, wrong=4, duplicate=3, reordered=2)


# ---- in the receiving card ----

@both_modes
def test_lost_in_the_card(mode):
    """Each cause by its name; what was lost in the queue is explained frame by frame."""
    for faults, causes in e2e.some((
            ("1.crc=10/100/4", {"wire_crc": 4}), ("1.discard=10/100/7", {"card_full": 7}), ("1.no_buffers=10/100/9", {"out_of_buffer": 9}),
            ("1.crc=10/100/4,1.discard=20/100/7,1.no_buffers=30/100/9", {"wire_crc": 4, "card_full": 7, "out_of_buffer": 9})), 3):
        loopback(faults, mode=mode).check(lost=sum(causes.values()), **causes)


@both_modes
def test_dma_flips_a_bit(mode):
    loopback("1.flip=100/100/6", "--frame-size", "200-1518", mode=mode).check(
        damaged=6, wrong=6)


@both_modes
def test_late_completions(mode):
    """Only late."""
    loopback("1.late=100/1000/10,1.late_us=3000", mode=mode, expect=0).check()


def test_wrong_owner():
    """A completion that the driver takes for an old one: what follows waits behind it for ever."""
    done = connectx.loopback(count=2000, faults="1.wrong_owner=500", expect=3)
    frames = done.frames
    e2e.check_identities(done.summary, done)
    assert frames["lost"] > 0 and frames["damaged"] == 0, done


# ---- completions before their data ----

# Their data come when the consumer looks again, or so late that nobody waits for them. By then each
# slot has been used before.
STALE_SHORT = "1.stale=12000/500/8,1.stale_us=0"
NEVER_US = 3600000000
STALE_LONG = "1.stale=1000/1000/8,1.stale_us=%d" % NEVER_US


@both_modes
def test_stale_is_told_from_damage(mode):
    """The consumer looks again: the frame was not there yet, and came."""
    for more in ((), ("--split", "64")):
        done = loopback(STALE_SHORT, "--stale-check", "100", "--pool", "16M", "--frame-size",
                        "200-1518", *more, mode=mode,
                        variables={"softmlx5_reader": "gdrcap-chk"})
        done.check(damaged=8)
        assert done.summary["stale"] == 8, done
        assert {row["kind"] for row in done.summary["damage"]} == {"stale"}, done


@both_modes
def test_data_that_never_come(mode):
    """A completion, and memory that does not change: in a slot's first use, and in a later one."""
    for first, pool in e2e.some(((1000, "64M"), (12000, "16M")), 1):
        done = loopback("1.stale=%d/500/8,1.stale_us=%d" % (first, NEVER_US), "--stale-check", "100",
                        "--pool", pool, "--frame-size", "64-1518", mode=mode)
        done.check(damaged=8)
        assert done.summary["stale"] == 8 and done.summary["filtered"] == 0, done
        rows = {(row["kind"], row["sequence"], row["offset"])
                for row in done.summary["damage"]}
        assert rows == {("stale", None, None)}, done


@both_modes
def test_flush_comes_before_publish(mode):
    """All data come behind their completions, at the flush: no frame is seen before."""
    with connectx.Faulty():
        connectx.perfect("--flush", "host", "--frame-size", "64-1518", count=200, mode=mode,
                         faults="pause=1,1.stale=2/1/0,1.stale_us=0")


@both_modes
def test_stale_without_the_detector(mode):
    """Then it is damage: never valid."""
    done = loopback(STALE_LONG, mode=mode)
    frames = done.frames
    e2e.check_identities(done.summary, done)
    assert frames["damaged"] + frames["duplicate"] + done.summary["filtered"] >= 8, done
    assert frames["valid"] <= FEW - 8, done
    assert done.summary["stale"] is None, done


@both_modes
def test_stale_check_without_faults(mode):
    done = connectx.perfect("--stale-check", "100", "--frame-size", "64-1518", count=SOME,
                            mode=mode)
    assert done.summary["stale"] == 0, done


# ---- queues in error ----

@both_modes
def test_send_error(mode):
    """The card gives up on a frame and on what was behind it: told, and the run goes on."""
    done = loopback("0.tx_error=200", mode=mode)
    e2e.check_identities(done.summary, done)
    lost = done.frames["lost"]
    assert lost > 0 and done.frames["valid"] == FEW - lost, done
    assert done.card(0, "tx_packets_phy") == FEW + connectx.STAGED - lost, done
    assert done.summary["sender"]["causes"]["wire_frames_sent"] == (
        FEW + connectx.STAGED - lost), done
    # The driver counts blocks of its ring that it threw away, and not their frames.
    assert done.summary["sender"]["errors"] is None, done
    assert "send queue was in error" in processes.messages(done.summary), done


@pytest.mark.parametrize("mode, more", [
    ("devx", ()), ("devx", SLEEPING),
    *(pytest.param(mode, more, marks=pytest.mark.long) for mode, more in (
        ("devx scalar", ()), ("verbs", ()), ("verbs flow scalar", ()), ("verbs flow scalar", SLEEPING)))])
def test_receive_error(mode, more):
    """The queue is started again: what was under way is lost, what comes after is received. So
    it is when its receiver sleeps until the card interrupts it, in another queue then."""
    received = HALF // 5 if more else HALF
    done = connectx.until(received, *(more or ("--rate", "20kpps")), mode=mode,
                          faults=connectx.LOSSLESS + ",1.rx_error=%d" % (received // 2))
    e2e.check_identities(done.summary, done)
    assert done.frames["damaged"] == 0 and done.frames["lost"] > 0, done
    assert done.causes["queue_error"] >= 1, done
    assert done.summary["queue_restarts"] == 1, done
    # The driver's scalar function recovers by itself.
    assert ("started again by the driver" in processes.messages(done.summary)) == (
        "scalar" in mode), done
    assert (done.card(1, "soft_interrupts") > 0) == bool(more), done


@both_modes
def test_revoked_key(mode):
    """The memory's registration is gone for good: it is said, and the run ends."""
    done = loopback("1.revoke=5000", "--rate", "20kpps", mode=mode, sends_all=False)
    e2e.check_identities(done.summary, done)
    assert done.frames["valid"] < 5000 and done.frames["damaged"] == 0, done
    assert done.causes["queue_error"] >= 1, done
    assert done.card(1, "rx_wqe_err") >= 1, done


@pytest.mark.parametrize("fault", ("mute", "silent"))
@both_modes
def test_receiver_comes_late(mode, fault):
    """Rules put frames into a queue and none comes out, as its thread does not poll: the control thread finds that some
    wait there, or that they came meanwhile, and starts nothing again."""
    with connectx.Faulty():
        # So slow that one poll takes all that wait, and that a queue has room for what comes until the driver has read the
        # rules' hits, however late that is.
        done = connectx.until(20, "--rate", "8pps", mode=mode, expect=0, gdrcap_faults=fault + "=16")
    done.check()
    assert done.summary["queue_restarts"] == 0, done
    assert "started again" not in processes.messages(done.summary), done


# ---- the link ----

@both_modes
def test_link_goes_down_and_comes_back(mode):
    """It comes back once its being down was noticed, however late that is, and then all is as before."""
    with processes.folder() as directory:
        change = connectx.change_faults(os.path.join(directory, "faults"), "")
        with processes.Running("loopback", "--frame-size", "64-1518", "--watchdog", "60", "--seconds", "3600", "--quiet-time", connectx.QUIET,
                               *connectx.ports(mode), "--rate", "20kpps",
                               env=connectx.environment(connectx.LOSSLESS, mode, softmlx5_faults_file=change)) as running:
            running.wait_for_frames("received", 1000)
            connectx.change_faults(change, "0.link=0")
            running.wait_until(lambda: any("the link is down" in line for line in running.err))
            before = json.loads(running.out[-1])["frames"]["received"]
            connectx.change_faults(change, "0.link=1")
            running.wait_until(lambda: any("link is up" in line for line in running.err))
            running.wait_for_frames("received", before + HALF)
            running.signal(signal.SIGINT)
            # Nothing is lost where the sender had no core between the two: it sends into no link that is down.
            running.finish((0, 3))
            done = connectx.Run(running.result())
    e2e.check_identities(done.summary, done)
    text = processes.messages(done.summary)
    assert re.search(r"link.*down|is down", text), done
    assert re.search(r"link.*up|is up", text), done
    discarded = done.summary["sender"]["causes"]["tx_discard"]
    assert done.frames["lost"] == discarded and done.result.status == (3 if discarded else 0), done
    assert done.frames["valid"] == done.frames["sent"] - discarded >= HALF, done


# ---- a consumer that is too slow ----

SLOTS = 8192
# It stands still until the watchdog says so, by when a sender sends many more frames than there are slots, even with a tenth
# of a core.
STANDS_STILL = ("--pool", "16M", "--rate", "50kpps", "--watchdog", "1.5")


@both_modes
def test_slow_consumer(mode):
    """The wire waits for nobody: what found no buffer is counted, all of it and only that; what
    comes after the stall is received, which the run goes on for."""
    with connectx.Faulty():
        done = connectx.until(2 * SLOTS, *STANDS_STILL, mode=mode, faults="", gdrcap_faults="stall=20")
    frames = done.frames
    assert done.summary["memory"]["slots"] == SLOTS, done
    e2e.check_identities(done.summary, done)
    missed = done.summary["lost_by"]["nic_missed"]
    assert missed > 0 and frames["lost"] == missed, done
    assert done.causes["out_of_buffer"] == missed, done
    assert done.summary["lost_by"]["unexplained"] == 0, done
    assert done.card(1, "rx_out_of_buffer") == missed, done
    assert frames["damaged"] == frames["duplicate"] == frames["reordered"] == 0, done
    assert "no progress" in processes.messages(done.summary), done


def test_slower_than_the_wire():
    """No buffers to spare and a sender at full speed: identities hold."""
    for arguments in e2e.some((("--pool", "16M"), ("--descriptors", "64", "--burst", "16"), ("--queues", "2")), 1):
        done = connectx.loopback(*arguments, count=SOME, faults="", expect=None)
        lost = done.frames["lost"]
        done.check(lost=lost, out_of_buffer=lost)


def test_flow_control():
    """With it a sender waits for a consumer that stands still, and both cards say so."""
    with connectx.Faulty():
        done = connectx.until(2 * SLOTS, *STANDS_STILL, expect=0, gdrcap_faults="stall=20")
    done.check()
    assert done.causes["pause_sent"] > 0, done
    assert done.summary["sender"]["causes"]["pause_received"] == done.causes["pause_sent"], done
    assert done.summary["tx_stalled"] > 0, done
