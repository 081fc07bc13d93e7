# SPDX-License-Identifier: BSD-3-Clause
"""Ports that are files: each record is taken as a whole or not at all, the file waits for its consumer, and its end
is the run's."""
import contextlib
import json
import os
import signal
import struct
import time

import pytest

import e2e
import pcapfile
import processes
import test_save

pytestmark = pytest.mark.sanitized

ANY = ("--format", "custom", "--pattern", "none")
TIME = pcapfile.START_NS
NOISE = [bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x12, 0x34]) + bytes([i]) * (86 + i) for i in range(5)]


def port(*paths):
    return "--port", ",".join(["net_pcap0"] + ["rx_pcap=%s" % path for path in paths])


def capture(directory, data, *arguments, expect=0):
    """The summary of a capture of a file of these bytes, which nothing but its end has to end."""
    path = pcapfile.write(os.path.join(directory, "in.pcap"), data)
    return processes.run_json("capture", "--quiet", *port(path), *arguments, expect=expect)


def errors(summary):
    return "\n".join(summary["errors"])


# ---- frames that are too long ----

def test_longer_than_any_frame():
    """Never valid, and no option lets them in."""
    long = NOISE[0][:14] + bytes(12650 - 14)
    with processes.folder() as directory:
        path = os.path.join(directory, "out.pcapng")
        summary = capture(directory, pcapfile.pcap_bytes([NOISE[0], long, NOISE[1]]), *ANY, "--frame-size",
                          "9216", "--save", path, expect=3)
        test_save.check_files(path, NOISE[:2])
    frames = summary["frames"]
    assert (frames["received"], frames["valid"], frames["damaged"]) == (3, 2, 1), frames
    said = processes.messages(summary)
    assert "more than 9216 bytes, with FCS, cannot be received" in said, said
    assert "9216 at most" not in said, said


def test_filtered_and_longer_than_a_slot():
    """What does not fit is not saved as if it were whole, also of others' frames."""
    sent = test_save.own_frames(4)
    long = NOISE[0][:14] + bytes(5000)
    with processes.folder() as directory:
        path = os.path.join(directory, "out.pcapng")
        summary = capture(directory, pcapfile.pcap_bytes([*sent, long]), "--save", path, expect=3)
        test_save.check_files(path, sent)
    assert summary["filtered"] == 1 and summary["saved"]["missed"] == 1, summary
    assert "1 frame not saved" in errors(summary), summary["errors"]


# ---- the end ----

def test_end_of_a_file():
    """It ends the run, whatever else is to; who asked for more frames gets no pass."""
    sent = test_save.own_frames(3)
    with processes.folder() as directory:
        for more, expect in ((("--frames", "10"), 3), (("--idle", "60"), 0), (("--seconds", "600"), 0), ((), 0),
                             (("--frames", "3"), 0)):
            summary = capture(directory, pcapfile.pcap_bytes(sent), *more, expect=expect)
            processes.check_counts(summary, received=3, valid=3)
            assert ("3 of 10 frames received" in errors(summary)) == (expect == 3), summary["errors"]
        summary = capture(directory, pcapfile.pcap_bytes([]), "--idle", "1", expect=3)
        assert "no frame was received" in errors(summary), summary["errors"]


def test_end_of_the_last_file():
    sent = test_save.own_frames(400)
    with processes.folder() as directory:
        paths = [pcapfile.write_pcap(os.path.join(directory, name), frames)
                 for name, frames in (("a", sent[:1]), ("b", sent[1:]))]
        summary = processes.run_json("capture", "--quiet", "--queues", "2", *port(*paths), expect=None)
        assert summary["frames"]["received"] == 400, summary["frames"]
        summary = processes.run_json("capture", "--quiet", *port(paths[0]), "--port",
                                     "net_pcap1,rx_pcap=%s" % paths[1], expect=None)
        assert summary["frames"]["received"] == 400, summary["frames"]


def test_file_again_and_again():
    """infinite_rx: it has no end."""
    with processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), NOISE)
        summary = processes.run_json("capture", "--quiet", "--port", "net_pcap0,rx_pcap=%s,infinite_rx=1" % path,
                                     *ANY, "--frames", "5000")
    assert summary["frames"]["valid"] >= 5000, summary["frames"]


