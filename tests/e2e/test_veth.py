# SPDX-License-Identifier: BSD-3-Clause
"""A veth pair: frames that the kernel carries, by AF_PACKET."""
import contextlib
import json
import os
import signal
import socket
import struct

import e2e
import pcapfile
import processes

FRAMES = 100000


def veth_loopback(pair, *arguments, frames=FRAMES):
    """The kernel may drop, and says how many: lost, but never wrong."""
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
    assert summary["lost_by"]["nic_missed"] is not None, text
    assert summary["lost_by"]["unexplained"] <= pair.dropped(), text
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


def test_idle_sleep():
    """Threads that sleep in between miss nothing for it: what comes meanwhile is in the ring."""
    with e2e.VethPair() as pair:
        for microseconds, rate in (("1000", "20kpps"), ("10000", "5kpps")):
            veth_loopback(pair, "--idle-sleep", microseconds, "--rate", rate, frames=10000)


def test_jumbo():
    """The kernel's ring follows the frame size."""
    with e2e.VethPair(mtu=9000) as pair:
        summary = veth_loopback(pair, "--frame-size", "64,9018,5000,2000", frames=2000)
        assert summary["cut"] == 0, summary


def test_drops_that_no_gap_shows():
    """A receiver without a core at the end of a stream whose sender says no end: what the kernel dropped fails the run."""
    with e2e.VethPair() as pair:
        with processes.Running("capture", "--quiet", "--gpu", "host", "--port", "net_af_packet1,iface=%s,framecnt=512" % pair.right,
                               "--idle", "0.5") as receiver:
            receiver.wait_until_running()
            with processes.Running("replay", "--quiet", "--tx-port", "net_af_packet0,iface=%s" % pair.left, "--end", "never",
                                   "--rate", "20kpps", "--seconds", "600") as sender:
                receiver.wait_for_frames("received", 1000)
                receiver.signal(signal.SIGSTOP)
                sender.wait_until_running()
                sender.wait_for_frames("sent", json.loads(sender.out[-1])["frames"]["sent"] + 20000)
                sender.signal(signal.SIGINT)
                sender.finish()
            receiver.signal(signal.SIGCONT)
            summary = receiver.finish(3)
    lost_by = summary["lost_by"]
    assert summary["frames"]["lost"] < lost_by["in_run"] <= lost_by["nic_missed"], (summary["frames"], lost_by)
    assert any("dropped by a port in the run" in text for text in summary["errors"]), summary["errors"]


def play(interface, frames):
    """Frames of another program's."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((interface, 0))
        for frame in frames:
            sender.send(frame)


def custom(number, length):
    return bytes(12) + b"\x88\xb6" + number.to_bytes(8, "big") + bytes(length - 22)


def test_cut_frames_are_damaged():
    """Frames beyond --frame-size, of which the kernel's ring has only the beginning, in a layout
    without lengths: each is damaged and counted as cut, whole ones beside them are right."""
    lengths = [8246, 60, 1514, 9014, 1967, 2300, 2048, 1983, 1982]
    whole = sum(length < 1968 for length in lengths)
    with e2e.VethPair(mtu=9000) as pair:
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s" % pair.right,
                               "--format", "custom", "--sequence-offset", "14",
                               "--sequence-bytes", "8", "--pattern", "constant",
                               "--custom-payload", "22", "--frames", str(len(lengths))) as capture:
            capture.wait_until_running()
            play(pair.left, (custom(*each) for each in enumerate(lengths)))
            summary = capture.finish(expect=3)
        processes.check_counts(summary, received=len(lengths), valid=whole,
                               damaged=len(lengths) - whole, lost=0)
        assert summary["cut"] == len(lengths) - whole, summary
        assert "only the beginning came" in processes.messages(summary), summary
        assert "--frame-size 9018 takes them all" in capture.result().err, capture.result()


def test_own_cut_frames_are_damaged():
    with e2e.VethPair(mtu=9000) as pair:
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s,framecnt=4096" %
                               pair.right) as capture:
            capture.wait_until_running()
            e2e.run_json("replay", "--quiet", "--tx-port", "net_af_packet0,iface=%s" % pair.left,
                         "--frame-size", "9018,1518", "--frames", "1000")
            summary = capture.finish(expect=3)
        lost = summary["frames"]["lost"]
        assert summary["cut"] == summary["frames"]["damaged"] >= 500 - lost, summary
        assert summary["frames"]["valid"] >= 500 - lost, summary
        e2e.check_identities(summary)


def test_what_no_socket_saw():
    """Frames that the kernel drops on an interface before its sockets: beyond its MTU."""
    with e2e.VethPair() as pair:
        pair.ip("link", "set", pair.left, "mtu", "2000")
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s" % pair.right,
                               "--format", "custom", "--sequence-offset", "14",
                               "--sequence-bytes", "8", "--pattern", "constant",
                               "--custom-payload", "22", "--frames", "2") as capture:
            capture.wait_until_running()
            for each in enumerate((60, 1600, 1700, 1800, 60)):
                with contextlib.suppress(OSError):  # the kernel says no to each that it drops
                    play(pair.left, [custom(*each)])
            summary = capture.finish(expect=3)
        processes.check_counts(summary, received=2, lost=3)
        assert "interface %s: frames that the kernel dropped before any program could have them: 3" % pair.right in processes.messages(
            summary), summary


def test_what_the_kernel_does_not_send():
    """The driver takes the kernel's no for a yes: what is left in its ring is looked at."""
    frames = [custom(number, 60) for number in range(8)]
    with e2e.VethPair() as pair, processes.folder() as directory:
        pair.ip("link", "set", pair.left, "mtu", "2000")
        path = os.path.join(directory, "in.pcap")
        for last, status in ((60, 0), (1600, 1)):
            pcapfile.write_pcap(path, frames + [custom(8, last)])
            summary = e2e.run_json("replay", "--quiet", "--pcap", path, "--tx-port",
                                   "net_af_packet0,iface=%s" % pair.left, "--rate", "max",
                                   expect=status)
            said = "still with the kernel" in processes.messages(summary)
            assert said == bool(status), summary


