# SPDX-License-Identifier: BSD-3-Clause
"""Loopback over a veth pair: frames that the kernel carries, by AF_PACKET at both ends."""
import json

import e2e

FRAMES = 100000


def veth_loopback(pair, *arguments, frames=FRAMES):
    """The kernel may drop, and the driver does not count that: lost, but never wrong."""
    summary = e2e.run_json("loopback", "--quiet", "--tx-port",
                           "net_af_packet0,iface=%s" % pair.left, "--port",
                           "net_af_packet1,iface=%s" % pair.right, "--frames", str(frames),
                           *arguments, expect=None)
    e2e.check_identities(summary)
    text = json.dumps(summary, indent=1)[:4000]
    counts = summary["frames"]
    assert counts["sent"] == frames, text
    assert counts["damaged"] == counts["duplicate"] == counts["reordered"] == 0, text
    assert counts["valid"] > 0, text
    assert summary["bits"]["wrong"] == 0, text
    if counts["lost"] == 0:
        assert summary["result"] == "pass", text
    else:
        assert summary["lost_by"]["unexplained"] > 0 or summary["lost_by"]["nic_missed"], text
    return summary


def test_loopback():
    with e2e.VethPair() as pair:
        summary = veth_loopback(pair, "--frame-size", "64-1518")
        assert summary["memory"]["kind"] in ("host", "pinned"), summary["memory"]


def test_formats():
    with e2e.VethPair() as pair:
        veth_loopback(pair, "--format", "udp", frames=10000)
        veth_loopback(pair, "--frame-size", "64", frames=10000)
        veth_loopback(pair, "--pattern", "random", "--streams", "16", frames=10000)


def test_capture_hears_nothing():
    """An interface that nobody plays into: a run that received nothing is no success."""
    with e2e.VethPair() as pair:
        summary = e2e.run_json("capture", "--port", "net_af_packet0,iface=%s" % pair.right,
                               "--seconds", "1", expect=3)
        assert summary["frames"]["valid"] == 0, summary["frames"]


if __name__ == "__main__":
    e2e.main(globals())
