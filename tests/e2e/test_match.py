# SPDX-License-Identifier: BSD-3-Clause
"""--match and match in YAML: which frames of mixed traffic are meant. On a port without rules of
its own, the consumer applies them."""
import collections
import ipaddress
import os
import struct

import pytest

import e2e
import frames as own
import pcapfile
import processes

pytestmark = pytest.mark.sanitized

A, B, C = (bytes([2, 0, 0, 0, 0, last]) for last in (0x0A, 0x0B, 0x0C))
Packet = collections.namedtuple("Packet", "name data")


def ethernet(kind, payload, src=A, dst=B, tags=()):
    head = dst + src
    for tpid, vid in tags:
        head += struct.pack(">HH", tpid, vid)
    return (head + struct.pack(">H", kind) + payload).ljust(60, b"\0")


def udp(src, dst, payload=bytes(40)):
    return struct.pack(">HHHH", src, dst, 8 + len(payload), 0) + payload


def ipv4(payload, src="192.0.2.1", dst="192.0.2.2", protocol=17, fragment=0, options=b""):
    return struct.pack(">BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) +
                       len(payload), 1, fragment, 64, protocol, 0,
                       ipaddress.IPv4Address(src).packed,
                       ipaddress.IPv4Address(dst).packed) + options + payload


def ipv6(payload, src="2001:db8::1", dst="2001:db8::2", following=17):
    return struct.pack(">IHBB16s16s", 0x60000000, len(payload), following, 64,
                       ipaddress.IPv6Address(src).packed,
                       ipaddress.IPv6Address(dst).packed) + payload


UDP4 = ipv4(udp(1000, 4000))
UDP6 = ipv6(udp(1000, 4000))
PACKETS = [
    Packet("udp4", ethernet(0x0800, UDP4)),
    Packet("udp4 other port", ethernet(0x0800, ipv4(udp(1000, 4001)))),
    Packet("udp4 from other port", ethernet(0x0800, ipv4(udp(1001, 4000)))),
    Packet("udp4 other net", ethernet(0x0800, ipv4(udp(1000, 4000), src="198.51.100.7",
                                                   dst="198.51.100.8"))),
    Packet("udp4 options", ethernet(0x0800, ipv4(udp(1000, 4000), options=b"\1" * 12))),
    Packet("udp4 first fragment", ethernet(0x0800, ipv4(udp(1000, 4000), fragment=0x2000))),
    # Its first bytes only look like ports.
    Packet("udp4 later fragment", ethernet(0x0800, ipv4(udp(1000, 4000), fragment=100))),
    Packet("tcp4", ethernet(0x0800, ipv4(udp(1000, 4000), protocol=6))),
    Packet("udp4 to C", ethernet(0x0800, UDP4, dst=C)),
    Packet("udp4 from C", ethernet(0x0800, UDP4, src=C)),
    Packet("udp4 vlan 5", ethernet(0x0800, UDP4, tags=[(0x8100, 5)])),
    Packet("udp4 vlan 5 priority", ethernet(0x0800, UDP4, tags=[(0x8100, 0xE005)])),
    Packet("udp4 vlan 6", ethernet(0x0800, UDP4, tags=[(0x8100, 6)])),
    Packet("udp4 vlan 5 in 6", ethernet(0x0800, UDP4, tags=[(0x88A8, 6), (0x8100, 5)])),
    Packet("udp6", ethernet(0x86DD, UDP6)),
    Packet("udp6 other net", ethernet(0x86DD, ipv6(udp(1000, 4000), dst="2001:db8:1::2"))),
    Packet("udp6 vlan 5", ethernet(0x86DD, UDP6, tags=[(0x8100, 5)])),
    Packet("tcp6", ethernet(0x86DD, ipv6(udp(1000, 4000), following=6))),
    Packet("arp", ethernet(0x0806, bytes(28), dst=b"\xff" * 6)),
    Packet("local", ethernet(0x88B5, bytes(46))),
    Packet("short", b"\xff" * 14),
]
NAMES = [packet.name for packet in PACKETS]
UDP4_ALL = [name for name in NAMES if name.startswith("udp4")]
TO_4000 = [name for name in NAMES if name.startswith("udp") and
           name not in ("udp4 other port", "udp4 later fragment")]