def fragments():
    """The two parts of an IPv4 datagram."""
    frames = []
    for more, offset in ((True, 0), (False, 64)):
        header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + 64, 7, more << 13 | offset // 8, 64,
                             253, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
        total = sum(struct.unpack(">10H", header))
        total = (total & 0xffff) + (total >> 16)
        header = header[:10] + struct.pack(">H", ~total & 0xffff) + header[12:]
        frames.append(bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]) + header +
                      bytes([offset]) * 64)
    return frames


def test_fragments_come_as_sent():
    """The kernel would put them together for the sockets of DPDK's driver."""
    frames = fragments() + [custom(0, 60)]
    with e2e.VethPair() as pair, processes.folder() as directory:
        path = os.path.join(directory, "all.pcapng")
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s" % pair.right,
                               "--save", path, "--frames", "3") as capture:
            capture.wait_until_running()
            play(pair.left, frames)
            capture.finish(expect=None)
        got = [frame.data for frame in pcapfile.read_capture(path).frames]
        assert pcapfile.differ(got, frames) is None, pcapfile.differ(got, frames)


def test_two_captures_on_one_interface():
    """Each has all frames, whatever the numbers of their processes are: both are 1."""
    with e2e.VethPair() as pair, contextlib.ExitStack() as stack:
        captures = [stack.enter_context(processes.Running(
            "capture", "--port", "net_af_packet0,iface=%s,qpairs=%d" % (pair.right, queues),
            "--queues", str(queues), "--frames", "200", prefix=("unshare", "--pid", "--fork")))
            for queues in (1, 2)]
        for capture in captures:
            capture.wait_until_running()
        e2e.run_json("replay", "--quiet", "--tx-port", "net_af_packet0,iface=%s" % pair.left,
                     "--frames", "200", "--rate", "1kpps", "--streams", "4")
        for capture in captures:
            processes.check_counts(capture.finish(), valid=200, lost=0)


def test_descriptors_are_not_its_ring():
    with e2e.VethPair() as pair:
        run = ("replay", "--tx-port", "net_af_packet0,iface=%s" % pair.left, "--frames", "1")
        assert "means nothing to port" in e2e.run(*run, "--descriptors", "512").err
        assert "means nothing to port" not in e2e.run(*run).err


def promiscuity(pair):
    return json.loads(pair.ip("-d", "-j", "link", "show", pair.right))[0]["promiscuity"]


