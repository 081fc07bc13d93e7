# SPDX-License-Identifier: BSD-3-Clause
"""A kernel sends (--tx-by gpu) on the software ConnectX, whose doorbell register is memory that CUDA maps as such, and a
kernel checks what another card receives: sizes, queues, errors, the CPU thread that rings where CUDA does
not map the register, and what is refused. Skips without a GPU."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

import pytest

import connectx  # noqa: E402
import e2e  # noqa: E402
import processes  # noqa: E402

pytestmark = [pytest.mark.alone, pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="no GPU here")]
SOME = processes.scaled(200000, 20000)
PORTS = ("--port", connectx.port(connectx.RECEIVER), "--tx-port", connectx.port(connectx.SENDER),
         "--gpu", "0", "--memory", "device")
BY_GPU = ("--tx-by", "gpu")


def loopback(*arguments, count=SOME, faults=connectx.LOSSLESS, expect=0, **variables):
    done = connectx.run("loopback", "--quiet", "--frames", str(count), "--watchdog", "60", "--quiet-time", "2",
                        *PORTS, *BY_GPU, *arguments, expect=expect,
                        env=connectx.environment(faults, **variables))
    assert done.summary["tx_by"] == "gpu" and done.summary["memory"]["kind"] == "device", done
    return done


def perfect(*arguments, count=SOME, proxies=0, **options):
    done = loopback(*arguments, count=count, **options)
    e2e.check_perfect(done.summary, count)
    for counter in ("soft_bad_doorbells", "soft_bad_keys", "soft_cq_overruns", "soft_flushed"):
        assert done.card(0, counter) == 0, (counter, done)
    assert done.card(0, "tx_packets_phy") == count + connectx.STAGED, done
    assert done.summary["sender"]["errors"] == 0, done
    assert done.summary["sender"]["proxies"] == proxies, done
    return done


def test_sizes():
    for size in ("64", "82-1518", "4095", "4096", "9000", "64,9000,128,4100"):
        perfect("--frame-size", size, count=SOME // 4)


def test_two_queues():
    perfect("--queues", "2", "--frame-size", "64-1518")
    perfect("--queues", "2", "--streams", "16", "--burst", "7", "--format", "udp", count=SOME // 4)


def test_both_by_others():
    """The receiver's queues are polled by a thread."""
    perfect("--rx-by", "cpu", "--frame-size", "64-1518")


def test_errors_are_mended():
    """The thread beside the kernel resets the queue, the kernel goes on, and what was lost is known."""
    done = loopback("--frame-size", "64", count=5 * SOME, expect=3,
                    faults=connectx.LOSSLESS + ",0.tx_error=50/100/5")
    e2e.check_identities(done.summary, done)
    lost = done.frames["lost"]
    assert 0 < lost == done.summary["sender"]["errors"], done
    assert done.frames["valid"] == 5 * SOME - lost and done.lost_by["unexplained"] == 0, done
    assert "resets so far: 5" in processes.messages(done.summary), done


def test_proxy():
    """CUDA does not map the register: a thread rings, which is said aloud, and nothing else changes."""
    with connectx.Faulty():
        done = perfect("--frame-size", "64-1518", "--queues", "2", count=SOME // 4, proxies=2,
                       gdrcap_faults="register-refused")
        told = processes.messages(done.summary)
        assert told.count("a CPU thread rings for it") == 2 and "PeerMappingOverride" in told, done
        done = loopback("--frame-size", "64", expect=3, gdrcap_faults="register-refused",
                        faults=connectx.LOSSLESS + ",0.tx_error=50/100/2")
    assert 0 < done.frames["lost"] == done.summary["sender"]["errors"], done


def test_refused():
    for arguments, text in ((("--rate", "1gbit"), "leave rate out"),
                            (("--pcap", "none.pcap"), "leave pcap out"),
                            (("--streams", "65"), "up to 64 streams a queue")):
        done = connectx.run("loopback", "--quiet", "--frames", "100", *PORTS, *BY_GPU, *arguments, expect=2)
        assert text in " ".join(done.summary["errors"]), done
