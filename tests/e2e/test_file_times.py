# SPDX-License-Identifier: BSD-3-Clause
"""Images of ports that are files go by the files' times, however fast they are read: silence, restarts and timeouts."""
import json
import os
import time

import pytest

import e2e
import pcapfile
import processes
import test_file_ports
import test_images as images

pytestmark = pytest.mark.sanitized

MS = 10 ** 6
TIMEOUT = 60 * MS
START = pcapfile.START_NS


class Recording:
    """Frames and their times, ns since the first."""

    def __init__(self):
        self.frames, self.times = [], []

    def add(self, frames, at, gap=1000):
        self.frames += frames
        self.times += [START + at + i * gap for i in range(len(frames))]
        return self

    def write(self, folder, name="in.pcap"):
        return pcapfile.write_pcap(os.path.join(folder, name), self.frames, times_ns=self.times)


def layout(folder, **options):
    path = images.layout(folder, **options)
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace("timeout: 60\n", "timeout: %g\n" % (TIMEOUT / 1e9)))
    return path


def capture(folder, ports, *arguments, expect=0, **options):
    """The images' counts, and the lines of the index."""
    out = os.path.join(folder, "out.raw")
    summary = e2e.run_json("capture", "--quiet", "--gpu", "host", *ports, "--image", layout(folder, **options),
                           "--save-images", out, *arguments, expect=expect)
    images.check_images(summary)
    with open(out + ".jsonl") as index:
        return summary["images"][0], [json.loads(line) for line in index]


def of_file(folder, recording, *arguments, **options):
    return capture(folder, test_file_ports.port(recording.write(folder)), *arguments, **options)


def lost(sender, *packets):
    return [sender.frame(packet) for packet in sender.packets if packet[1:] not in packets]


def test_begins_again_after_a_silence():
    """A few numbers back: after the timeout it is another beginning, before it is late, and both are exact."""
    camera = images.Sender(range(10))
    for silence, complete, expect in ((TIMEOUT + MS, 20, 0), (3600 * 1000 * MS, 20, 0), (TIMEOUT - MS, 10, 3)):
        recording = Recording().add(camera.frames(), 0)
        recording.add(camera.frames(), (len(recording.frames) - 1) * 1000 + silence)
        with processes.folder() as folder:
            found, _ = of_file(folder, recording, expect=expect, ring=8)
        assert (found["complete"], found["incomplete"]) == (complete, 0), (silence, found)
        assert found["restarts"] == (0 if expect else 1), (silence, found)
        assert found["frames"]["late"] == (len(camera.packets) if expect else 0), (silence, found)


def test_begins_again_behind_a_hole():
    """The last image before the silence is closed in it."""
    camera = images.Sender(range(10))
    recording = Recording().add(lost(camera, (9, 3)), 0).add(camera.frames(), 1000 * MS)
    with processes.folder() as folder:
        found, lines = of_file(folder, recording, expect=3, ring=8)
    assert (found["complete"], found["incomplete_by"]["timeout"], found["frames"]["late"]) == (19, 1, 0), found
    assert [line["number"] for line in lines] == 2 * list(range(10)), lines


def test_timeout():
    """Pieces that come within it complete an image, and those that come later do not."""
    camera = images.Sender(range(3))
    frames = camera.frames()
    for pause, complete in ((TIMEOUT - MS, 3), (TIMEOUT + MS, 2)):
        recording = Recording().add(frames[:-5], 0).add(frames[-5:], (len(frames) - 6) * 1000 + pause)
        with processes.folder() as folder:
            found, _ = of_file(folder, recording, expect=0 if complete == 3 else 3)
        assert found["complete"] == complete and found["frames"]["late"] == (0 if complete == 3 else 5), (pause, found)