class Pipe:
    """A port that reads a pipe, and the pipe's other end."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "pipe")
        os.mkfifo(self.path)
        self.port = port(self.path)

    def __enter__(self):
        self.file = open(self.path, "wb", buffering=0)  # waits for the port
        return self.file

    def __exit__(self, *_):
        self.file.close()


def test_pipe():
    """Frames come as they are written, wherever a piece of them ends; a pipe's end is one."""
    sent = test_save.own_frames(300)
    for data in (pcapfile.pcap_bytes(sent), pcapfile.pcap_bytes(sent, order=">", nano=False),
                 pcapfile.pcapng_bytes(sent), pcapfile.pcapng_bytes(sent, order=">")):
        with processes.folder() as directory:
            pipe = Pipe(directory)
            with processes.Running("capture", *pipe.port) as receiver:
                with pipe as file:
                    # 9 bytes are missing of the last frame.
                    for at in range(0, len(data) - 9, 7777):
                        file.write(data[at:min(at + 7777, len(data) - 9)])
                    receiver.wait_for_frames("valid", 299)
                    file.write(data[-9:])
                summary = receiver.finish()
        processes.check_counts(summary, received=300, valid=300, lost=0, damaged=0)


def read_slowly(fd, size, until):
    """So many bytes in 10 ms: one that reads nothing is given up."""
    data = []
    while not until():
        data.append(os.read(fd, size))
        time.sleep(0.01)
    return data


def received(line):
    return (json.loads(line)["frames"] or {}).get("received") or 0


def receives(process):
    """It has the thread that reads the file."""
    for task in os.listdir("/proc/%d/task" % process.pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/comm" % (process.pid, task)) as name:
            if name.read().startswith("gdrcap-rx"):
                return True
    return False


@pytest.mark.parametrize("ends", ["by itself", "by a signal"])
def test_waits_for_what_it_is_saved_to(ends):
    """More than the saver's buffer and all slots hold, through a pipe whose reader is slow: every frame is there. A stop
    does not wait for more."""
    count = 60000
    sent = [NOISE[0][:14] + i.to_bytes(4, "big") + bytes(1482) for i in range(count)]
    with processes.folder() as directory:
        path, pipe = (os.path.join(directory, name) for name in ("in.pcap", "out"))
        pcapfile.write(path, pcapfile.pcap_bytes(sent))
        os.mkfifo(pipe)
        fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        where = port(path + ",infinite_rx=1" * (ends == "by a signal"))
        with processes.Running("capture", *where, "--save", pipe) as receiver:
            receiver.wait_until_running()
            os.set_blocking(fd, True)
            data = read_slowly(fd, 4096, lambda: received(receiver.out[-1]) and len(receiver.out) > 5 and
                               received(receiver.out[-1]) == received(receiver.out[-5]))
            held = received(receiver.out[-1])
            if ends == "by a signal":
                receiver.signal(signal.SIGINT)
                data += read_slowly(fd, 1 << 16, lambda: not receives(receiver.process))
            while not data or data[-1]:
                data.append(os.read(fd, 1 << 20))
            os.close(fd)
            summary = receiver.finish()
        saved = pcapfile.read_capture(pcapfile.write(path, b"".join(data)))
    assert held < count, "nothing had to wait"
    got = [frame.data for frame in saved.frames]
    assert summary["saved"]["missed"] == 0 and summary["saved"]["frames"] == summary["frames"]["received"] == len(got)
    if ends == "by itself":
        assert pcapfile.differ(got, sent) is None
    else:
        assert len(got) < held + 65536
        assert pcapfile.differ(got, (sent * 3)[:len(got)]) is None


def test_pipe_breaks_off():
    with processes.folder() as directory:
        pipe = Pipe(directory)
        with processes.Running("capture", *pipe.port, *ANY) as receiver:
            with pipe as file:
                file.write(pcapfile.pcap_bytes(NOISE)[:-9])
            summary = receiver.finish(expect=1)
    assert "in the middle of frame 5" in errors(summary) and pipe.path in errors(summary), summary["errors"]


def test_fewer_frames_than_asked_for():
    """Where the user stopped it; not where its time was over."""
    sent = test_save.own_frames(179)
    for more, expect in (((), 3), (("--seconds", "3"), 0)):
        with processes.folder() as directory:
            pipe = Pipe(directory)
            with processes.Running("capture", *pipe.port, "--frames", "1000", *more) as receiver:
                with pipe as file:
                    file.write(pcapfile.pcap_bytes(sent))
                    receiver.wait_for_frames("received", 179)
                    if not more:
                        receiver.signal(signal.SIGINT)
                    summary = receiver.finish(expect=expect)
        processes.check_counts(summary, received=179, valid=179)
        assert ("179 of 1,000 frames received" in errors(summary)) == (not more), summary["errors"]


# ---- times ----

def test_times_of_a_file():
    """Those of the saved frames are the file's, also where these go back; clock: cpu is the time that they came."""
    times = [TIME + 1, TIME + 500_000_000, TIME + 499_999_999, 7, TIME + 10**9]
    with processes.folder() as directory:
        path = os.path.join(directory, "out.pcapng")
        data = pcapfile.pcap_bytes(NOISE, times_ns=times)
        capture(directory, data, *ANY, "--save", path)
        assert [frame.time_ns for frame in pcapfile.read_capture(path).frames] == times
        capture(directory, data, *ANY, "--save", path, "--clock", "cpu")
        assert min(frame.time_ns for frame in pcapfile.read_capture(path).frames) > TIME + 10**9


# ---- a file waits ----

def gvsp(number, packets=8, payload=1000):
    """An image's packets: leader, data, trailer."""
    def packet(packet_id, form, body):
        data = struct.pack(">HHI", 0, number, form << 24 | packet_id) + body
        udp = struct.pack(">HHHH", 50000, 50001, 8 + len(data), 0) + data
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]),
                         bytes([10, 0, 0, 2]))
        return NOISE[0][:12] + b"\x08\x00" + ip + udp

    leader = struct.pack(">HHIII5I", 0, 1, 0, 0, 0x01080001, payload, packets, 0, 0, 0)
    return ([packet(0, 1, leader)] +
            [packet(1 + i, 3, bytes([(number + i) % 251]) * payload) for i in range(packets)] +
            [packet(1 + packets, 2, bytes(8))])


