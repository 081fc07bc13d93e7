# SPDX-License-Identifier: BSD-3-Clause
"""Which frames a ConnectX puts into our queues, and into which. The traffic comes from the other
end of the software card's cable, from a sender that is no gdrcap."""
import ipaddress
import random
import struct

import pytest

import connectx
import e2e
import frames as own
import test_match

OTHERS = [packet.data for packet in test_match.PACKETS if packet.name != "local"]
RSS_QUEUES = 4
# What DPDK's driver gives its cards where nobody chooses a key: mlx5_rxq.c.
RSS_KEY = bytes.fromhex("2cc681d15bdbf4f7fca28319db1a3e946b9e38d92c9c03d1ad9944a7d9563d59"
                        "063c25f3fc1fdc2a")
SIZES = range(64, 1519, 7)


def own_frames(count):
    sizes = [SIZES[i % len(SIZES)] for i in range(count)]
    stream = own.Stream(0, own.prbs31(sum(sizes)))
    return [stream.frame(size) for size in sizes]


def mixed(ours, others, seed=1):
    """Ours in their order, the others anywhere between them."""
    order = [True] * len(ours) + [False] * len(others)
    random.Random(seed).shuffle(order)
    left, right = iter(ours), iter(others)
    return [next(left) if mine else next(right) for mine in order]


def check_rules(done, mode, *counts):
    """The card's own count of what its rules took, where it counts."""
    rules = [rule["frames"] for rule in done.summary["steering"]["rules"]]
    if mode in ("verbs", "verbs scalar"):
        counts = [None] * len(counts)
    assert rules == list(counts), (rules, counts, done)


# ---- others' traffic ----

@connectx.modes(*connectx.MODES)
def test_capture_among_others(mode):
    ours = own_frames(3000)
    others = OTHERS * 100
    done = connectx.capture(mixed(ours, others), "--frames", str(len(ours)), mode=mode)
    e2e.check_perfect(done.summary, len(ours))
    # They stay with the kernel: none of them is in our memory.
    assert done.summary["filtered"] == 0, done
    assert done.card(1, "soft_to_kernel") == len(others), done
    assert done.summary["match"]["applied"] == "none", done
    check_rules(done, mode, len(ours))


@connectx.modes("devx", "verbs flow scalar")
def test_loopback_among_others(mode):
    """On the sender's cable, too, there may be others."""
    done = connectx.loopback("--frame-size", "64-1518", "--rate", "20kpps", count=20000,
                             mode=mode, faults="pause=1,0.play=20", play=OTHERS * 10)
    done.check()
    assert done.card(1, "soft_to_kernel") == len(OTHERS) * 10 * 20, done
    check_rules(done, mode, 20000)


def test_own_frames_of_others_are_filtered():
    """What a rule takes and is none of ours is counted, and nothing else."""
    local = [packet.data for packet in test_match.PACKETS if packet.name == "local"] * 200
    ours = own_frames(1000)
    # It has our EtherType, not our header: the consumer sees that.
    done = connectx.capture(mixed(ours, local), "--frames", str(len(ours) + len(local)),
                            expect=None)
    e2e.check_identities(done.summary, done)
    assert done.frames["valid"] == len(ours), done
    assert done.frames["received"] == len(ours) + len(local), done
    assert done.card(1, "soft_to_kernel") == 0, done


# ---- rules ----

def differs(mode, rules, name):
    """What a card does not see: ports of a fragmented datagram, and, by the older engine, a tag
    that is not 802.1Q's."""
    if name == "udp4 first fragment":
        return any("port=" in rule for rule in rules)
    return name == "udp4 vlan 5 in 6" and "vlan=6" in rules and "flow" in mode


def check_case(mode, rules, meant):
    frames = [packet.data for packet in test_match.PACKETS] * test_match.REPEATS
    wanted = test_match.REPEATS * len([name for name in meant if not differs(mode, rules, name)])
    # To a card, a frame with another tag than 802.1Q's is untagged: the consumer knows better.
    more = test_match.REPEATS if rules == ["vlan=0"] else 0
    arguments = [word for rule in rules for word in ("--match", rule)]
    done = connectx.capture(frames, "--format", "custom", "--pattern", "none", *arguments,
                            "--frames", str(wanted + more), mode=mode)
    text = "%s, %s: %s" % (mode, rules, done)
    assert (done.frames["valid"], done.summary["filtered"]) == (wanted, more), text
    assert done.frames["received"] == wanted + more, text
    assert done.card(1, "soft_to_kernel") == len(frames) - wanted - more, text
    assert done.summary["match"] == {"rules": rules, "applied": "card"}, text
    assert sum(rule["frames"] for rule in done.summary["steering"]["rules"]) == wanted + more, text


CASES = [case for case in test_match.CASES if case[1]]


def test_match_devx():
    """Every rule in `make check-long`, else each of its words, alone and with others: test_match.py has the rest."""
    for rules, meant in e2e.some(CASES, 0, 4, 5, 7, 9, 14, 16, 17, 19, 21, 22):
        check_case("devx", rules, meant)