@pytest.mark.parametrize("packets, complete", (
    (((0, 1, 0, 512), (10, 2, 0, 1024), (500, 3, 0, 1024)), 2),
    (((0, 1, 0, 512), (50, 2, 0, 1024), (90, 1, 512, 8), (140, 1, 520, 504)), 2),
    (((0, 1, 0, 512), (50, 2, 0, 1024), (90, 1, 512, 8), (180, 1, 520, 504)), 1)))
def test_complete_behind_an_older_one(packets, complete):
    """Time goes on for the older one while a complete one waits for it: for `timeout` at most. Heaps are shorter than the
    layout's images: they are closed when their last byte came."""
    recording = Recording()
    for ms, number, *part in packets:
        recording.add(images.heap(number, 1024, part), ms * MS)
    with processes.folder() as folder:
        summary = e2e.run_json("capture", "--quiet", "--gpu", "host", *test_file_ports.port(recording.write(folder)), "--image",
                               "spead,bytes=8192,timeout=0.1", expect=None)
    found = summary["images"][0]
    assert found["frames"]["received"] == len(packets) and found["complete"] == complete, found
    assert found["begun"] == complete + found["incomplete"], found


def test_a_stream_that_begins_late_was_not_cut():
    """A file that begins in the middle of an image lost nothing; a stream that begins later in it did."""
    first, second = images.Sender(range(8, 20)), images.Sender(range(5), streams=(1,))
    recording = Recording().add(first.frames()[4:], 0).add(second.frames()[1:], 1000 * MS)
    with processes.folder() as folder:
        found, _ = of_file(folder, recording, expect=3)
    assert (found["cut"], found["incomplete"]) == ({"by_start": 1, "by_stop": 0}, 2), found


def test_times_of_images():
    """Those of their frames, to a tenth of a ms."""
    camera = images.Sender(range(5))
    recording = Recording()
    for number in range(5):
        recording.add(camera.frames()[number * images.PIECES:(number + 1) * images.PIECES], number * 3600 * 1000 * MS, 2 * MS)
    with processes.folder() as folder:
        _, lines = of_file(folder, recording)
    for line in lines:
        at = line["number"] * images.PIECES
        assert abs(line["first_time"] - recording.times[at]) < MS // 10, (line, recording.times[at])
        assert abs(line["last_time"] - recording.times[at + images.PIECES - 1]) < MS // 10, line


