# SPDX-License-Identifier: BSD-3-Clause
"""--save and --save-damaged, as tshark, capinfos and a reader of our own see the files."""
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

import e2e
import custom_stream
import frames as own
import pcapfile
import processes

pytestmark = pytest.mark.sanitized

SIZES = (64, 512, 1024, 1518)
CUSTOM = ("--format", "custom", "--custom-payload", "18", "--sequence-offset", "14",
           "--sequence-bytes", "4")
OWN_PAYLOAD = own.ETHERNET_BYTES + own.HEADER_BYTES


def capture(directory, frames, *arguments, expect=0):
    path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), frames)
    return processes.run_json("capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s" % path,
                              "--frames", str(len(frames)), "--seconds", "60", *arguments,
                              expect=expect)


def own_frames(count, id=0):
    stream = own.Stream(id, own.prbs31(sum(SIZES) * (count // len(SIZES) + 1)))
    return [stream.frame(SIZES[i % len(SIZES)]) for i in range(count)]


def changed(frame, offset, mask):
    return frame[:offset] + bytes([frame[offset] ^ mask]) + frame[offset + 1:]


def test_recording():
    """Frames of anybody's, with no option that says what they should be: a run that saved them all passed."""
    frames = [bytes([2] * 12) + b"\x08\0" + bytes([i % 256]) * (46 + i) for i in range(300)]
    with processes.folder() as directory:
        path = os.path.join(directory, "out.pcapng")
        summary = capture(directory, frames, "--save", path)
        assert summary["saved"]["frames"] == summary["filtered"] == len(frames), summary
        assert [frame.data for frame in pcapfile.read_capture(path).frames] == frames
        for arguments in (["--save", path, "--pattern", "prbs31"], []):
            summary = capture(directory, frames, *arguments, expect=3)
            assert any("no frame received was ours" in text for text in summary["errors"]), summary


def tshark_comments(path):
    """[comment of the frame, or ""], as Wireshark shows them."""
    text = processes.output("tshark", "-r", path, "-T", "fields", "-E", "separator=|", "-e",
                            "frame.number", "-e", "frame.comment")
    rows = [line.split("|", 1) for line in text.splitlines()]
    assert [row[0] for row in rows] == [str(i + 1) for i in range(len(rows))], text
    return [row[1] for row in rows]


def check_files(path, wanted):
    """Both readers see these frames."""
    saved = pcapfile.read_capture(path)
    got = [frame.data for frame in saved.frames]
    assert pcapfile.differ(got, wanted) is None, pcapfile.differ(got, wanted)
    assert all(frame.original == len(frame.data) for frame in saved.frames), "a frame is said to have been longer"
    text = processes.output("capinfos", "-M", "-c", path)
    assert re.search(r"packets: +%d$" % len(wanted), text, re.M), text
    return saved


# ---- --save ----

def test_save_all():
    frames = own_frames(2000)
    with processes.folder() as directory:
        path = os.path.join(directory, "all.pcapng")
        summary = capture(directory, frames, "--save", path)
        saved = check_files(path, frames)
        text = processes.output("capinfos", "-M", "-I", "-E", path)
        assert "nanosecond" in text, text
    assert summary["saved"] == {"frames": 2000, "missed": 0, "damaged_frames": 0,
                                "damaged_missed": 0}, summary["saved"]
    assert saved.received() == 2000 and saved.dropped() == 0, saved.statistics
    assert [frame.time_ns for frame in saved.frames] == pcapfile.times_of(frames, None, 1000)


def test_save_to_standard_output():
    """All that is said goes elsewhere: the file is whole, whether it is a file or a pipe."""
    frames = own_frames(200)
    with processes.folder() as directory:
        source = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), frames)
        path = os.path.join(directory, "out.pcapng")
        for quiet in ([], ["--quiet"]):
            command = [e2e.PROGRAM, "capture", *quiet, "--port", "net_pcap0,rx_pcap=" + source,
                       "--idle", "1", "--save", "/dev/stdout"]
            with open(path, "wb") as file:
                run = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True,
                                     timeout=e2e.TIMEOUT, check=False)
            assert run.returncode == 0 and "PASS" in run.stderr, run.stderr
            check_files(path, frames)
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 timeout=e2e.TIMEOUT, check=False)
            assert run.returncode == 0 and b"PASS" in run.stderr, run.stderr
            with open(path, "wb") as file:
                file.write(run.stdout)
            check_files(path, frames)