@pytest.mark.long
def test_match_verbs_flow():
    """The other engine has the same rules."""
    for rules, meant in [case for case in CASES if case[0] != ["vlan=0"]][::4]:
        check_case("verbs flow scalar", rules, meant)


@connectx.modes("devx", "verbs flow")
def test_refused_rule(mode):
    """In the card's own words, with the rule."""
    rules = ("ethertype=0x0806", "dst_ip=192.0.2.2,dst_port=12345")
    arguments = ("--match", rules[0], "--match", rules[1], "--format", "udp", "--frame-size", "100")
    # Of the newer engine's rules the driver makes one for itself, and two for one of ours.
    for i, number in enumerate((3, 5) if mode == "devx" else (1, 2)):
        done = connectx.loopback(*arguments, count=1, mode=mode, expect=1,
                                 faults="pause=1,1.refuse_rule=%d" % number)
        assert ('the card refuses rule %d, "%s": hardware refuses to create flow (No space '
                'left on device); change or remove the rule' % (i + 1, rules[i])
                in done.summary["errors"][0]), done


@pytest.mark.long  # of the other engine
def test_rule_that_the_engine_has_not():
    done = connectx.loopback("--match", "vlan=0", count=1, mode="verbs flow", expect=1)
    assert ('the card refuses rule 1, "vlan=0": mask enables non supported bits at its Ethernet '
            'header (Operation not supported)') in done.summary["errors"][0], done


# ---- several queues ----

def toeplitz(key, data):
    """Of Microsoft's RSS: bit by bit."""
    number = int.from_bytes(key, "big")
    hashed = 0
    for i in range(8 * len(data)):
        if data[i // 8] >> (7 - i % 8) & 1:
            hashed ^= number >> (8 * len(key) - 32 - i) & 0xFFFFFFFF
    return hashed


# The specification's own example.
assert toeplitz(bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c"
                              "6a42b73bbeac01fa"),
                bytes([66, 9, 149, 187, 161, 142, 100, 80]) + struct.pack(">HH", 2794, 1766)
                ) == 0x51CCC178


def flow(i, version):
    """(frame, what the card hashes of it)."""
    ports = (1024 + 7 * i, 4000)
    if version == 4:
        ends = ["10.%d.0.%d" % (i % 5, 1 + i % 250), "192.0.2.%d" % (1 + i % 9)]
        packet, kind = test_match.ipv4(test_match.udp(*ports), *ends), 0x0800
    else:
        ends = ["2001:db8::%x" % (1 + i), "2001:db8::ffff:%x" % (i % 3)]
        packet, kind = test_match.ipv6(test_match.udp(*ports), *ends), 0x86DD
    return (test_match.ethernet(kind, packet),
            b"".join(ipaddress.ip_address(end).packed for end in ends) +
            struct.pack(">HH", *ports))


@connectx.modes("devx", "verbs", "verbs flow scalar")
def test_spread_over_queues(mode):
    """Each flow's frames come out of the queue that the hash of its addresses and ports says."""
    flows = [flow(i, version) for i in range(200) for version in (4, 6)]
    wanted = [0] * RSS_QUEUES
    frames = []
    for i, (frame, hashed) in enumerate(flows):
        # So many that the sums are unlike.
        count = 1 + i % 11
        frames += [frame] * count
        wanted[toeplitz(RSS_KEY, hashed) % RSS_QUEUES] += count
    assert min(wanted) > 300, wanted
    random.Random(2).shuffle(frames)
    done = connectx.capture(frames, "--format", "custom", "--pattern", "none", "--match",
                            "dst_port=4000", "--queues", str(RSS_QUEUES), "--frames",
                            str(len(frames)), mode=mode)
    found = [queue["received"] for queue in done.summary["queues"]]
    assert found == wanted, (found, wanted, done)
    check_rules(done, mode, len(frames))


def test_streams_are_spread():
    """Our own streams differ in their source port."""
    streams, each = 32, 500
    done = connectx.loopback("--format", "udp", "--frame-size", "100", "--queues", str(RSS_QUEUES),
                             "--streams", str(streams), count=streams * each).check()
    sent = {row["stream"]: row["frames"]["sent"] for row in done.summary["streams"]}
    wanted = [0] * RSS_QUEUES
    for stream in range(streams):
        hashed = (ipaddress.ip_address("192.0.2.1").packed +
                  ipaddress.ip_address("192.0.2.2").packed +
                  struct.pack(">HH", 12345 + stream, 12345))
        wanted[toeplitz(RSS_KEY, hashed) % RSS_QUEUES] += sent[stream]
    found = [queue["received"] for queue in done.summary["queues"]]
    assert found == wanted and min(found) > 0, (found, wanted, done)


def test_no_ip_is_not_spread():
    """A card hashes IP: frames without it all come out of one queue."""
    ours = own_frames(2000)
    done = connectx.capture(ours, "--queues", "4", "--frames", str(len(ours)))
    e2e.check_perfect(done.summary, len(ours))
    assert sorted(queue["received"] for queue in done.summary["queues"]) == [0, 0, 0, len(ours)]