def test_an_interface_is_given_back():
    """It hears all while somebody captures, and no longer; what others want of it stays."""
    for driver in ("af_packet", "af_xdp"):
        with e2e.VethPair() as pair:
            for others in (0, 1):
                with processes.Running("capture", "--port", "net_%s0,iface=%s" % (
                        driver, pair.right)) as capture:
                    capture.wait_until_running_on(driver)
                    assert promiscuity(pair) > others, driver
                    capture.signal(signal.SIGTERM)
                    capture.finish(expect=None)
                assert promiscuity(pair) == others, driver
                pair.ip("link", "set", pair.right, "promisc", "on")


def refused(text, *arguments, expect=1, **options):
    result = e2e.run(*arguments, expect=expect, **options)
    assert text in result.err, "not said: %r: %s" % (text, result)


def test_each_cause_has_its_words():
    """The driver would say -1 or -ENODEV to all of these."""
    with e2e.VethPair() as pair:
        port = "net_af_packet0,iface=%s" % pair.left
        refused("must name one interface", "capture", "--port", "net_af_packet0", expect=2)
        refused("must name one interface", "capture", "--port", "net_af_xdp0,queue_count=1", expect=2)
        refused('no interface "nosuch0"', "capture", "--port", "net_af_packet0,iface=nosuch0")
        refused('no interface "nosuch0"', "capture", "--port", "net_af_xdp0,iface=nosuch0")
        refused("framesz=2048 holds frames of up to 1971 bytes", "capture", "--port",
                port + ",framesz=2048", "--frame-size", "9018", expect=2)
        refused("framesz=2050 is not a multiple of 16", "capture", "--port",
                port + ",framesz=2050", expect=2)
        refused('no argument "frames"', "capture", "--port", port + ",frames=100", expect=2)
        refused("has an MTU of 1500, and frames of 9018 bytes need 9000", "replay", "--tx-port",
                port, "--frame-size", "9018", "--frames", "1")
        refused("raw sockets", "capture", "--port", port, **processes.nobody())


def test_a_link_that_is_down():
    """What a ConnectX may lack is no cause of a veth's."""
    with e2e.VethPair() as pair:
        pair.ip("link", "set", pair.right, "down")
        result = e2e.run("loopback", "--tx-port", "net_af_packet0,iface=%s" % pair.left, "--port",
                         "net_af_packet1,iface=%s" % pair.right, "--frames", "10", expect=3)
        assert "ip link set INTERFACE up" in result.err + result.out, result
        assert "InfiniBand" not in result.err + result.out, result


def a_receiver_that_stands_still(driver, room):
    """Its process is stopped: what fits the kernel's ring of `room` frames is received when it runs
    again, what did not is missed, to the frame."""
    first, then = 4000, 10
    with e2e.VethPair() as pair:
        with processes.Running("capture", "--port", "net_%s0,iface=%s" % (driver, pair.right),
                               "--format", "custom", "--sequence-offset", "14",
                               "--sequence-bytes", "8", "--pattern", "constant",
                               "--custom-payload", "22", "--frames", str(room + then)) as capture:
            capture.wait_until_running_on(driver)
            capture.signal(signal.SIGSTOP)
            os.waitid(os.P_PID, capture.process.pid, os.WSTOPPED)  # all of its threads
            play(pair.left, (custom(number, 60) for number in range(first)))
            lost_before = pair.dropped()
            capture.signal(signal.SIGCONT)
            capture.wait_for_frames("received", room)
            play(pair.left, (custom(number, 60) for number in range(first, first + then)))
            summary = capture.finish(expect=3)
        processes.check_counts(summary, received=room + then, valid=room + then,
                               lost=first - room)
        assert summary["lost_by"]["nic_missed"] == first - room - lost_before, summary["lost_by"]
        assert summary["lost_by"]["unexplained"] == lost_before, summary["lost_by"]


def test_what_af_packet_missed():
    a_receiver_that_stands_still("af_packet", 512)


def test_what_af_xdp_missed():
    a_receiver_that_stands_still("af_xdp", 1024)


def test_capture_hears_nothing():
    """An interface that nobody plays into: a run that received nothing is no success."""
    with e2e.VethPair() as pair:
        summary = e2e.run_json("capture", "--port", "net_af_packet0,iface=%s" % pair.right,
                               "--seconds", "1", expect=3)
        assert summary["frames"]["valid"] == 0, summary["frames"]
