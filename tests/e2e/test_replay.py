# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap replay: what is in the file is what other tools see on the wire, and when it should be."""
import json
import os
import re
import resource
import signal
import struct
import time

import e2e
import frames as own
import pace
import pcapfile
import processes

FILE_FRAMES = processes.scaled(100000, 20000)
RATE = 30000  # frames a second


def replay_to_file(directory, *arguments, expect=0):
    """(summary, frames as another writer of files saw them go)."""
    path = os.path.join(directory, "sent.pcap")
    summary = processes.run_json("replay", "--quiet", "--tx-port", "net_pcap0,tx_pcap=%s" % path,
                                 *arguments, expect=expect)
    return summary, pcapfile.read(path)


def timed_to_file(directory, *arguments):
    """(summary, frames, what the machine did meanwhile)."""
    path = os.path.join(directory, "sent.pcap")
    summary, machine = pace.replay("--tx-port", "net_pcap0,tx_pcap=%s" % path, *arguments)
    return summary, pcapfile.read(path), machine


def numbered_frames(count):
    """All different, of many sizes."""
    return [own.DESTINATION + own.SOURCE + b"\x88\xb6" + struct.pack(">I", i) +
            bytes([i % 251]) * (46 + i * 37 % 1451) for i in range(count)]


def check_same(got, wanted):
    got = [frame.data for frame in got]
    assert pcapfile.differ(got, wanted) is None, pcapfile.differ(got, wanted)


# ---- the frames ----

def test_failed_start_keeps_the_file():
    """What is sent into a file replaces it when the run starts: one that cannot start leaves it as it is, and makes none."""
    run = "replay", "--quiet", "--frames", "100", "--frame-size", "64"
    with processes.folder() as directory:
        path, link, absent = (os.path.join(directory, name) for name in ("there", "link", "absent"))
        with open(path, "wb") as file:
            file.write(b"precious" * 10000)
        os.link(path, link)
        for port in (path, absent):
            port = "net_pcap0,tx_pcap=" + port
            for status, *arguments in ((1, port, "--tx-port", "net_af_packet0,iface=nowhere9"), (2, port, "--queues", "2"),
                                       (1, port + ",tx_pcap=/nowhere/at/all", "--queues", "2")):
                e2e.run(*run, "--tx-port", *arguments, expect=status)
                assert os.path.getsize(path) == 80000 and not os.path.exists(absent), arguments
        for port in (path, absent):
            processes.run_json(*run, "--tx-port", "net_pcap0,tx_pcap=" + port)
            assert len(pcapfile.read(port)) >= 100  # and the end of the stream
        assert os.path.samefile(path, link)
        both = "net_pcap0,tx_pcap=%s,tx_pcap=%s" % (path, absent)
        processes.run_json(*run, "--queues", "2", "--tx-port", both)
        assert len(pcapfile.read(path)) >= 50 and len(pcapfile.read(absent)) >= 50