def test_files_of_one_time():
    """Pieces of the same images in two files, one of which is longer to read: they are read side by side."""
    camera = images.Sender(range(40))
    other = images.Sender(range(200)).frames()
    ways = [Recording(), Recording()]
    for i, frame in enumerate(camera.frames()):
        ways[i % 2].add([frame], i * MS // 2)
        if i % 2:
            ways[1].add([frame[:36] + b"\x10\x00" + frame[38:] for frame in other[i:i + 20]], i * MS // 2, 0)
    with processes.folder() as folder:
        ports = sum((("--port", "net_pcap%d,rx_pcap=%s" % (way, recording.write(folder, "%d.pcap" % way)))
                     for way, recording in enumerate(ways)), ())
        found, _ = capture(folder, ports)
    assert (found["complete"], found["incomplete"], found["frames"]["late"]) == (40, 0, 0), found


def test_other_file_begins_later():
    """By an hour: it waits for the first."""
    camera = images.Sender(range(10))
    with processes.folder() as folder:
        ports = sum((("--port", "net_pcap%d,rx_pcap=%s" % (way, Recording().add(camera.frames(), at).write(
            folder, "%d.pcap" % way))) for way, at in enumerate((3600 * 1000 * MS, 0))), ())
        found, lines = capture(folder, ports, ring=8)
    assert (found["complete"], found["frames"]["late"]) == (20, 0), found
    assert [line["first_time"] // (3600 * 1000 * MS) - START // (3600 * 1000 * MS) for line in lines] == 10 * [0] + 10 * [1]


def test_clock_that_was_set_back():
    """A time that is wrong, or a clock that was set: time goes on from there, and no frame waits."""
    camera = images.Sender(range(30))
    frames = camera.frames()
    for wrong, complete in ((-5000 * MS, 30), (-2 ** 40 * MS, 30)):
        recording = Recording().add(frames[:100], 0).add(frames[100:], wrong)
        recording.times = [max(time, 0) for time in recording.times]
        with processes.folder() as folder:
            found, _ = of_file(folder, recording)
        assert (found["complete"], found["frames"]["late"]) == (complete, 0), (wrong, found)
    # One frame from 2100 within an image: time goes on from there, so the rest of it is another.
    recording = Recording().add(frames, 0)
    recording.times[100] += 70 * 365 * 86400 * 1000 * MS
    with processes.folder() as folder:
        found, _ = of_file(folder, recording, expect=3)
    assert (found["complete"], found["incomplete"]) == (29, 2), found


def test_more_images_open_than_buffers():
    """No buffer would be free for ever: time passes for the images that miss pieces."""
    sender = images.Sender(range(3), streams=range(12))
    sender.packets.sort(key=lambda packet: (packet[1], packet[2]))  # all streams in turn
    frames = [sender.frame(packet) for packet in sender.packets if packet[2]]  # piece 0 of all is lost
    with processes.folder() as folder:
        found, _ = of_file(folder, Recording().add(frames, 0), expect=3, ring=8)
    assert found["complete"] == 0 and found["dropped"] == 0 and found["incomplete"] >= 36, found
    assert found["frames"]["no_room"] == 0, found


def test_loops():
    """A file that is read again begins again, after a silence."""
    camera = images.Sender(range(3))
    with processes.folder() as folder:
        path = Recording().add(camera.frames(), 0).write(folder)
        found, lines = capture(folder, ("--port", "net_pcap0,rx_pcap=%s,infinite_rx=1" % path), "--images", "30")
    assert found["complete"] >= 30 and found["frames"]["late"] == 0, found
    assert [line["number"] for line in lines[:30]] == 10 * [0, 1, 2], lines


def test_pipe_that_pauses():
    """Records that lie in its writer's buffers are late in coming, not in time."""
    camera = images.Sender(range(3))
    frames = camera.frames()
    with processes.folder() as folder:
        pipe = test_file_ports.Pipe(folder)
        with processes.Running("capture", "--quiet", "--gpu", "host", *pipe.port, "--image", layout(folder)) as running:
            with pipe as file:
                file.write(pcapfile.pcap_bytes(frames[:20]))
                running.wait_until(lambda: running.out and json.loads(running.out[-1])["frames"]["received"] == 20)
                time.sleep(2 * TIMEOUT / 1e9 + 1.1)  # the clock of this machine would close it
                file.write(b"".join(pcapfile.pcap_record(frame, START + i * 1000) for i, frame in enumerate(frames) if i >= 20))
            found, = running.finish(0)["images"]
    assert (found["complete"], found["frames"]["late"]) == (3, 0), found


def test_silent_pipe_beside_a_file():
    """The file is read all the same, and what the pipe has open is closed a second later."""
    camera, other = images.Sender(range(4)), images.Sender(range(50), streams=(1,))
    with processes.folder() as folder:
        pipe = test_file_ports.Pipe(folder)
        out = os.path.join(folder, "out.raw")
        path = Recording().add(other.frames(), 0, MS).write(folder)
        with processes.Running("capture", "--quiet", "--gpu", "host", *pipe.port, "--port", "net_pcap1,rx_pcap=" + path, "--image",
                               layout(folder), "--save-images", out) as running:
            with pipe as file:
                file.write(pcapfile.pcap_bytes(camera.frames()[:images.PIECES - 1]))
                running.wait_until(lambda: os.path.exists(out) and os.path.getsize(out) == 51 * images.BYTES)
            found, = running.finish(3)["images"]
    assert (found["complete"], found["incomplete_by"]["timeout"]) == (50, 1), found