def test_save_others_frames_too():
    """What is filtered, damaged or of no length that Ethernet knows is saved as it came."""
    frames = own_frames(40)
    frames[7] = changed(frames[7], 60 - 1, 0x40)
    frames[9:9] = [b"\xff" * 6 + own.SOURCE + b"\x08\x06" + bytes(28), bytes(14), bytes(9000)]
    with processes.folder() as directory:
        path = os.path.join(directory, "all.pcapng")
        summary = capture(directory, frames, "--save", path, "--frame-size", "9216", expect=3)
        check_files(path, frames)
    assert summary["saved"]["frames"] == len(frames), summary["saved"]


def test_save_every():
    frames = own_frames(1000)
    with processes.folder() as directory:
        path = os.path.join(directory, "some.pcapng")
        summary = capture(directory, frames, "--save", path, "--save-every", "7")
        got = [frame.data for frame in pcapfile.read_capture(path).frames]
        places = {frame: i for i, frame in enumerate(frames)}
        numbers = [places[frame] for frame in got]
        assert len(numbers) in (1000 // 7, 1000 // 7 + 1), len(numbers)
        assert {b - a for a, b in zip(numbers, numbers[1:])} == {7}, numbers
    assert summary["saved"]["frames"] == len(numbers), summary["saved"]
    assert summary["saved"]["missed"] == 0, summary["saved"]


def test_save_nothing_came():
    """A file of no frames is a file all the same."""
    with processes.folder() as directory:
        path = os.path.join(directory, "none.pcapng")
        source = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), [])
        processes.run_json("capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s" % source,
                           "--seconds", "0.5", "--save", path, expect=3)
        check_files(path, [])


def test_save_in_a_loopback():
    """The sender in the same process: none missed where the file keeps up, all counted anyway, and
    one that is missing is said."""
    with processes.folder() as directory:
        path = os.path.join(directory, "all.pcapng")
        summary = processes.run_json("loopback", "--quiet", "--frames", "20000", "--frame-size",
                                     "imix", "--save", path, expect=None)
        e2e.check_perfect(summary, 20000)
        saved, missed = summary["saved"]["frames"], summary["saved"]["missed"]
        assert (summary["result"] == "pass") == (missed == 0), processes.text_of(summary)
        # The staged first frame and the ends of streams are frames that came, too.
        assert saved + missed >= 20000, summary["saved"]
        got = pcapfile.read_capture(path).frames
        assert len(got) == saved, (len(got), summary["saved"])


def test_cannot_save():
    frames = own_frames(10)
    for option in ("--save", "--save-damaged"):
        with processes.folder() as directory:
            path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), frames)
            target = os.path.join(directory, "missing", "out.pcapng")
            result = e2e.run("capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s" % path,
                             "--frames", "10", option, target, expect=None)
            assert result.status in (1, 2), result
            assert "out.pcapng" in result.err and "o such file" in result.err, result


def test_disk_full():
    """Refused where not even a header can be written; later no reason to end the capture, but what
    is not in the file is counted, and fails it."""
    frames = own_frames(3000)
    with processes.folder() as directory:
        summary = capture(directory, frames, "--save", "/dev/full", expect=1)
        assert "/dev/full" in " ".join(summary["errors"]), summary["errors"]
        with small_disk() as full:
            path = os.path.join(full, "large.pcapng")
            summary = capture(directory, frames, "--save", path, expect=3)
    assert "large.pcapng" in " ".join(summary["errors"]), summary
    processes.check_counts(summary, received=3000, valid=3000, damaged=0, lost=0)
    assert summary["saved"]["missed"] > 0, summary["saved"]
    assert summary["saved"]["frames"] + summary["saved"]["missed"] == 3000, summary["saved"]