def test_to_a_full_disk():
    """The driver of files does not say that a write failed: the file is looked at."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    with processes.folder() as directory:
        path = os.path.join(directory, "sent.pcap")
        summary = processes.run_json("replay", "--quiet", "--tx-port",
                                     "net_pcap0,tx_pcap=%s" % path, "--frames", "1000",
                                     "--frame-size", "1018", "--end", "never", expect=3,
                                     preexec_fn=limit)
        whole = (100000 - 24) // (16 + 1014)
        assert summary["sender"]["errors"] == 1000 - whole, processes.text_of(summary)
        text = " ".join(summary["messages"])
        assert path in text and "up to frame %d of 1000" % whole in text, text


def test_to_no_file():
    """Nobody can look into a device or a pipe: that is said beforehand, and no number of errors is claimed."""
    for path, told in (("/dev/full", True), ("/dev/null", False)):
        summary = processes.run_json("replay", "--quiet", "--tx-port", "net_pcap0,tx_pcap=%s" % path, "--frames", "1000",
                                     "--frame-size", "1018")
        assert summary["sender"]["errors"] == (None if told else 0), processes.text_of(summary)
        assert any(text.startswith("%s is a pipe or a device" % path) for text in summary["messages"]) == told, summary


def test_loops():
    wanted = numbered_frames(333)
    with processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), wanted)
        for loops in (1, 7):
            summary, got = replay_to_file(directory, "--pcap", path, "--rate", "max", "--loops",
                                          str(loops))
            check_same(got, wanted * loops)
            processes.check_sender(summary, 333 * loops)
        # Whichever comes first: frames, and time, which is long enough for a first frame.
        summary, got = replay_to_file(directory, "--pcap", path, "--rate", "max", "--loops",
                                      "forever", "--frames", "1000")
        check_same(got, (wanted * 4)[:1000])
        processes.check_sender(summary, 1000)
        summary, got = replay_to_file(directory, "--pcap", path, "--rate", "200pps", "--loops",
                                      "forever", "--seconds", "2")
        # The first one is due at once. So long the sender had, which is late to stop where it has no core.
        assert len(got) <= 200 * summary["elapsed_seconds"] + 1, summary
        check_same(got, (wanted * (len(got) // 333 + 1))[:len(got)])
        processes.check_sender(summary, len(got))


def test_single_frame():
    with processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), numbered_frames(1))
        summary, got = replay_to_file(directory, "--pcap", path)
        check_same(got, numbered_frames(1))
        summary, got = replay_to_file(directory, "--pcap", path, "--loops", "50", "--rate", "max")
        check_same(got, numbered_frames(1) * 50)


def test_larger_than_its_memory():
    """A file that may not be loaded whole is read while it is sent."""
    wanted = numbered_frames(6000)
    assert sum(map(len, wanted)) > 4 << 20
    with processes.folder() as directory:
        path = pcapfile.write_pcapng(os.path.join(directory, "in.pcapng"), wanted)
        for arguments in (("--rate", "max"), ("--rate", "20kpps")):
            summary, got = replay_to_file(directory, "--pcap", path, "--pcap-memory", "1M",
                                          "--loops", "2", *arguments)
            check_same(got, wanted * 2)
            processes.check_sender(summary, 12000)


def test_pattern():
    """Frames of docs/frame-format.md, as an independent implementation writes them."""
    sizes = (64, 512, 1518)
    with processes.folder() as directory:
        summary, got = replay_to_file(directory, "--frame-size", "64,512,1518", "--frames", "300",
                                      "--src-mac", own.SOURCE.hex(":"))
        # Without: the port's own address, here that of DPDK's driver for files.
        _, plain = replay_to_file(directory, "--frames", "1")
    assert plain[0].data[6:12] == b"\x02pcap\0", plain[0].data.hex()
    processes.check_sender(summary, 300)
    stream = own.Stream(0, own.prbs31(sum(sizes) * 100))
    for index, frame in enumerate(got[:300]):
        wanted = stream.frame(sizes[index % 3])
        head = own.ETHERNET_BYTES
        # All but the time of sending and the CRC over it.
        for part in (slice(0, head + 24), slice(head + 36, None)):
            assert frame.data[part] == wanted[part], "frame %d: %s, not %s" % (
                index, frame.data.hex(), wanted.hex())
        crc = own.crc32c(frame.data[head:head + 32])
        assert frame.data[head + 32:head + 36] == struct.pack(">I", crc), index
        sent_ns = struct.unpack_from(">Q", frame.data, head + 24)[0]
        assert abs(sent_ns - time.time_ns()) < 600e9, sent_ns
    check_end_frames(got[300:], {0: 300})


def check_end_frames(got, streams):
    """The last frames say how many each stream had, more than once."""
    seen = dict.fromkeys(streams, 0)
    for frame in got:
        head = frame.data[own.ETHERNET_BYTES:]
        magic, version, pattern, stream, payload, number, of = struct.unpack_from(">HBBHHQQ", head)
        assert (magic, version, pattern, payload) == (own.MAGIC, own.VERSION, 0xFF, 0), head.hex()
        assert number == streams[stream] and of == len(streams), head.hex()
        assert head[32:36] == struct.pack(">I", own.crc32c(head[:32])), head.hex()
        seen[stream] += 1
    assert all(count >= 2 for count in seen.values()), "end-of-stream frames: %s" % seen


def test_pattern_streams_and_imix():
    """Read back by the capture: every stream's frames are right."""
    with processes.folder() as directory:
        summary, got = replay_to_file(directory, "--frame-size", "imix", "--streams", "5",
                                      "--frames", "1200")
        processes.check_sender(summary, 1200)
        path = os.path.join(directory, "sent.pcap")
        summary = processes.run_json("capture", "--quiet", "--port",
                                     "net_pcap0,rx_pcap=%s" % path, "--seconds", "30")
    e2e.check_perfect(summary, 1200)
    assert summary["ended_by_sender"] is True, summary
    streams = {row["stream"]: row["frames"]["valid"] for row in summary["streams"]}
    assert sorted(streams) == [0, 1, 2, 3, 4] and min(streams.values()) > 100, streams
    check_end_frames(got[1200:], streams)


