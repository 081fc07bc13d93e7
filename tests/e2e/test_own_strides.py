# SPDX-License-Identifier: BSD-3-Clause
"""Receive queues of our own of which a work entry is several slots (--rx-strides), on two ConnectX cards,
which are software: as test_own_rx.py has it of those with one. A frame is in its slot, whole work entries go
back, and what a card says that is not so stops the queue and is counted."""
import os
import re

import pytest

import connectx
import e2e
import processes

MANY = processes.scaled(1000000, 50000)
FEW = 20000
CPU = ("--rx-by", "cpu", "--frame-size", "64-1518")
STRIDES = CPU + ("--rx-strides", "64")


def strides(done):
    """Of the work entries of the queues that had frames, as the card has it."""
    found = re.findall(r"^softmlx5: mlx5_1: receive queue \d+: (\d+) frames, .*, (\d+) strides each", done.result.err,
                       re.M)
    return {int(number) for frames, number in found if int(frames)}


def loopback(faults, *arguments, expect=3):
    return connectx.loopback(*STRIDES, *arguments, count=FEW, expect=expect,
                             faults=connectx.LOSSLESS + "," + faults)


# ---- nothing goes wrong ----

def test_million():
    """Work entries of 64 frames, some 16,000 of them."""
    done = connectx.perfect(*STRIDES, count=MANY)
    assert done.summary["memory"]["kind"].endswith("device"), done
    assert done.lost_by["nic_missed"] == 0 and done.summary["rx_by"] == "cpu", done
    assert strides(done) == {64}, done


def test_queues():
    """Four queues, with as many frames a work entry as a card without short ones has at least."""
    done = connectx.perfect("--rx-by", "cpu", "--frame-size", "82-1518", "--queues", "4", "--streams",
                            "64", "--format", "udp", "--rx-strides", "512",
                            count=MANY // 4, faults=connectx.LOSSLESS + ",1.log_strides_min=9")
    got = [queue["received"] for queue in done.summary["queues"]]
    assert len(got) == 4 and all(got), done
    assert strides(done) == {512}, done


def test_sizes():
    """Up to the longest stride that there is, 8 KiB, which has 128 bytes before the frame."""
    for size in ("64", "64,8064"):
        connectx.perfect("--rx-by", "cpu", "--frame-size", size, "--rx-strides", "8", count=5000)


def test_few_slots():
    """The smallest queue, of four work entries: each has to come back before the card wants it again."""
    connectx.perfect(*CPU, "--pool", "8M", "--descriptors", "64", "--burst", "64", "--rx-strides", "512",
                     count=FEW)


def test_saved():
    """A saver holds slots of bursts that begin and end within a work entry."""
    with processes.folder() as directory:
        path = os.path.join(directory, "all.pcapng")
        done = connectx.loopback(*STRIDES, "--save", path, "--rate", "20kpps", count=FEW // 2, expect=None)
        assert done.frames["valid"] == done.frames["received"] == FEW // 2, done
        assert done.summary["saved"]["frames"] > 0, done
        assert done.summary["saved"]["frames"] + done.summary["saved"]["missed"] == FEW // 2, done


@pytest.mark.long  # test_own_rx.py has it of the other queues
def test_stale_check():
    done = connectx.perfect(*STRIDES, "--stale-check", "100", count=FEW)
    assert done.summary["stale"] == 0, done


# ---- on the cable and in the card ----

@pytest.mark.long  # test_own_rx.py has it of the other queues
def test_lost_in_the_card():
    """The queue's own counter is exact, so all is explained."""
    done = loopback("1.no_buffers=30/100/9").check(lost=9, out_of_buffer=9)
    assert done.lost_by["nic_missed"] == 9 and done.lost_by["unexplained"] == 0, done


def test_slots_in_short():
    """Without the cable's flow control a queue of few slots runs dry: what is lost is counted, no slot is
    written that is in use."""
    done = connectx.loopback(*CPU, "--pool", "8M", "--descriptors", "64", "--burst", "64",
                             "--rx-strides", "512", count=FEW, expect=None, faults="1.no_buffers=100/1000/3")
    e2e.check_identities(done.summary, done)
    assert done.frames["damaged"] == done.frames["duplicate"] == 0, done
    assert done.frames["lost"] == done.lost_by["nic_missed"] >= 3, done
    assert done.lost_by["unexplained"] == 0, done


@pytest.mark.long  # test_own_rx.py has it of the other queues
def test_dma_flips_a_bit():
    loopback("1.flip=100/100/6", "--frame-size", "200-1518").check(damaged=6, wrong=6)


@pytest.mark.long  # test_own_rx.py has it of the other queues
def test_stale_is_told_from_damage():
    done = loopback("1.stale=18000/200/8,1.stale_us=60000000", "--stale-check", "100")
    done.check(damaged=8)
    assert done.summary["stale"] == 8, done


# ---- queues in error ----

def reset(faults, text, restarts=1, received=FEW // 2):
    """The queue is reset under the run, and every frame that is lost for it is explained."""
    done = connectx.until(received, *STRIDES[:2], "--rx-strides", "64", "--rate", "20kpps",
                          faults=connectx.LOSSLESS + "," + faults)
    e2e.check_identities(done.summary, done)
    assert done.frames["damaged"] == 0 and done.frames["duplicate"] == 0, done
    assert done.frames["lost"] > 0 and done.lost_by["unexplained"] == 0, done
    assert done.summary["queue_restarts"] == restarts, done
    assert text in processes.messages(done.summary), done
    return done


def test_receive_error():
    for faults, restarts in e2e.some((("1.rx_error=5000", 1), ("1.rx_error=3000/12000/2", 2)), 1):
        done = reset(faults, "the card reports syndrome", restarts, FEW)
        assert done.causes["queue_error"] >= restarts, done
        assert done.lost_by["nic_error"] == done.frames["lost"] > 0, done


def test_broken_order():
    """A completion of another work entry, or of another stride of its own."""
    for knob in e2e.some(("wrong_entry", "wrong_stride"), 1):
        done = reset("1.%s=5000" % knob, "its completions came out of order")
        assert 0 < done.lost_by["nic_error"] <= done.frames["lost"], done


def test_a_work_entry_is_passed_over():
    """A filler: its slots are nobody's frames, and are not given away as such."""
    reset("1.filler=5000", "the card passed over a work entry's slots")


def test_wrong_owner():
    reset("1.wrong_owner=500", "its completions came out of order")


# ---- what is refused ----

def refused(*arguments, text, faults=connectx.LOSSLESS, rx_by="cpu", expect=1):
    done = connectx.run("loopback", "--frames", "100", *connectx.ports(), "--rx-by", rx_by, *arguments,
                        expect=expect, env=connectx.environment(faults))
    told = " ".join(done.summary["errors"])
    assert text in told, told


def test_refused():
    refused("--rx-strides", "48", text="48 is not a power of two", expect=2)
    refused("--rx-strides", "16", rx_by="driver", text="give rx_by cpu or gpu", expect=2)
    refused("--rx-strides", "4096", "--pool", "16M", text="so 1024 frames a work entry at most", expect=2)
    refused("--rx-strides", "4", text="the card takes 8 to 65536, or one")
    refused("--rx-strides", "64", faults="1.log_strides_min=9", text="the card takes 512 to 65536")
    refused("--rx-strides", "64", faults="1.log_strides_min=0", text="no receive queues with several frames")
    refused("--rx-strides", "16", "--frame-size", "9000", text="slots of 16384 bytes")
