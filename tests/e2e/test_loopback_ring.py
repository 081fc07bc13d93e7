# SPDX-License-Identifier: BSD-3-Clause
"""Loopback over the wire in this process: every frame sent arrives, every byte right."""
import os
import tempfile

import e2e

# A hundredth of the long run, and not fewer than catches a wrap of the rings.
SOME = max(2000, min(20000, e2e.FRAMES // 100))
PATTERNS = ("prbs7 prbs9 prbs11 prbs15 prbs20 prbs23 prbs31 counter8 counter16be counter16le "
            "counter32be counter32le counter64be counter64le constant walking-one random").split()


def payload_bits(sizes, count, overhead=14 + 4 + 36):
    """Of `count` frames whose sizes (with FCS) follow each other in turn."""
    return 8 * sum(sizes[i % len(sizes)] - overhead for i in range(count))


def test_defaults():
    """No option but the number of frames: the software wire."""
    summary = e2e.loopback(frames=SOME)
    assert summary["ports"] == summary["tx_ports"] == ["ring:wire"]
    assert summary["memory"]["kind"] in ("emulated device", "device", "pinned", "host")
    assert summary["memory"]["slots"] > 0 and summary["cores"]
    # What only a card has.
    assert summary["memory"]["registration"] is None and summary["memory"]["split"] == 0
    assert summary["steering"] is summary["stale"] is summary["clock"] is None, summary
    assert summary["queue_restarts"] == 0
    for causes in (summary["lost_by"]["causes"], summary["sender"]["causes"]):
        assert causes and set(causes.values()) == {None}, causes
    assert summary["bits"]["checked"] == payload_bits([1518], SOME)


def test_many_frames_of_mixed_sizes():
    summary = e2e.loopback("--frame-size", "64-1518", "--pattern", "prbs31", frames=e2e.FRAMES)
    assert summary["bits"]["checked"] == payload_bits(range(64, 1519), e2e.FRAMES)


def test_patterns():
    """Each goes on from frame to frame or begins anew; in `make check-long` each does both."""
    for i, pattern in enumerate(PATTERNS):
        for more in e2e.some(([], ["--pattern-restart"]), i % 2):
            e2e.loopback("--pattern", pattern, "--frame-size", "64,65,66,67,1518", *more,
                         frames=SOME)
    e2e.loopback("--pattern", "constant", "--pattern-value", "165", frames=SOME)
    e2e.loopback("--pattern", "random", "--pattern-seed", str(2**64 - 1), frames=SOME)
    for invert in ("no", "yes", "auto"):
        e2e.loopback("--pattern", "prbs31", "--pattern-invert", invert, frames=SOME)


def test_pattern_file():
    with tempfile.NamedTemporaryFile() as file:
        file.write(os.urandom(10007))
        file.flush()
        e2e.loopback("--pattern", "file", "--pattern-file", file.name, frames=SOME)


def test_formats():
    for arguments in ([], ["--vlan", "100"], ["--format", "udp"],
                      ["--format", "udp", "--vlan", "4094"], ["--ethertype", "0x9000"],
                      ["--format", "udp", "--dst-port", "65535", "--src-ip", "10.0.0.1"]):
        e2e.loopback("--frame-size", "86,128-256,1518", *arguments, frames=SOME)


def test_sizes():
    for size in ("64", "65", "9216", "imix", "64,512,1518", "64-9216"):
        e2e.loopback("--frame-size", size, frames=SOME)
    e2e.loopback("--frame-size", "82", "--format", "udp", frames=SOME)


def test_queues_and_streams():
    summary = e2e.loopback("--queues", "4", "--frame-size", "64-1518", frames=SOME)
    assert len(summary["queues"]) == 4
    assert sum(queue["received"] for queue in summary["queues"]) == SOME
    # Streams take turns burst by burst.
    summary = e2e.loopback("--queues", "4", "--streams", "37", "--burst", "4", frames=SOME)
    assert sorted(stream["stream"] for stream in summary["streams"]) == list(range(37))
    assert sum(stream["frames"]["valid"] for stream in summary["streams"]) == SOME
    summary = e2e.loopback("--streams", "1024", "--burst", "4", "--frame-size", "64",
                           frames=5 * 1024)
    assert len(summary["streams"]) == 1024


def test_two_ports():
    summary = e2e.loopback("--port", "ring:a", "--port", "ring:b", "--tx-port", "ring:a",
                           "--tx-port", "ring:b", "--queues", "2", frames=SOME)
    assert len(summary["queues"]) == 4


def test_one_end_names_the_other():
    summary = e2e.loopback("--port", "ring:other", frames=SOME)
    assert summary["tx_ports"] == ["ring:other"]


def test_guarded_memory():
    """Addresses that the CPU's path cannot touch: a fault would end the program."""
    summary = e2e.loopback("--gpu", "host", "--guard", "--frame-size", "64-1518", frames=SOME)
    assert summary["memory"]["driver"] == "gpu_host", summary["memory"]


def test_small_pool_holds_the_sender_back():
    """Far fewer slots than frames: a slow consumer stalls the sender, and nothing is lost."""
    summary = e2e.loopback("--pool", "4M", "--descriptors", "64", "--burst", "32", frames=SOME)
    assert summary["memory"]["region_bytes"] == 4 << 20, summary["memory"]


def test_bursts():
    for burst in ("1", "7", "64", "256"):
        e2e.loopback("--burst", burst, "--frame-size", "64", frames=SOME)


def test_blocks():
    for blocks in ("1", "2", "3"):
        e2e.loopback("--gpu", "host", "--blocks", blocks, frames=SOME)


def test_few_frames():
    for frames in (1, 2, 63, 64, 65):
        e2e.loopback("--streams", "1", frames=frames)


def test_one_core():
    """Sender, receiver, consumer and the main thread share a core."""
    core = str(min(os.sched_getaffinity(0)))
    e2e.loopback(frames=SOME, prefix=["taskset", "-c", core])
    e2e.loopback("--cores", core, frames=SOME)


def test_again_and_again():
    for _ in range(10):
        e2e.loopback("--frame-size", "64-256", frames=2000)
