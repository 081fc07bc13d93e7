# SPDX-License-Identifier: BSD-3-Clause
"""One stream of GStreamer's by two ways, each of which loses some 5 % of the packets, other ones (ST
2022-7), into two ports with two queues each. What came by either is there, as the tcpdumps of both ways
have it."""
import contextlib
import json
import os
import random
import struct
import subprocess

import e2e
import other_sender
import pcapfile
import processes
import test_images_video as video

WIDTH, HEIGHT, PICTURES = 320, 240, 30
ROW = WIDTH * 2
PPS = 5000


def recorded():
    """The stream's frames, and the pictures as GStreamer itself has them."""
    with other_sender.Wire(sink=video.PORT) as wire, processes.folder() as folder:
        truth = os.path.join(folder, "sent.raw")
        with other_sender.Capture(wire, folder, video.layout(WIDTH, HEIGHT, video.UYVY[3]), "--match",
                                  "dst_port=%d" % video.PORT) as capture:
            video.gstreamer(wire, truth, video.UYVY[0], WIDTH, HEIGHT, PICTURES, 1460)
            seen = capture.seen()
        with open(truth, "rb") as file:
            sent = file.read()
    frames = [frame for frame in seen.frames if frame[36:38] == struct.pack(">H", video.PORT)]
    assert len(sent) == PICTURES * ROW * HEIGHT and seen.data == sent, len(sent)
    return frames, sent


def one_way(dice, frames):
    """Without some 5 %; from eight ports in turn, so that the kernel gives each queue some. Nothing looks
    at UDP's sum, 0 is none."""
    return [frame[:34] + struct.pack(">H", 6000 + i % 8) + frame[36:40] + b"\0\0" + frame[42:]
            for i, frame in enumerate(frames) if dice.random() >= 0.05] + [bytes(12) + other_sender.SENTINEL]


def assembled(frames, sent):
    """{time stamp: (picture with FILL in its holes, pixel groups that are not there)}, as specified."""
    pictures = {}
    for _, _, payload in other_sender.datagrams(frames):
        lines, stamp = video.lines_of(payload), payload[4:8]
        data, there = pictures.setdefault(stamp, (bytearray([other_sender.FILL]) * (ROW * HEIGHT),
                                                  bytearray(ROW * HEIGHT)))
        at = 14 + 6 * len(lines)
        for length, line, offset in lines:
            place = line * ROW + offset // 2 * 4
            data[place:place + length] = payload[at:at + length]
            there[place:place + length] = b"\1" * length
            at += length
    for i, stamp in enumerate(sorted(pictures)):
        data, there = pictures[stamp]
        truth = sent[i * ROW * HEIGHT:(i + 1) * ROW * HEIGHT]
        assert all(not came or byte == right for byte, right, came in zip(data, truth, there)), i
    return [(bytes(pictures[stamp][0]), pictures[stamp][1].count(0) // 4) for stamp in sorted(pictures)]


def played(folder, ways):
    """gdrcap's summary and bytes, and what tcpdump has of each way."""
    processes.tool("tcpreplay", "tcpreplay")
    out = os.path.join(folder, "out.raw")
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(e2e.VethPair("way%d" % way, "port%d" % way)) for way in range(2)]
        pcaps = [os.path.join(folder, "seen%d.pcap" % way) for way in range(2)]
        dumps = [stack.enter_context(processes.Tcpdump(pair.right, pcap, live=True))
                 for pair, pcap in zip(pairs, pcaps)]
        ports = sum((["--port", "net_af_packet%d,iface=%s,qpairs=2,framecnt=8192" % (way, pair.right)]
                     for way, pair in enumerate(pairs)), [])
        # As long as either way may bring more: open to the end.
        capture = stack.enter_context(other_sender.Counting(
            "capture", "--quiet", "--gpu", "host", *ports, "--queues", "2", "--idle-sleep", "1000",
            "--image", video.layout(WIDTH, HEIGHT, video.UYVY[3]) + ",legs=any,open=63,linger=60", "--match",
            "dst_port=%d" % video.PORT, "--save-images", out))
        capture.wait_until_running()
        players = [stack.enter_context(subprocess.Popen(
            ["tcpreplay", "-q", "-i", pair.left, "--pps=%d" % PPS,
             pcapfile.write_pcap(os.path.join(folder, "way%d.pcap" % way), frames, nano=False)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            for way, (pair, frames) in enumerate(zip(pairs, ways))]
        assert [player.wait(e2e.TIMEOUT) for player in players] == [0, 0]
        for dump, pcap in zip(dumps, pcaps):
            assert processes.wait_until(lambda: other_sender.ends_with(pcap, other_sender.SENTINEL),
                                        e2e.TIMEOUT), "no sentinel"
            said = dump.interrupt()
            assert "\n0 packets dropped by kernel" in said, said
        assert [pair.dropped() for pair in pairs] == [0, 0]
        seen = [[frame.data for frame in pcapfile.read(pcap)] for pcap in pcaps]
        summary = capture.end(sum(map(len, seen)), None)
    with open(out, "rb") as file:
        return summary, file.read(), seen


def test_each_loses_5_percent():
    dice = random.Random(7)
    frames, sent = recorded()
    ways = [one_way(dice, frames) for _ in range(2)]
    with processes.folder() as folder:
        summary, data, seen = played(folder, ways)
    images, = summary["images"]
    assert [pcapfile.differ(*pair) for pair in zip(seen, ways)] == [None, None]
    alone = [sum(not lost for _, lost in assembled(way, sent)) for way in seen]
    both = assembled(seen[0] + seen[1], sent)
    complete = sum(not lost for _, lost in both)
    assert max(alone) < complete < PICTURES, (alone, complete)
    assert (images["complete"], images["incomplete"]) == (complete, len(both) - complete), images
    assert data == b"".join(picture for picture, _ in both)
    assert images["pieces"]["lost"] == sum(lost for _, lost in both), images
    there = [{frame[42:] for frame in way[:-1]} for way in seen]
    # The second copy of a packet, while its image waits for its turn and once it was handed out. Of two
    # that are placed at the same time, by the threads of two queues, each may bring a part.
    again = images["frames"]["duplicate"] + images["frames"]["late"]
    split = images["frames"]["placed"] - len(there[0] | there[1])
    assert split >= 0 and again == len(there[0] & there[1]) - split, (split, images)
    other_sender.check_identities(summary, late=again)
    queues = [queue["received"] for queue in summary["queues"]]
    assert len(queues) == 4 and all(queues), json.dumps(summary["queues"])
