# SPDX-License-Identifier: BSD-3-Clause
"""Receive queues of our own, polled by a thread (--rx-by cpu), on two ConnectX cards, which are
software: no driver and no mbuf between the card and the ring, frames in memory that the CPU cannot read.
What a card does wrong is counted, and a queue that it stops is started again."""
import json
import os
import re
import signal

import pytest

import connectx
import e2e
import processes

MANY = processes.scaled(1000000, 50000)
FEW = 20000
HALF = FEW // 2  # of which the first half has come before a fault of the queue
WRAPS = processes.scaled(150000, 70000)
# Who polls; test_own_fronts.py runs most of what is here with another.
WHO = "cpu"


def by():
    return "--rx-by", WHO


def sizes():
    return (*by(), "--frame-size", "64-1518")


def loopback(faults, *arguments, count=FEW, expect=3, **options):
    return connectx.loopback(*sizes(), *arguments, count=count, expect=expect,
                             faults=connectx.LOSSLESS + "," + faults, **options)


# ---- nothing goes wrong ----

def test_million():
    """The ring of slots is used some 60 times; the driver has no receive queue."""
    done = connectx.perfect(*sizes(), count=MANY)
    assert done.summary["memory"]["kind"].endswith("device"), done
    assert done.lost_by["nic_missed"] == 0 and done.summary["rx_by"] == WHO, done
    assert done.summary["steering"]["rules"][0]["frames"] == MANY, done