def test_reader_of_a_pipe_leaves():
    """What it did not get is missing, and was never said to be there."""
    with processes.folder() as directory:
        path = os.path.join(directory, "pipe")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            with processes.Running("loopback", "--rate", "20kpps", "--seconds", "3600", "--gpu", "host", "--save",
                                   path) as run:
                run.wait_for_frames("received", 3000)
                os.close(reader)
                reader = None
                run.wait_until(lambda: json.loads(run.out[-1])["saved"]["missed"])
                run.signal(signal.SIGINT)
                summary = run.finish(expect=3)
        finally:
            if reader is not None:
                os.close(reader)
        saved = [json.loads(line)["saved"]["frames"] for line in run.out]
    assert saved == sorted(saved), saved
    assert summary["saved"]["missed"] > 0, summary["saved"]
    assert summary["saved"]["frames"] + summary["saved"]["missed"] == summary["frames"]["received"], summary["saved"]


@contextlib.contextmanager
def small_disk():
    """A file system of 1 MiB."""
    with processes.folder() as directory:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", directory],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise e2e.Skip("mounting a small file system: %s" % done.stdout.strip())
        try:
            yield directory
        finally:
            subprocess.run(["umount", directory], check=True)


# ---- --save-damaged ----

def check_comment(comment, offset, wanted, got, *words):
    """It names the place, the byte that should be there, and the one that is."""
    pattern = r"offset %d\b.*expected %02x\b.*got %02x\b" % (offset, wanted, got)
    assert re.search(pattern, comment), "not '%s': %s" % (pattern, comment)
    for word in words:
        assert word in comment, "'%s' is not in: %s" % (word, comment)


def test_damaged_only():
    """Exactly the planted frames, each with a comment that names the place and the bytes."""
    frames = own_frames(400)
    planted = {}
    for index, offset in ((50, OWN_PAYLOAD), (52, 59), (201, 300), (399, 1513)):
        frames[index] = changed(frames[index], offset, 0x21)
        planted[index] = (offset, frames[index][offset] ^ 0x21, frames[index][offset])
    with processes.folder() as directory:
        path = os.path.join(directory, "bad.pcapng")
        summary = capture(directory, frames, "--save-damaged", path, expect=3)
        processes.check_counts(summary, valid=396, damaged=4, lost=0)
        saved = check_files(path, [frames[index] for index in planted])
        comments = tshark_comments(path)
    for comment, (index, (offset, wanted, got)) in zip(comments, planted.items()):
        check_comment(comment, offset, wanted, got, "sequence %d" % index)
    assert [" ".join(frame.comments) for frame in saved.frames] == comments
    assert summary["saved"] == {"frames": 0, "missed": 0, "damaged_frames": 4,
                                "damaged_missed": 0}, summary["saved"]


def test_damaged_headers_and_lengths():
    frames = own_frames(100)
    frames[20] = changed(frames[20], 14, 0xFF)  # the magic
    frames[40] = changed(frames[40], 14 + 33, 0x01)  # the CRC
    frames[61] = frames[61][:200]  # cut short
    with processes.folder() as directory:
        path = os.path.join(directory, "bad.pcapng")
        summary = capture(directory, frames, "--save-damaged", path, expect=3)
        check_files(path, [frames[20], frames[40], frames[61]])
        comments = tshark_comments(path)
    assert summary["frames"]["damaged"] == 3, summary["frames"]
    for comment, word in zip(comments, ("header", "header", "length")):
        assert word in comment, comments


def test_custom_damaged():
    """The same by a sender's frames that are none of ours, with and without a counter."""
    for counter, arguments in (("big", CUSTOM), (None, ("--format", "custom"))):
        sender = custom_stream.Sender(counter=counter)
        at = sender.payload_offset
        clean = sender.frames([1024] * 300)
        faults = custom_stream.Faults(flip={10: [0], 150: [8 * 500 + 7], 299: [8, 9, 10]},
                                       lose=[100])
        frames = faults.apply(clean, at)
        with processes.folder() as directory:
            path = os.path.join(directory, "bad.pcapng")
            capture(directory, frames, *arguments, "--save-damaged", path, expect=3)
            check_files(path, [frames[10], frames[149], frames[298]])
            comments = tshark_comments(path)
        for comment, index, offset, mask in zip(comments, (10, 150, 299), (at, at + 500, at + 1),
                                                (0x80, 0x01, 0xE0)):
            wanted = clean[index][offset]
            check_comment(comment, offset, wanted, wanted ^ mask)