def test_end_never():
    with processes.folder() as directory:
        _, got = replay_to_file(directory, "--frame-size", "64", "--frames", "100", "--end",
                                "never")
        assert len(got) == 100, len(got)


# ---- against other tools on a veth pair ----

def file_of_another_tool(directory, count, tags=True):
    """Packets of five protocols and all sizes, by Wireshark's generator; some with a VLAN tag."""
    parts = []
    for kind, share in (("udp", 40), ("dns", 15), ("ipv6", 20), ("icmp", 15), ("arp", 10)):
        path = os.path.join(directory, kind + ".pcap")
        processes.output("randpkt", "-b", "1500", "-c", str(count * share // 100), "-t", kind, path)
        parts.append(path)
    if tags:
        tagged = os.path.join(directory, "tagged.pcap")
        processes.output("tcprewrite", "--enet-vlan=add", "--enet-vlan-tag=42",
                         "--enet-vlan-pri=1", "--enet-vlan-cfi=0", "-i", parts[-1], "-o", tagged)
        parts[-1] = tagged
    mixed = os.path.join(directory, "mixed.pcap")
    processes.output("mergecap", "-F", "nsecpcap", "-w", mixed, *parts)
    return mixed


def replay_over(pair, path):
    summary = processes.run_json("replay", "--quiet", "--tx-port",
                                 "net_af_packet0,iface=%s" % pair.left, "--pcap", path, "--rate",
                                 "%dpps" % RATE)
    return processes.check_sender(summary, FILE_FRAMES)


def check_came(got, wanted, lost):
    """All that the kernel did not drop, by its own count, in order."""
    assert len(got) == len(wanted) - lost, (len(got), len(wanted), lost)
    rest = iter(wanted)
    assert lost < len(wanted) // 2 and all(frame in rest for frame in got), pcapfile.differ(got, wanted)
    print("%d of %d frames lost by the kernel" % (lost, len(wanted)))


def test_tcpdump_gets_what_is_in_the_file():
    with processes.folder() as directory, e2e.VethPair() as pair:
        path = file_of_another_tool(directory, FILE_FRAMES)
        wanted = [frame.data for frame in pcapfile.read(path)]
        assert len(wanted) == FILE_FRAMES and len(set(map(len, wanted))) > 1000
        seen = os.path.join(directory, "seen.pcap")
        with processes.Tcpdump(pair.right, seen, live=True) as tcpdump:
            replay_over(pair, path)
            lost = pair.dropped()
            lost += tcpdump.end(FILE_FRAMES - lost)
        check_came([frame.data for frame in pcapfile.read(seen)], wanted, lost)


def test_saved_is_what_is_in_the_file():
    """The same by our own capture, compared with the file on the way and saved whole. Without
    tags: this driver does not deliver them. Its ring has room for all frames, or most in a long run."""
    with processes.folder() as directory, e2e.VethPair() as pair:
        path = file_of_another_tool(directory, FILE_FRAMES, tags=False)
        wanted = [frame.data for frame in pcapfile.read(path)]
        saved = os.path.join(directory, "saved.pcapng")
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s,framecnt=32768" % pair.right, "--save", saved,
                               "--expect", path) as receiver:
            receiver.wait_until_running()
            replay_over(pair, path)
            on_the_way = pair.dropped()
            receiver.wait_for_all(FILE_FRAMES - on_the_way)
            receiver.signal(signal.SIGINT)
            summary = receiver.finish(expect=None)
        lost = on_the_way + summary["lost_by"]["nic_missed"]
        assert summary["frames"]["received"] == FILE_FRAMES - lost, (lost, processes.text_of(summary))
        if lost == 0 and summary["saved"]["missed"] == 0:
            check_saved(saved, wanted, summary)
        else:
            check_came([frame.data for frame in pcapfile.read_capture(saved).frames], wanted, lost + summary["saved"]["missed"])


def check_saved(saved, wanted, summary):
    capture = pcapfile.read_capture(saved)
    check_same(capture.frames, wanted)
    assert summary["saved"]["frames"] == len(wanted), summary["saved"]
    assert summary["frames"]["valid"] == len(wanted), processes.text_of(summary)
    assert summary["result"] == "pass", processes.text_of(summary)
    assert capture.received() == len(wanted) and not capture.dropped(), capture.statistics
    times = [frame.time_ns for frame in capture.frames]
    assert times == sorted(times), "times go back"
    assert abs(times[-1] - time.time_ns()) < 600e9, times[-1]
    text = processes.output("capinfos", "-M", "-c", "-l", "-E", "-I", saved)
    assert re.search(r"Number of packets: += *%d$|Number of packets: +%d$" % (
        len(wanted), len(wanted)), text, re.M), text
    assert "Ethernet" in text and "nanoseconds (9)" in text, text
    lengths = processes.output("tshark", "-r", saved, "-T", "fields", "-e", "frame.len")
    assert [int(line) for line in lengths.split()] == [len(data) for data in wanted]


# ---- when ----

GAPS_MS = (1, 5, 0, 20, 2, 9)


def paced_file(directory, count=180):
    times = [pcapfile.START_NS]
    for i in range(count - 1):
        times.append(times[-1] + GAPS_MS[i % len(GAPS_MS)] * 1000000)
    path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), numbered_frames(count),
                               times_ns=times)
    return path, times