# Rules, and the names of the frames that they mean.
CASES = [
    (["ethertype=0x0806"], ["arp"]),
    (["ethertype=0x88b5"], ["local"]),
    (["ethertype=0x0800"], UDP4_ALL + ["tcp4"]),
    (["ethertype=0x86dd"], ["udp6", "udp6 other net", "udp6 vlan 5", "tcp6"]),
    (["dst_mac=02:00:00:00:00:0c"], ["udp4 to C"]),
    (["src_mac=02:00:00:00:00:0c"], ["udp4 from C"]),
    (["dst_mac=ff:ff:ff:ff:ff:ff"], ["arp", "short"]),
    (["vlan=5"], ["udp4 vlan 5", "udp4 vlan 5 priority", "udp6 vlan 5"]),
    (["vlan=6"], ["udp4 vlan 6", "udp4 vlan 5 in 6"]),
    (["vlan=0"], [name for name in NAMES if "vlan" not in name]),
    (["vlan=5,ethertype=0x86dd"], ["udp6 vlan 5"]),
    (["dst_port=4000"], TO_4000),
    (["dst_port=4001"], ["udp4 other port"]),
    (["src_port=1001"], ["udp4 from other port"]),
    (["src_port=1000,dst_port=4000,ethertype=0x86dd"],
     ["udp6", "udp6 other net", "udp6 vlan 5"]),
    (["dst_ip=192.0.2.2"], [name for name in UDP4_ALL + ["tcp4"] if name != "udp4 other net"]),
    (["dst_ip=198.51.100.0/24"], ["udp4 other net"]),
    (["src_ip=198.51.100.7/32,dst_port=4000"], ["udp4 other net"]),
    (["src_ip=128.0.0.0/1"], UDP4_ALL + ["tcp4"]),
    (["dst_ip=2001:db8::/48"], ["udp6", "udp6 vlan 5", "tcp6"]),
    (["dst_ip=2001:db8:1::2"], ["udp6 other net"]),
    (["vlan=5,dst_ip=192.0.2.0/24,dst_port=4000"], ["udp4 vlan 5", "udp4 vlan 5 priority"]),
    (["ethertype=0x0806", "dst_port=4001", "vlan=6"],
     ["arp", "udp4 other port", "udp4 vlan 6", "udp4 vlan 5 in 6"]),
    (["dst_port=9"], []),
]
REPEATS = 20


def capture(directory, frames, *arguments, expect):
    path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), frames)
    return processes.run_json("capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s" % path,
                              "--frames", str(len(frames)), "--seconds", "60", *arguments,
                              expect=expect)


def check_case(directory, rules, meant, arguments):
    frames = [packet.data for packet in PACKETS] * REPEATS
    summary = capture(directory, frames, "--format", "custom", "--pattern", "none", *arguments,
                      expect=0 if meant else 3)
    counts = (summary["frames"]["valid"], summary["filtered"])
    wanted = (len(meant) * REPEATS, len(frames) - len(meant) * REPEATS)
    assert counts == wanted, "%s: (valid, filtered) %s, not %s: %s" % (
        rules, counts, wanted, processes.text_of(summary))
    assert summary["match"] == {"rules": rules, "applied": "software"}, summary["match"]
    assert summary["frames"]["received"] == len(frames), summary["frames"]
    # Nothing tells one frame from another, so nobody can know what was lost.
    assert summary["frames"]["lost"] is None, summary["frames"]


def test_command_line():
    with processes.folder() as directory:
        for rules, meant in CASES:
            arguments = [word for rule in rules for word in ("--match", rule)]
            check_case(directory, rules, meant, arguments)


def test_yaml():
    with processes.folder() as directory:
        for rules, meant in CASES[5:9] + CASES[-3:]:
            path = os.path.join(directory, "rules.yaml")
            with open(path, "w") as file:
                file.write("match:\n" + "".join("  - %s\n" % rule for rule in rules))
            check_case(directory, rules, meant, ("--config", path))


def test_what_is_saved():
    """The frames that are meant are damaged ones here; the file shows which they were."""
    with processes.folder() as directory:
        path = os.path.join(directory, "bad.pcapng")
        for rules, meant in (CASES[7], CASES[11], CASES[-2]):
            arguments = [word for rule in rules for word in ("--match", rule)]
            summary = capture(directory, [packet.data for packet in PACKETS], "--format",
                              "custom", "--pattern", "constant", "--pattern-value", "255",
                              "--save-damaged", path, *arguments, expect=3)
            assert summary["frames"]["damaged"] == len(meant), summary["frames"]
            got = [frame.data for frame in pcapfile.read(path)]
            wanted = [packet.data for packet in PACKETS if packet.name in meant]
            assert pcapfile.differ(got, wanted) is None, (rules, pcapfile.differ(got, wanted))


def test_own_frames():
    """Rules stand before the own format's, too."""
    stream = own.Stream(0, own.prbs31(100 * 1500))
    frames = [stream.frame(512) for _ in range(100)]
    strangers = [packet.data for packet in PACKETS]
    with processes.folder() as directory:
        summary = capture(directory, frames + strangers, "--match",
                          "dst_mac=02:00:00:00:00:02,ethertype=0x88b5", expect=0)
        processes.check_counts(summary, valid=100, damaged=0, lost=0, filtered=len(strangers))
        summary = capture(directory, frames, "--match", "dst_mac=02:00:00:00:00:03", expect=3)
        assert summary["filtered"] == 100 and summary["frames"]["valid"] == 0, summary
    assert summary["match"]["applied"] == "software", summary["match"]