def test_queues():
    """A card spreads streams over queues of ours as over the driver's."""
    done = connectx.perfect(*by(), "--frame-size", "82-1518", "--queues", "4", "--streams",
                            "64", "--format", "udp", count=MANY // 4)
    got = [queue["received"] for queue in done.summary["queues"]]
    assert len(got) == 4 and all(got), done


def test_sizes():
    for size in ("64", "9000"):
        connectx.perfect(*by(), "--frame-size", size, count=5000)


def test_few_slots():
    """The smallest pool and the largest bursts: the ring wraps often, and the record's 16 bits do."""
    connectx.perfect(*sizes(), "--pool", "16M", "--descriptors", "256", "--burst", "256", count=WRAPS)


def test_idle_sleep():
    """A front that sleeps between frames."""
    connectx.perfect(*sizes(), "--idle-sleep", "1000", "--rate", "20kpps", count=HALF)


@pytest.mark.long
def test_stale_check():
    """As test_connectx_faults.py has it, and below with frames that are stale."""
    done = connectx.perfect(*sizes(), "--stale-check", "100", count=FEW)
    assert done.summary["stale"] == 0, done


def test_saved():
    """A saver holds slots, and lets go of those that it does not get to on a loaded machine."""
    with processes.folder() as directory:
        path = os.path.join(directory, "all.pcapng")
        done = connectx.loopback(*sizes(), "--save", path, "--rate", "20kpps", count=HALF, expect=None)
        assert done.frames["valid"] == done.frames["received"] == HALF, done
        assert done.summary["saved"]["frames"] > 0, done
        assert done.summary["saved"]["frames"] + done.summary["saved"]["missed"] == HALF, done


@pytest.mark.long
def test_bench():
    """gdrcap bench over two cards, by the driver and by us."""
    ports = ("--port", connectx.port(connectx.RECEIVER), "--tx-port", connectx.port(connectx.SENDER))
    result = e2e.run("bench", "--json", "--quiet", "--quick", "--stages", "path", "--gpu", "host", "--runs",
                     "1", "--run-time", "300", *ports, "--rx-by", "driver,cpu", expect=None,
                     env=connectx.environment())
    found = [row for row in result.summary["results"] if row["stage"] == "path"]
    assert {row["source"] for row in found} == {"driver", "cpu"}, found
    assert {row["frame_bytes"] for row in found} == {64, 512, 1500}, found
    # A busy machine may keep a short run's threads from their cores.
    measured = [row for row in found if "too short" not in (row["error"] or "")]
    assert {row["source"] for row in measured} == {"driver", "cpu"}, found
    for row in measured:
        assert not row["error"] and row["lost"] == row["damaged"] == 0, row
        assert row["sequence_checked"] and row["validated"] == row["frames"] > 0, row
    assert result.summary["parameters"]["tx_by"] == "driver", result.summary["parameters"]


# ---- on the cable and in the card ----

def test_cable():
    loopback("0.drop=1000/1000/5,0.corrupt=1501/1000/4,0.corrupt_at=56,0.duplicate=1703/1000/3,"
             "0.reorder=1907/1000/2").check(lost=5, damaged=4, wrong=4, duplicate=3, reordered=2)


def test_lost_in_the_card():
    """The queue's own counter is exact, so all is explained."""
    done = loopback("1.crc=10/100/4,1.discard=20/100/7,1.no_buffers=30/100/9").check(
        lost=20, wire_crc=4, card_full=7, out_of_buffer=9)
    assert done.lost_by["nic_missed"] == 9 and done.lost_by["unexplained"] == 0, done


@pytest.mark.long
def test_dma_flips_a_bit():
    """As test_connectx_faults.py has it; the checker is the same."""
    loopback("1.flip=100/100/6", "--frame-size", "200-1518").check(damaged=6, wrong=6)


def test_late_completions():
    loopback("1.late=100/1000/10,1.late_us=3000", expect=0).check()


def test_stale_is_told_from_damage():
    """A completion before its data, as without ARRIVED on the way."""
    done = loopback("1.stale=18000/200/8,1.stale_us=60000000", "--stale-check", "100")
    done.check(damaged=8)
    assert done.summary["stale"] == 8, done


def test_wrong_owner():
    """A completion of the lap before: what came behind it is lost, never believed, and the queue is reset."""
    done = connectx.until(HALF, *by(), "--rate", "20kpps",
                          faults=connectx.LOSSLESS + ",1.wrong_owner=500")
    e2e.check_identities(done.summary, done)
    assert done.frames["lost"] > 0 and done.frames["damaged"] == 0, done
    assert done.summary["queue_restarts"] == 1 and done.lost_by["unexplained"] == 0, done
    assert "its completions came out of order" in processes.messages(done.summary), done


def test_torn():
    """A completion whose last bytes come first, as no card should write it: on the first lap there is no length,
    which stops the queue."""
    done = connectx.until(HALF, "--rx-by", "cpu", "--rate", "20kpps",
                          faults=connectx.LOSSLESS + ",1.torn=500/100/5,1.torn_us=1000000")
    told = processes.messages(done.summary)
    assert "a completion's last bytes were there before its length" in told, done
    assert done.frames["lost"] > 0 and done.lost_by["unexplained"] == 0, done
    # A reset flushes all that was posted, so later ones may be on the second lap.
    assert {damage["kind"] for damage in done.summary["damage"]} <= {"length"}, done


@pytest.mark.long
def test_torn_on_the_second_lap():
    """The length is the lap before's: the frame is damaged by that and nothing else."""
    # Entries from 40000 on are on the second lap of 32768. Sizes go round by another number, so they have other
    # lengths. Some tears hit a completion of the sender's, and do nothing.
    done = loopback("1.torn=40000/400/20,1.torn_us=200000", "--stale-check", "100", "--tx-by", "cpu",
                    count=50000)
    e2e.check_identities(done.summary, done)
    assert {damage["kind"] for damage in done.summary["damage"]} == {"length"}, done
    assert 0 < done.frames["damaged"] <= 20 and done.frames["lost"] == 0, done
    assert done.summary["stale"] == 0, done


# ---- queues in error ----

def test_receive_error():
    """The queue is reset under the run. What came meanwhile found no slot, which is the error's fault and not
    the consumer's: all is nic_error's, and the texts say so."""
    for faults, restarts in e2e.some((("1.rx_error=5000", 1), ("1.rx_error=3000/12000/2", 2)), 1):
        done = connectx.until(FEW, *by(), "--rate", "20kpps",
                              faults=connectx.LOSSLESS + "," + faults)
        e2e.check_identities(done.summary, done)
        assert done.frames["damaged"] == 0 and done.frames["lost"] > 0, done
        assert done.summary["queue_restarts"] == restarts, done
        assert done.causes["queue_error"] >= restarts, done
        assert done.lost_by["nic_error"] == done.frames["lost"] and done.lost_by["nic_missed"] == 0, done
        assert done.causes["out_of_buffer"] == 0 and done.lost_by["unexplained"] == 0, done
        told = processes.messages(done.summary)
        assert "the card reports syndrome" in told and "consumer was slower" not in told, done


def test_receive_error_beside_missed():
    """Frames that find no slot in a queue that runs stay nic_missed, once they were counted."""
    with processes.folder() as directory:
        change = connectx.change_faults(os.path.join(directory, "faults"), "")
        with processes.Running("loopback", "--quiet", "--frame-size", "64-1518", "--watchdog", "60", "--seconds", "3600",
                               "--quiet-time", connectx.QUIET, *connectx.ports(), "--rx-by", "cpu", "--rate", "20kpps",
                               env=connectx.environment(connectx.LOSSLESS + ",1.no_buffers=30/100/9",
                                                        softmlx5_faults_file=change)) as running:
            running.wait_until(lambda: running.out and json.loads(running.out[-1])["lost_by"]["nic_missed"] == 9)
            connectx.change_faults(change, "1.rx_error=1")
            running.wait_until(lambda: json.loads(running.out[-1])["queue_restarts"] == 1)
            running.wait_for_frames("received", HALF)
            running.signal(signal.SIGINT)
            running.finish(3)
            done = connectx.Run(running.result())
    e2e.check_identities(done.summary, done)
    assert done.lost_by["nic_missed"] == 9 and done.lost_by["unexplained"] == 0, done
    assert done.lost_by["nic_error"] == done.frames["lost"] - 9, done


def test_queue_error_in_words():
    """What people read blames neither the wire nor the consumer."""
    result = e2e.run("loopback", "--frames", str(HALF), "--rate", "20kpps", *connectx.ports(), *sizes(),
                     expect=3, env=connectx.environment(connectx.LOSSLESS + ",1.rx_error=5000"))
    row = re.search(r"^ +queue in error +([0-9,]+)  frames of queues in error", result.out, re.M)
    assert row and int(row.group(1).replace(",", "")) > 0, result
    assert "work entries that came back unused" in result.out, result
    for text in ("on the wire ", "consumer is slower", "registration broke"):
        assert text not in result.out.replace("Gb/s on the wire", ""), (text, result)


def test_first_frame_in_error():
    """The stage says what stands in the completion queue, and has causes of its own."""
    for fault, text in (("wrong_entry", "its completions came out of order"),
                        ("rx_error", "the queue is in error")):
        done = connectx.run("loopback", "--quiet", "--frames", "10", *connectx.ports(), *sizes(), expect=None,
                            env=connectx.environment(connectx.LOSSLESS + ",1.%s=1" % fault))
        stage = done.summary["stages"][4]
        assert stage["state"] == "failed" and text in stage["detail"], done
        assert not any("--descriptors" in cause for cause in stage["causes"]), done


def test_receive_error_while_frames_are_held():
    """A saver holds the last frames, for damaged ones to come: not while their slots are all that a reset waits for."""
    with processes.folder() as directory:
        done = connectx.until(HALF, *by(), "--rate", "20kpps", "--save-damaged", os.path.join(directory, "bad.pcapng"),
                              "--save-around", "64", faults=connectx.LOSSLESS + ",1.rx_error=5000")
    e2e.check_identities(done.summary, done)
    assert done.summary["queue_restarts"] == 1 and done.lost_by["unexplained"] == 0, done


def test_broken_order():
    """A completion of another work entry: nothing behind it is believed until the queue is reset, and what
    came there is counted."""
    done = connectx.until(HALF, *by(), "--rate", "20kpps",
                          faults=connectx.LOSSLESS + ",1.wrong_entry=5000")
    e2e.check_identities(done.summary, done)
    assert done.frames["damaged"] == 0 and done.summary["queue_restarts"] == 1, done
    assert 0 < done.lost_by["nic_error"] <= done.frames["lost"], done
    assert done.lost_by["unexplained"] == 0, done
    assert "its completions came out of order" in processes.messages(done.summary), done


def test_revoked_key():
    """The memory's registration is gone for good: it is said, and the run ends."""
    # As many as it takes: the port is given up long before, if later where others have the cores.
    done = loopback("1.revoke=5000", "--rate", "20kpps", count=100 * FEW, sends_all=False)
    e2e.check_identities(done.summary, done)
    assert done.frames["valid"] < 5000 and done.frames["damaged"] == 0, done
    assert done.causes["queue_error"] >= 1, done
    assert "brought no frame" in processes.messages(done.summary), done


# ---- what is refused ----

@pytest.mark.long
def test_a_card_that_makes_no_queue():
    """test_softmlx5_own_refused.c in the whole program: each object that the card refuses is named, be it the driver's or ours, of the first queue or the
    second, and all that was made before is taken back."""
    told = []
    for number in range(1, 19):
        done = connectx.run("loopback", "--frames", "100", *connectx.ports(), *by(),
                            "--queues", "2", expect=None,
                            env=connectx.environment(connectx.LOSSLESS + ",1.refuse_object=%d" % number))
        assert done.result.status in (0, 1), done
        told += done.summary["errors"]
    for what in ("a completion queue", "a queue counter", "a receive queue"):
        assert sum("refuses to make " + what in text for text in told) == 2, (what, told)


def refused(*arguments, text, mode=connectx.DEFAULT, devargs="", faults=connectx.LOSSLESS, expect=2):
    """With status 2 where the configuration alone is wrong, 1 where it is the machine."""
    done = connectx.run("loopback", "--frames", "100", *connectx.ports(mode, devargs), *arguments,
                        expect=expect, env=connectx.environment(faults, mode=mode))
    told = " ".join(done.summary["errors"])
    assert text in told, told


def test_refused():
    refused("--rx-by", "gpu", text="gpu needs a CUDA device", expect=1)
    refused("--rx-by", "cpu", "--split", "64", text="do not split frames")
    refused("--rx-by", "cpu", "--clock", "card", "--save", os.devnull, text="have the CPU's times")
    refused("--rx-by", "cpu", "--descriptors", "32768", text="lower descriptors")
    refused("--rx-by", "cpu", mode="verbs", text="DevX", expect=1)
    result = e2e.run("loopback", "--json", "--port", "ring:own", "--tx-port", "ring:own",
                     "--rx-by", "cpu", "--frames", "10", expect=2)
    assert "rx_by: port ring:own" in " ".join(result.summary["errors"]), result
    with processes.folder() as directory:
        path = os.path.join(directory, "own.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("rx_by: cpu\n")
        result = e2e.run("replay", "--json", "--config", path, "--tx-port", connectx.SENDER,
                         "--frames", "10", expect=2)
    assert "rx_by: is of the receiver" in " ".join(result.summary["errors"]), result


def test_refused_arguments():
    """Those with which the session itself hands its card to the driver, and those that mean nothing to queues
    of ours."""
    for devargs in ("cmd_fd=3", "pd_handle=1"):
        for by in ("driver", "cpu"):
            refused("--rx-by", by, devargs=devargs, text=devargs + " is refused: the session opens")
    refused("--rx-by", "cpu", devargs="rxq_cqe_comp_en=1", text="are never compressed")
    connectx.perfect(*sizes(), devargs="rxq_cqe_comp_en=0", count=100)
    connectx.perfect("--frame-size", "64-1518", devargs="rxq_cqe_comp_en=1", count=100)


def test_a_card_that_makes_nothing_for_the_driver():
    """The driver gives up without an errno: the text has its reason, and what to do."""
    for faults, why in (("1.refuse_umem=1", "Failed to register umem for CQ"),
                        ("0.refuse_umem=2", "Failed to register umem for RQ"),
                        ("1.refuse_object=5", "Can't create DevX RQ object")):
        refused("--rx-by", "cpu", faults=faults, text=why, expect=1)
        refused("--rx-by", "cpu", faults=faults, text="raise the locked-memory limit", expect=1)