def play_at(speed, loops):
    """Plays a file at its own times, and compares with them."""
    with processes.folder() as directory:
        path, times = paced_file(directory)
        summary, got, machine = timed_to_file(directory, "--pcap", path, "--loops", str(loops),
                                      *(("--speed", speed) if speed else ()))
    factor = float(speed[:-1]) if speed else 1.0
    length = times[-1] - times[0]
    # Between two loops there is a gap too, the file's mean.
    whole = length + length / (len(times) - 1)
    due = [(loop * whole + time - times[0]) / factor for loop in range(loops) for time in times]
    sender = processes.check_sender(summary, len(times) * loops)
    assert abs(sender["asked"]["seconds"] * 1e9 - due[-1]) < 1000, (sender["asked"], due[-1])
    assert sender["asked"]["gbps"] is None and sender["asked"]["mpps"] is None, sender
    # Frames behind gaps of one kind: at the mean of all gaps they would be up to 14 ms apart.
    kinds = [[number for number in range(len(due)) if number % len(times) % len(GAPS_MS) == kind] for kind in range(len(GAPS_MS))]
    pace.check([frame.time_ns for frame in got], due, summary, machine, kinds, apart_ns=2e6 / factor)


def test_original_times():
    """The file's own gaps, or faster, or slower; loops keep them."""
    for speed, loops in (("2x", 1), ("0.5x", 1), ("4x", 3), (None, 1), *((("1x", 1),) if e2e.LONG else ())):
        play_at(speed, loops)


