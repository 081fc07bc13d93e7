# SPDX-License-Identifier: BSD-3-Clause
"""Memory of ConnectX cards, and the staged first frame: each stage is made to fail by one fault of
the software cards, or of tests/faults where no card is to blame, and its text names it."""
import re

import pytest

import connectx
import processes
import test_faults

MODES = ("devx", "verbs flow scalar")
STAGES = test_faults.STAGES
SOME = processes.scaled(100000, 20000)


# ---- registration ----

@connectx.modes(*MODES)
def test_through_dma_buf(mode):
    """No nvidia-peermem: the kernel finds nothing behind the memory's addresses."""
    done = connectx.perfect("--frame-size", "64-1518", count=SOME, mode=mode,
                            faults="pause=1,refuse_peer=1/1/0")
    assert done.summary["memory"]["registration"] == "dma-buf", done
    assert "by its dma-buf" in done.result.err, done


def test_split_through_dma_buf():
    done = connectx.perfect("--split", "64", "--frame-size", "64-1518", count=SOME,
                            faults="pause=1,refuse_peer=1/1/0")
    assert "dma-buf" in done.summary["memory"]["registration"], done


def test_one_card_by_dma_buf():
    done = connectx.perfect(count=5000, faults="pause=1,1.refuse_peer=1/1/0")
    assert done.summary["memory"]["registration"] == "host memory and dma-buf", done


@connectx.modes(*MODES)
def test_neither_way(mode):
    """Both causes with their remedies, and nothing runs."""
    done = connectx.loopback(count=1, mode=mode, expect=1,
                             faults="refuse_peer=1/1/0,refuse_dmabuf=1/1/0")
    assert done.summary["result"] == "fail" and done.frames is None, done
    error = done.summary["errors"][0]
    for words in ("modprobe nvidia-peermem", "dma-buf", "Linux 5.12", "Bad address",
                  "Operation not supported"):
        assert words in error, (words, done)


# ---- the first frame ----

def stage_failure(done, stage, detail):
    summary = done.summary
    assert summary["result"] == "fail" and summary["frames"] is None, done
    number = STAGES.index(stage)
    assert [row["name"] for row in summary["stages"]] == STAGES[:number + 1], done
    assert [row["state"] for row in summary["stages"]] == ["passed"] * number + ["failed"], done
    last = summary["stages"][-1]
    assert re.search(detail, last["detail"]), (detail, last)
    assert summary["errors"] == ['step "%s" failed: %s' % (stage, last["detail"])], done
    assert len(last["causes"]) >= 2, last
    for i, cause in enumerate(last["causes"]):
        assert "%d. %s" % (i + 1, cause) in done.result.err, "not printed: %s: %s" % (cause, done)


def by_card(faults, stage, detail, mode=connectx.DEFAULT):
    done = connectx.run("loopback", "--frames", "1000", *connectx.ports(mode), expect=3,
                        env=connectx.environment(faults, mode))
    stage_failure(done, stage, detail)


def by_program(faults, stage, detail):
    with connectx.Faulty():
        done = connectx.run("loopback", "--frames", "1000", *connectx.ports(), expect=3,
                            env=connectx.environment(gdrcap_faults=faults))
    stage_failure(done, stage, detail)


def test_stage_ports_up():
    by_card("0.link=0", "ports up", r"is down after \d+ s")


@pytest.mark.long
def test_stage_memory():
    """As test_faults.py has it, in memory of the card's."""
    by_program("memory-forgets", "memory ready and poisoned",
               r"byte \d+ is 0x00 after the memory was filled with 0x55")


@connectx.modes(*MODES)
def test_stage_sent(mode):
    by_card("0.tx_error=1", "frame sent", r"could not send it: an error completion", mode)


@connectx.modes(*MODES)
def test_stage_steered(mode):
    by_card("0.drop=1", "steered", r"no frame came to the physical port of \S+ within \d+ ms", mode)
    # To the kernel: another EtherType than the rule's.
    by_card("0.corrupt=1,0.corrupt_at=13", "steered", r"1 frame came to the physical port of \S+ within", mode)


def test_stage_steered_by_the_card():
    by_card("1.crc=1", "steered", r"damaged on the wire \(wire_crc\)")
    by_card("1.discard=1", "steered", r"card_full")


@connectx.modes(*MODES)
def test_stage_completed(mode):
    by_card("1.no_buffers=1", "completed", r"1 more missed, 0 more with errors", mode)
    by_card("1.rx_error=1", "completed", r"0 more missed, \d+ more with errors.*queue is in error", mode)


def test_stage_completed_without_its_key():
    by_card("1.revoke=1", "completed", r"0 more missed, \d+ more with errors.*could not write it")


@connectx.modes(*MODES)
def test_stage_changed(mode):
    """A completion, and memory that did not change: what the published proof of concept saw."""
    by_card("1.stale=1,1.stale_us=20000000", "bytes changed",
            r"a completion came, but 74 of 74 bytes still hold 0x55", mode)


@connectx.modes(*MODES)
def test_stage_right(mode):
    by_card("0.corrupt=1,0.corrupt_at=60", "bytes right", r"byte 60 is 0x02, not 0x12", mode)


def test_stage_right_by_one_bit():
    by_card("1.flip=1", "bytes right", r"byte 37 is 0x38, not 0x39")


@pytest.mark.long
def test_stage_consumer():
    """As test_faults.py has it, behind a card."""
    by_program("consumer-mute", "consumer saw it", r"it gave no result within \d+ ms")
    by_program("consumer-stale=42", "consumer saw it",
               r"it found \d+ wrong bits, the first in byte 42")
