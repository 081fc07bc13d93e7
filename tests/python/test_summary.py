# SPDX-License-Identifier: BSD-3-Clause
"""summary() is the object that the program prints of the same run: the same frames through both, key for key."""
import os

import harness  # first: it says where the others are
import gdrcap
import frames
import test_images as truth

# What two runs of the same frames do not have in common: times, rates, and what depends on them. Their types are
# compared.
MEASURED = {"run.pid", "run.started_ns", "elapsed_seconds", "seconds", "rate.gbps", "rate.mpps", "pool_empty.times", "pool_empty.seconds", "tx_stalled", "sender.gbps",
            "sender.mpps", "sender.seconds", "sender.starved", "sender.gap_error_ns.p50", "sender.gap_error_ns.p99",
            "sender.gap_error_ns.max", "stages[].detail",
            "cores[]"}  # those that no other gdrcap has come first


def compare(ours, theirs, path=""):
    if isinstance(theirs, dict):
        assert isinstance(ours, dict) and list(ours) == list(theirs), "%s: %s, not %s" % (path, ours, theirs)
        for key in theirs:
            compare(ours[key], theirs[key], "%s.%s" % (path, key) if path else key)
    elif isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs), "%s: %s, not %s" % (path, ours, theirs)
        for left, right in zip(ours, theirs):
            compare(left, right, path + "[]")
    else:
        assert type(ours) is type(theirs), "%s: %r, not %r" % (path, ours, theirs)
        assert path in MEASURED or ours == theirs, "%s: %r, not %r" % (path, ours, theirs)


def both(command, expect, **options):
    """The run by the program and by Python."""
    flags = []
    for key, value in options.items():
        flags += ["--" + {"frame__size": "frame-size"}.get(key, key.replace("_", "-")), str(value)]
    theirs = harness.e2e.run_json(command, "--quiet", *flags, expect=expect)
    session = gdrcap.Session(**options)
    first = session.summary()
    assert first["result"] == "fail" and first["errors"] == ["nothing ran"] and first["frames"] is None, first
    assert first["elapsed_seconds"] is None, first
    if command == "loopback":
        steps = session.selftest()
        assert [step["state"] for step in steps].count("failed") == 0, steps
    with session:
        if "image" in options:
            for image in session.images(timeout=harness.TIMEOUT):
                assert image.bytes
        assert session.wait(harness.TIMEOUT)
    ours = session.summary()
    assert ours["elapsed_seconds"] >= (ours["seconds"] or 0) * 0.99, ours
    for summary in (ours, theirs):  # a loaded machine's
        summary["streams"].sort(key=lambda row: row["stream"])  # they are in the order in which they were heard
        summary["messages"] = [line for line in summary["messages"] if "the rate was not reached" not in line]
    compare(ours, theirs)
    return theirs


def test_capture():
    """Valid frames, damaged, doubled, lost, others'; two streams."""
    with harness.Folder() as folder:
        pattern = frames.prbs31(200000)
        streams = [frames.Stream(number, pattern) for number in (3, 900)]
        sent = [streams[i % 2].frame(200 + i) for i in range(60)]
        bad = bytearray(sent[10])
        bad[100] ^= 6
        sent[10] = bytes(bad)
        sent[20:22] = [sent[19]]
        sent += [b"\xff" * 12 + b"\x08\x06" + bytes(46), sent[40], sent[25][:80]]
        path = os.path.join(folder, "in.pcap")
        frames.write_pcap(path, sent)
        summary = both("capture", 3, port="net_pcap0,rx_pcap=" + path, gpu="host", frames=len(sent), end="never")
        assert summary["damage"] and summary["frames"]["lost"] and len(summary["streams"]) == 2, summary


def test_images():
    """Complete and incomplete ones, with their missing bytes."""
    with harness.Folder() as folder:
        sender = truth.Sender(range(12), streams=(0, 7))
        sender.packets = [packet for packet in sender.packets if packet[1:] not in ((3, 2), (8, 15), (8, 7))]
        path = truth.write_pcap(folder, "in.pcap", sender.frames())
        summary = both("capture", 3, port="net_pcap0,rx_pcap=" + path, gpu="host", frames=len(sender.packets),
                       image=truth.layout(folder))
        assert summary["images"][0]["incomplete"] == 4 and summary["images"][0]["first_incomplete"], summary


def test_loopback():
    name = harness.wire()
    summary = both("loopback", 0, port=name, tx_port=name, gpu="host", frames=5000, frame__size="64-1518", queues=2)
    assert summary["stages"] and summary["sender"], summary
    both("loopback", 0, port=name, tx_port=name, gpu="host", frames=5000, rate="200mbit")


def test_replay():
    with harness.Folder() as folder:
        path = os.path.join(folder, "out.pcap")
        summary = both("replay", 0, tx_port="net_pcap0,tx_pcap=" + path, gpu="host", frames=1000)
        assert summary["frames"]["received"] is None, summary
        assert [row["frames"]["sent"] for row in summary["streams"]] == [1000], summary["streams"]


def test_sending():
    """The caller's own frames, of which there are none: counted, and no success."""
    with gdrcap.Session(tx_port="net_null0", gpu="host", sender="host") as session:
        running = session.summary()
        harness.e2e.check_summary(running)
    summary = session.summary()
    harness.e2e.check_summary(summary)
    nothing = {key: 0 for key in ("submitted", "sent", "unsent", "refused", "bytes", "stalled", "failed")}
    assert running["sending"] == summary["sending"] == nothing and summary["sender"] is None, summary
    assert summary["result"] == "fail" and "no frame was sent" in summary["errors"][0], summary
    assert running["result"] == "running" and session.summary()["tx_stalled"] is None, running


def test_running():
    """While the run goes on, from another thread's point of view."""
    with gdrcap.Session(harness.loopback(frames=None)) as session:
        image = next(session.images(timeout=harness.TIMEOUT))
        summary = session.summary()
        assert summary["result"] == "running" and summary["errors"] == [], summary
        assert summary["images"][0]["complete"] >= 1 and image.complete
        harness.e2e.check_summary(summary)