def test_times_out_of_order():
    """A frame that is an hour old is sent at once, and holds none up; the start says so."""
    with processes.folder() as directory:
        times = [pcapfile.START_NS + ms * 10**6 for ms in (0, 2, 1, -3600000, 3, 5, 4)]
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), numbered_frames(7), times_ns=times)
        result = e2e.run("replay", "--tx-port", "net_null0", "--pcap", path, "--json")
    assert "3 of 7 frames step back in time and are sent at once; the longest gap is 0.002 s, all frames take 0.005 s" in result.err, result
    assert abs(result.summary["sender"]["asked"]["seconds"] - 0.005) < 1e-6, result.summary["sender"]


def test_long_gap():
    """A wait of an hour is said while it lasts, and once."""
    with processes.folder() as directory:
        times = [pcapfile.START_NS, pcapfile.START_NS + 10**6, pcapfile.START_NS + 3600 * 10**9]
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), numbered_frames(3), times_ns=times)
        process = e2e.start("replay", "--tx-port", "net_null0", "--pcap", path)
        e2e.interrupt_when_running(process, r"in.pcap: the next frame is due in 3[56]\d\d s", signal.SIGINT)
        _, err = process.communicate(timeout=e2e.TIMEOUT)
        assert process.returncode == 3 and "the next frame is due" not in err, err


def test_file_with_fewer_frames():
    """--frames asks for more than the file has in all of its loops."""
    with processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), numbered_frames(3))
        for frames, status in (("6", 0), ("10", 3)):
            summary = processes.run_json("replay", "--quiet", "--tx-port", "net_null0", "--pcap", path, "--loops", "2",
                                         "--frames", frames, expect=status)
            assert summary["sender"]["asked"]["frames"] == int(frames), summary["sender"]
            assert ("is how often it is sent" in processes.messages(summary)) == (status == 3), summary["messages"]
        assert "4 of 10 frames not sent" in str(summary["errors"]), summary["errors"]


def test_rates():
    """Bits on the wire, by our own account and by another clock's. Without the 24 bytes of each frame that are on the wire only,
    frames of 64 bytes would be a third too fast."""
    for rate, gbps, size, count in (("100kbit", 0.0001, "64", 150), ("10mbit", 0.01, "imix", 3000), ("100mbit", 0.1, "64-1518", 12000)):
        with processes.folder() as directory:
            summary, got, machine = timed_to_file(directory, "--rate", rate, "--frame-size", size,
                                          "--frames", str(count), "--end", "never")
        processes.check_sender(summary, count)
        lengths = [len(frame.data) for frame in got]
        pace.check([frame.time_ns for frame in got], pace.due_at_bits(lengths, gbps * 1e9), summary, machine)
        pace.check_rate(summary, lengths, gbps=gbps)


def test_rates_of_frames():
    for rate, mpps, count in (("200pps", 0.0002, 250), ("5kpps", 0.005, 5000), ("0.02mpps", 0.02, 20000)):
        with processes.folder() as directory:
            path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), numbered_frames(50))
            summary, got, machine = timed_to_file(directory, "--rate", rate, "--pcap", path, "--loops",
                                          "forever", "--frames", str(count))
        processes.check_sender(summary, count)
        pace.check([frame.time_ns for frame in got], pace.due_at_frames(count, mpps * 1e6), summary, machine)
        pace.check_rate(summary, [len(frame.data) for frame in got], mpps=mpps)


def test_rate_over_veth():
    """The same by the kernel's clock. What the kernel lost on the way, it counted."""
    def sent(rate, gbps, count):
        summary, machine = pace.replay("--tx-port", "net_af_packet0,iface=%s" % pair.left, "--rate", rate,
                                       "--frames", str(count), "--end", "never")
        processes.check_sender(summary, count)
        pace.check_rate(summary, [1514] * count, gbps=gbps)
        return summary, machine

    for rate, gbps, count in (("1mbit", 0.001, 90), ("100mbit", 0.1, 8000)):
        with e2e.VethPair() as pair, processes.folder() as directory:
            path = os.path.join(directory, "seen.pcap")
            with processes.Tcpdump(pair.right, path, live=True) as tcpdump:
                summary, machine = sent(rate, gbps, count)
                lost = pair.dropped()
                lost += tcpdump.end(count - lost)
            got = pcapfile.read(path)
        assert len(got) == count - lost, (len(got), count, lost)
        due = pace.due_at_bits([1514] * count, gbps * 1e9)
        pace.check([frame.time_ns for frame in got], [due[own.number_of(frame.data)] for frame in got], summary, machine)
    # What no machine must carry, but each must tell the truth about.
    with e2e.VethPair() as pair:
        sent("1gbit", 1, 20000)