def test_damaged_against_a_file():
    """--expect: what the byte should have been stands in the file."""
    clean = own_frames(100)
    frames = list(clean)
    frames[30] = changed(frames[30], 400, 0x80)
    with processes.folder() as directory:
        wanted = pcapfile.write_pcap(os.path.join(directory, "wanted.pcap"), clean)
        path = os.path.join(directory, "bad.pcapng")
        summary = capture(directory, frames, "--expect", wanted, "--save-damaged", path, expect=3)
        processes.check_counts(summary, valid=99, damaged=1, lost=0)
        check_files(path, [frames[30]])
        check_comment(tshark_comments(path)[0], 400, clean[30][400], clean[30][400] ^ 0x80)


def around(damaged, reach, count):
    return sorted({i for index in damaged for i in range(index - reach, index + reach + 1)
                   if 0 <= i < count})


def test_neighbours():
    """Those around each damaged frame, once each and in order, also over the borders of bursts."""
    for damaged, reach in (((100, 105, 300), 3), ((0, 399), 5), ((64, 127, 128), 1),
                           ((200,), 256), ((150, 390), 70)):
        frames = own_frames(400)
        for index in damaged:
            frames[index] = changed(frames[index], OWN_PAYLOAD + 2, 0x04)
        with processes.folder() as directory:
            path = os.path.join(directory, "bad.pcapng")
            summary = capture(directory, frames, "--save-damaged", path, "--save-around",
                              str(reach), expect=3)
            numbers = around(damaged, reach, 400)
            check_files(path, [frames[i] for i in numbers])
            comments = tshark_comments(path)
        bad = [number for number, comment in zip(numbers, comments)
               if re.search(r"offset %d\b" % (OWN_PAYLOAD + 2), comment)]
        assert tuple(bad) == damaged, (damaged, comments)
        assert summary["saved"]["damaged_frames"] == len(numbers), summary["saved"]
        assert summary["saved"]["damaged_missed"] == 0, summary["saved"]


def test_nothing_damaged():
    with processes.folder() as directory:
        path = os.path.join(directory, "bad.pcapng")
        summary = capture(directory, own_frames(100), "--save-damaged", path)
        check_files(path, [])
    assert summary["saved"]["damaged_frames"] == 0, summary["saved"]


def test_both_files():
    frames = own_frames(100)
    frames[50] = changed(frames[50], 55, 0x04)
    with processes.folder() as directory:
        everything, bad = (os.path.join(directory, name) for name in ("all.pcapng", "bad.pcapng"))
        summary = capture(directory, frames, "--save", everything, "--save-damaged", bad,
                          expect=3)
        check_files(everything, frames)
        check_files(bad, frames[50:51])
    assert summary["saved"] == {"frames": 100, "missed": 0, "damaged_frames": 1,
                                "damaged_missed": 0}, summary["saved"]


def test_nothing_to_save():
    with processes.folder() as directory:
        assert capture(directory, own_frames(10))["saved"] is None


def test_file_of_another_run():
    """One that writes a file, or reads it, has it for itself."""
    refused = "another option, session or run of gdrcap uses it"
    with processes.folder() as directory:
        path, read = (os.path.join(directory, name) for name in ("all.pcapng", "in.pcap"))
        with processes.Running("loopback", "--quiet", "--gpu", "host", "--seconds", "3600", "--rate", "1kpps", "--save", path) as running:
            running.wait_until_running()
            assert refused in e2e.run("loopback", "--gpu", "host", "--frames", "10", "--save", path, expect=1).err
            running.signal(signal.SIGINT)
            saved = running.finish()["saved"]["frames"]
        assert len(pcapfile.read(path)) == saved
        pcapfile.write_pcap(read, own_frames(100))
        before = os.path.getsize(read)
        with processes.Running("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,infinite_rx=1,rx_pcap=" + read) as running:
            running.wait_until_running()
            assert refused in e2e.run("loopback", "--gpu", "host", "--frames", "10", "--save", read, expect=1).err
            done = e2e.run("replay", "--gpu", "host", "--tx-port", "net_pcap0,tx_pcap=" + read, "--frames", "10", expect=1)
            assert "its file is another session's or run's" in done.err, done
            assert os.path.getsize(read) == before
            running.signal(signal.SIGINT)
            running.finish(None)
        e2e.run("loopback", "--gpu", "host", "--frames", "10", "--save", read)
