# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap sends by work entries of its own (--tx-by cpu) on a software ConnectX, from memory that the
CPU cannot read, into a card that DPDK's driver receives from."""
import os
import re
import signal

import connectx
import e2e
import frames as own
import processes

MANY = processes.scaled(300000, 50000)
SOME = processes.scaled(100000, 20000)
FEW = 5000
BY_CPU = ("--tx-by", "cpu")
ERROR = re.compile(r"started again \((.*)\); resets so far: (\d+), frames lost with them: (\d+)")


def perfect(*arguments, count, **options):
    done = connectx.perfect(*BY_CPU, *arguments, count=count, **options)
    assert done.summary["tx_by"] == "cpu" and done.summary["sender"]["proxies"] is None, done
    # The card met no key, doorbell or entry that it had not been told of.
    for counter in ("soft_bad_doorbells", "soft_bad_keys", "soft_cq_overruns", "soft_flushed"):
        assert done.card(0, counter) == 0, (counter, done)
    assert done.card(0, "tx_packets_phy") == count + connectx.STAGED, done
    return done


def test_small_frames():
    perfect("--frame-size", "64", count=MANY)


def test_all_sizes():
    perfect("--frame-size", "82-1518", "--format", "udp", count=SOME)
    # With those that have an entry of their own; slots go round often.
    perfect("--frame-size", "64,9216,5000,128,4099,4100,4101", count=SOME // 2)


def test_start_at():
    """Slots that were filled ahead of the time, of DPDK's queues, which take turns at the first frame, and of ours."""
    for options in (("--queues", "2"), BY_CPU):
        done = connectx.perfect(*options, "--start-at", "+0.3", "--frame-size", "64-1518", count=FEW)
        start = done.summary["sender"]["start"]
        assert isinstance(start["late_ns"], int) and start["late_ns"] >= 0, start


def test_queues_and_bursts():
    perfect("--queues", "4", "--burst", "7", count=SOME)
    perfect("--queues", "2", "--burst", "256", "--frame-size", "64-200", count=SOME)
    # Slots that are few, so that each waits for its completion.
    perfect("--pool", "16M", "--frame-size", "64", count=SOME)


def test_verbs_of_the_other_queues():
    """The driver's own queues may be made by Verbs: nothing of ours is the driver's."""
    perfect("--frame-size", "64-1518", count=FEW, mode="devx scalar")


def test_paced():
    done = perfect("--rate", "20kpps", "--frame-size", "64", count=10001)
    assert done.summary["sender"]["gap_error_ns"] is not None, done
    assert done.summary["sender"]["seconds"] >= 0.49, done


def test_file():
    with processes.folder() as directory:
        path = os.path.join(directory, "play.pcap")
        own.write_pcap(path, [bytes(6) + b"\2" * 6 + b"\x88\xb5" +
                              bytes([i % 251]) * (46 + 3 * i % 1400) for i in range(500)])
        done = connectx.run("loopback", "--quiet", "--pcap", path, "--loops", "7", "--rate", "max",
                            "--match", "ethertype=0x88b5", "--watchdog", "60", *connectx.ports(),
                            *BY_CPU)
    e2e.check_perfect(done.summary, 3500)


def test_replay_says_its_end():
    """Nobody receives. All frames leave, and those that say the streams' ends."""
    done = connectx.run("replay", "--quiet", "--frames", str(FEW), "--streams", "3", "--tx-port",
                        connectx.SENDER, "--gpu", "host", "--guard", *BY_CPU)
    assert done.card(0, "tx_packets_phy") == FEW + 3 * 5, done
    assert done.frames is None or done.frames["sent"] == FEW, done


def test_send_error():
    """The card stops the queue: it is made anew, and the run goes on. What was in it is lost, and exactly
    that is told and explained: of the entries before the one that failed none is."""
    count = 5 * SOME  # each error may cost all that the queue has room for, where the card is slow
    done = connectx.loopback(*BY_CPU, "--frame-size", "64", "--burst", "32", count=count,
                             expect=3, faults=connectx.LOSSLESS + ",0.tx_error=50/100/5")
    e2e.check_identities(done.summary, done)
    lost = done.frames["lost"]
    assert lost > 0 and done.frames["valid"] == count - lost, done
    assert done.card(0, "tx_packets_phy") == count + connectx.STAGED - lost, done
    told = ERROR.findall(processes.messages(done.summary))
    assert told and int(told[-1][1]) == 5, done
    assert "memory that is not registered" in told[-1][0], done
    assert lost == int(told[-1][2]), done
    assert done.summary["sender"]["errors"] == lost and done.lost_by["unexplained"] == 0, done


def test_send_error_without_a_receiver():
    """A replay that knows of frames which were not sent has failed."""
    done = connectx.run("replay", "--quiet", "--frames", str(SOME), "--frame-size", "64", "--tx-port",
                        connectx.SENDER, "--gpu", "host", "--guard", *BY_CPU, expect=3,
                        env=connectx.environment("0.tx_error=50/100/5"))
    lost = done.summary["sender"]["errors"]
    assert lost > 0 and "which then could not send them" in done.summary["errors"][0], done
    # Those that say the stream's end are five.
    assert done.card(0, "tx_packets_phy") == SOME + 5 - lost, done


def test_first_frame():
    """The staged frame goes the same way."""
    done = connectx.loopback(*BY_CPU, count=FEW, faults="0.tx_error=1", expect=None,
                             sends_all=False)
    stages = {stage["name"]: stage for stage in done.summary["stages"]}
    assert stages["frame sent"]["state"] == "failed", done
    assert "an error completion" in stages["frame sent"]["detail"], done


def test_stop():
    """While frames wait for the other side, which holds them up, and while they do not."""
    for faults in (connectx.LOSSLESS, ""):
        with processes.Running("loopback", "--quiet", "--seconds", "3600", "--frame-size", "64",
                               *connectx.ports(), *BY_CPU,
                               env=connectx.environment(faults)) as running:
            running.wait_for_frames("received", FEW)
            running.signal(signal.SIGINT)
            running.finish(None)
            done = connectx.Run(running.result())
        e2e.check_identities(done.summary, done)
        assert done.frames["damaged"] == 0 and done.frames["valid"] >= FEW, done


def test_refused():
    for arguments, text in (
            (("--port", "ring:a", "--tx-port", "ring:a"), "has no queues but its driver's"),
            (("--tx-port", "net_null0"), "has no queues but its driver's")):
        result = e2e.run("replay" if len(arguments) == 2 else "loopback", "--quiet", "--frames", "1",
                         *arguments, "--gpu", "host", *BY_CPU, expect=2)
        assert text in result.err, result
    for by, arguments, text in (
            ("gpu", ("--rate", "1gbit"), "leave rate out, or use sender.by: cpu"),
            ("gpu", ("--pcap", "none.pcap"), "leave pcap out, or use sender.by: cpu"),
            ("gpu", (), "needs a CUDA device"),
            ("nobody", (), "--tx-by: 'nobody'")):
        result = e2e.run("loopback", "--quiet", "--frames", "1", *connectx.ports(), *arguments,
                         "--tx-by", by, env=connectx.environment(), expect=2)
        assert text in result.err, result
    with processes.folder() as directory:
        path = os.path.join(directory, "own.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("sender:\n  by: cpu\n")
        result = e2e.run("capture", "--quiet", "--port", "net_null0", "--gpu", "host", "--config", path,
                         expect=2)
    assert "sender.by: is of the sender" in result.err, result
    # A card, kernel or user without commands of the card.
    result = e2e.run("loopback", "--quiet", "--frames", "1", *connectx.ports("verbs"), *BY_CPU,
                     env=connectx.environment(mode="verbs"), expect=1)
    assert "DevX" in result.err, result