def test_file_waits_for_image_buffers():
    """60 images, three buffers and a consumer that writes each to a file: none is dropped."""
    with processes.folder() as directory:
        out = os.path.join(directory, "out.raw")
        data = pcapfile.pcap_bytes([frame for number in range(1, 61) for frame in gvsp(number)])
        for full in ("drop_new", "drop_oldest"):
            summary = capture(directory, data, "--gpu", "host", "--image",
                              "gvsp,bytes=8000,piece=1000,ring=3,full=" + full, "--save-images", out)
            images = summary["images"][0]
            assert (images["complete"], images["dropped"], images["skipped"]) == (60, 0, 0), (full, images)
            with open(out, "rb") as file:
                assert file.read() == b"".join(bytes([(number + i) % 251]) * 1000
                                               for number in range(1, 61) for i in range(8))


# ---- what is asked for and cannot be ----

def test_arguments():
    with processes.folder() as directory:
        path = pcapfile.write_pcap(os.path.join(directory, "in.pcap"), NOISE)
        for name, words, status in (("net_pcap0,rx_pcap=%s,phy_mac=1" % path, "no argument phy_mac", 2),
                                    ("net_pcap0,rx_pcap=%s,tx_pcap=/dev/null" % path, "no argument tx_pcap", 2),
                                    ("net_pcap0,rx_pcap=%s,rx_pcap=%s" % (path, path), "--queues 2", 2),
                                    ("net_pcap0,rx_pcap=/dev/null", "nor a pipe", 1)):
            summary = e2e.run_json("capture", "--quiet", "--port", name, expect=status)
            assert words in errors(summary), summary["errors"]
        pipe = Pipe(directory)
        summary = e2e.run_json("capture", "--quiet", "--port", pipe.port[1] + ",infinite_rx=1", expect=2)
        assert "a pipe cannot be read again" in errors(summary), summary["errors"]