def test_expected_from_a_file():
    """What is filtered is not expected: a capture of mixed traffic passes against its own file, and what is missing of
    the frames that are meant is lost."""
    stream = own.Stream(0, own.prbs31(100 * 1500))
    meant = [stream.frame(512) for _ in range(30)]
    mixed = [frame for pair in zip(meant, [packet.data for packet in PACKETS] * 30) for frame in pair]
    rule = "--match", "dst_mac=02:00:00:00:00:02,ethertype=0x88b5"
    with processes.folder() as directory:
        expect = pcapfile.write_pcap(os.path.join(directory, "expect.pcap"), mixed)
        for frames, lost in ((mixed, 0), (meant, 0), (mixed[:20] + mixed[22:], 1), (mixed[:-2], 1)):
            path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), frames)
            summary = processes.run_json("capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s" % path, "--expect", expect,
                                         *rule, expect=3 if lost else 0)
            processes.check_counts(summary, sent=30, valid=30 - lost, lost=lost, damaged=0,
                                   filtered=len(frames) - 30 + lost)
        none = "--match", "ethertype=0x9999"
        result = e2e.run("capture", "--port", "net_null0", "--expect", expect, *none, expect=1)
        assert "match accepts none of the file's 60 frames" in result.err, result
        # What a run sends to itself is counted as sent.
        result = e2e.run("loopback", "--pcap", expect, *rule, expect=2)
        assert "match: no rule names 30 frames of" in result.err, result
        processes.run_json("loopback", "--pcap", pcapfile.write_pcap(path, meant), *rule)


def test_no_rules():
    stream = own.Stream(0, own.prbs31(10 * 1500))
    with processes.folder() as directory:
        summary = capture(directory, [stream.frame(64) for _ in range(10)], expect=0)
    assert summary["match"] == {"rules": [], "applied": "none"}, summary["match"]


def test_rules_that_leave_out_our_own_frames():
    """They would count as lost."""
    run = ("loopback", "--port", "ring:wire", "--frames", "1000", "--streams", "2", "--format",
           "udp", "--src-port", "4000")
    for rule in ("ethertype=0x0806", "src_port=4000", "vlan=5"):
        result = e2e.run(*run, "--match", rule, expect=2)
        assert "no rule names the frames of stream" in result.err, result
    summary = e2e.run_json(*run, "--match", "src_port=4000", "--match", "src_port=4001")
    assert summary["frames"]["valid"] == 1000 and summary["filtered"] == 0, summary


def test_invalid_rules():
    """Refused before anything starts; the text names the rule and what is wrong with it."""
    for rule, words in (("", ["match"]), ("vlan", ["vlan"]), ("vlan=", ["vlan"]),
                        ("vlan=4095", ["vlan", "4094"]), ("vlan=-1", ["vlan"]),
                        ("vlan=5,vlan=6", ["vlan", "twice"]), ("colour=red", ["colour"]),
                        ("dst_port=65536", ["dst_port", "65535"]), ("dst_port=http", ["dst_port"]),
                        ("dst_ip=192.0.2", ["dst_ip"]), ("dst_ip=192.0.2.0/33", ["dst_ip", "32"]),
                        ("dst_ip=2001:db8::/129", ["dst_ip", "128"]),
                        ("src_ip=192.0.2.1,dst_ip=2001:db8::1", ["ip"]),
                        ("dst_mac=02:00:00", ["dst_mac"]), ("ethertype=0x12345", ["ethertype"]),
                        ("vlan=5,", ["match"]), (",", ["match"]), ("x" * 300, ["match"]),
                        ("dst_ip=192.0.2.0/0", ["dst_ip"])):
        result = e2e.run("capture", "--port", "net_null0", "--match", rule, expect=2)
        for word in words:
            assert word in result.err, "'%s' is not named: %s" % (word, result)
        assert len(result.err) < 2000, result
    nine = [word for i in range(9) for word in ("--match", "vlan=%d" % (i + 1))]
    result = e2e.run("capture", "--port", "net_null0", *nine, expect=2)
    assert "match" in result.err and "8" in result.err, result
    with processes.folder() as directory:
        path = os.path.join(directory, "rules.yaml")
        with open(path, "w") as file:
            file.write("port: net_null0\nmatch:\n  - vlan=5\n  - vlan=many\n")
        result = e2e.run("capture", "--config", path, expect=2)
        assert "rules.yaml" in result.err and "vlan" in result.err and "4" in result.err, result