def test_rate_that_cannot_be():
    """Said in the messages, and both numbers stand in the summary."""
    with e2e.VethPair() as pair:
        # So many that it takes longer than a start, after which nothing is said.
        for port, count in (("net_af_packet0,iface=%s" % pair.left, 20000), ("net_null0", 300000)):
            summary = processes.run_json("replay", "--quiet", "--tx-port", port, "--rate",
                                         "9tbit", "--frames", str(count))
            sender = processes.check_sender(summary)
            assert sender["asked"]["gbps"] == 9000, sender
            assert 0 < sender["gbps"] < 8000, sender
            text = processes.messages(summary)
            assert re.search(r"rate", text) and "9000" in text.replace(",", ""), text


def test_interrupt():
    """Ctrl-C in a long gap of the file: ends at once, and says how far it came, and that this is
    not all of it."""
    with processes.folder() as directory:
        times = [pcapfile.START_NS, pcapfile.START_NS + 10**6, pcapfile.START_NS + 3600 * 10**9]
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), numbered_frames(3),
                                   times_ns=times)
        with processes.Running("replay", "--tx-port", "net_null0", "--pcap", path) as sender:
            sender.wait_for_frames("sent", 2)
            sender.signal(signal.SIGINT)
            summary = sender.finish(expect=3)
    processes.check_sender(summary, 2)
    assert summary["errors"] == ["1 of 3 frames not sent"], summary["errors"]


# ---- links ----

def test_link_down_and_up():
    """The interface goes away until the sender noticed: said, waited for, and nothing counted that was not
    handed over."""
    with e2e.VethPair() as pair:
        with processes.Running("capture", "--port", "net_af_packet0,iface=%s,framecnt=4096" %
                               pair.right, "--seconds", "3600") as receiver:
            # The kernel itself may take seconds until it has the carrier back.
            receiver.wait_until_running()
            with processes.Running("replay", "--tx-port", "net_af_packet0,iface=%s" % pair.left,
                                   "--rate", "2kpps", "--seconds", "3600") as sender:
                receiver.wait_for_frames("received", 1000)
                pair.ip("link", "set", pair.left, "down")
                sender.wait_until(lambda: any("the link is down" in line for line in sender.err))
                pair.ip("link", "set", pair.left, "up")
                sender.wait_for_frames("sent", json.loads(sender.out[-1])["frames"]["sent"] + 2000)
                sender.signal(signal.SIGINT)
                sent = sender.finish(expect=None)
            received = receiver.finish(expect=None)
        dropped = pair.dropped()
    text = processes.messages(sent)
    assert re.search(r"link", text) and re.search(r"down", text), sent["messages"]
    e2e.check_identities(received)
    # Frames are delayed. Lost can be only those that the port took until it was noticed, and the kernel counts them;
    # what this driver calls errors it sends later, so that nobody can count them.
    came, count = received["frames"], sent["frames"]["sent"]
    print("link down: %d frames lost, %d dropped by the kernel" % (came["lost"], dropped))
    assert sent["sender"]["frames"] == count, sent["sender"]
    assert sent["sender"]["errors"] is None and sent["result"] == "pass", processes.text_of(sent)
    assert came["sent"] == count and came["lost"] <= dropped, "%s\n%s" % (
        came, processes.text_of(sent))
    assert came["damaged"] == came["duplicate"] == came["reordered"] == 0, came
