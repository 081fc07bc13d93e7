# SPDX-License-Identifier: BSD-3-Clause
"""capture --image of frames for places that are filled: two senders with the same ids, a sender that begins again
within a file, and second legs (ST 2022-7)."""
import os

import pytest

import e2e
import pcapfile
import processes
import test_images as images

pytestmark = pytest.mark.sanitized

CAMERAS = (b"\2\0\0\0\0\2", b"\x0a\0\0\1", 4000), (b"\2\0\0\0\0\3", b"\x0a\0\0\3", 4001)
NAMES = "02:00:00:00:00:02 10.0.0.1:4000", "02:00:00:00:00:03 10.0.0.3:4001"


class Camera(images.Sender):
    """With addresses of its own, and pixels of its own if it has a seed."""

    def __init__(self, which, numbers, seed=0):
        super().__init__(numbers)
        self.mac, self.ip, self.port = CAMERAS[which]
        if seed:
            self.image = {image: images.content(seed, image[1]) for image in self.image}

    def frame(self, packet, **options):
        frame = bytearray(super().frame(packet, **options))
        frame[6:12], frame[26:30], frame[34:36] = self.mac, self.ip, self.port.to_bytes(2, "big")
        return bytes(frame)


def layout(folder, legs=None, open=2, ring=1024):
    path = images.layout(folder, open=open, ring=ring)
    if legs:
        with images.open_file(path) as file:
            text = file.read()
        with images.open_file(path, "w") as file:
            file.write(text.replace("  timeout: 60\n", "  timeout: 60\n  legs: %s\n" % legs))
    return path


def capture(folder, frames, image, *arguments, **options):
    """The summary's images, and the texts of its errors."""
    port = options.pop("port", None) or ("--port", "net_pcap0,rx_pcap=" + images.write_pcap(folder, "in.pcap", frames))
    summary = e2e.run_json("capture", "--quiet", "--gpu", "host", *port, "--image", image, *arguments, **options)
    images.check_images(summary)
    return summary["images"][0], " ".join(summary["errors"])


def mixed(*senders):
    """Their frames, packet by packet in turn."""
    return [frame for frames in zip(*(sender.frames() for sender in senders)) for frame in frames]


def test_two_cameras_with_the_same_ids():
    """The second one's frames are in conflict, each of them, and both senders are named."""
    first, second = Camera(0, range(20)), Camera(1, range(20), seed=7)
    with processes.folder() as folder:
        found, errors = capture(folder, mixed(first, second), layout(folder, open=30), expect=3)
        assert found["frames"]["conflict"] + found["frames"]["late"] == len(second.packets), found
        assert found["frames"]["conflict"] >= 20 * (images.PIECES - 1), found
        row, = found["conflicts"]
        assert row["other"] == "sender", row
        assert (row["stream"], row["frames"]) == (0, found["frames"]["conflict"]) and row["number"] in range(20), row
        assert (row["first"], row["second"]) == NAMES, row
        assert NAMES[0] in errors and NAMES[1] in errors and "legs=2" in errors, errors
        # The second sender sends the same pixels, and is a conflict all the same: legs=2 was not set.
        found, _ = capture(folder, mixed(first, Camera(1, range(20))), layout(folder, open=30), expect=3)
        assert found["frames"]["conflict"] >= 20 * (images.PIECES - 1), found


def test_two_cameras_at_other_times():
    """In one stream, never within the same image: numbers far apart in turn, one that goes on with the other's numbers, and one
    that fills in a whole image. After a silence another camera may come."""
    first, other = Camera(0, range(10)), Camera(1, range(5000, 5010))
    whole = [camera.frames()[i * images.PIECES:(i + 1) * images.PIECES] for i in range(10) for camera in (first, other)]
    goes_on = first.frames() + Camera(1, range(10, 20)).frames()
    filled = first.frames()[:5 * images.PIECES] + Camera(1, range(5, 6)).frames() + first.frames()[6 * images.PIECES:]
    with processes.folder() as folder:
        path = layout(folder, open=8)
        for frames, wrong, images_of_all in ((sum(whole, []), 160, 20), (goes_on, 160, 20), (filled, images.PIECES, 10)):
            found, errors = capture(folder, frames, path, "--allow-late", expect=3)
            assert (found["frames"]["conflict"], found["complete"]) == (wrong, images_of_all), found
            row, = found["conflicts"]
            assert (row["first"], row["second"]) == NAMES and row["other"] == "sender", row
            assert NAMES[0] in errors and NAMES[1] in errors, errors
        later = pcapfile.write_pcap(os.path.join(folder, "later.pcap"), goes_on, times_ns=[
            pcapfile.START_NS + i * 1000 + (i >= 160) * 61 * 10**9 for i in range(320)])
        found, _ = capture(folder, [], path, port=("--port", "net_pcap0,rx_pcap=" + later), expect=0)
        assert found["complete"] == 20, found


def test_a_second_sender_fills_no_hole():
    first, second = Camera(0, range(5)), Camera(1, range(5), seed=7)
    del first.packets[images.PIECES + 3]
    with processes.folder() as folder:
        found, _ = capture(folder, first.frames()[:images.PIECES + 8] + second.frames()[images.PIECES + 3:images.PIECES + 4] +
                           first.frames()[images.PIECES + 8:], layout(folder), expect=3)
    assert found["frames"]["conflict"] == 1 and found["incomplete"] == 1 and found["complete"] == 4, found


def test_a_camera_begins_again_within_a_file():
    """A camera that restarts a few numbers back without a pause sends late frames. Far back, it sends new images: they pass."""
    camera = Camera(0, range(50))
    with processes.folder() as folder:
        few = layout(folder, ring=8)  # so that most images were handed out before the second life begins
        for arguments, expect in (((), 3), (("--allow-late",), 0)):
            found, errors = capture(folder, camera.frames() * 2, few, *arguments, expect=expect)
            assert found["complete"] == 50 and found["frames"]["late"] >= 40 * images.PIECES, found
            assert found["frames"]["late"] + found["frames"]["duplicate"] == len(camera.packets), found
            assert ("--allow-late" in errors) == bool(expect), errors
        found, _ = capture(folder, Camera(0, range(5000, 5050)).frames() + camera.frames(), few, expect=0)
        assert found["complete"] == 100 and found["frames"]["late"] == 0, found


def test_a_camera_begins_again_within_an_image():
    """A camera restarts in the middle of an image and sends other pixels for places that are filled: a conflict."""
    first, second = Camera(0, range(3)), Camera(0, range(3), seed=7)
    frames = first.frames()[:5] + second.frames()
    with processes.folder() as folder:
        found, errors = capture(folder, frames, layout(folder), expect=3)
    assert found["frames"]["conflict"] == 5 and found["complete"] == 3, found
    row, = found["conflicts"]
    assert (row["other"], row["first"], row["second"]) == ("bytes", NAMES[0], NAMES[0]), row
    assert "was started again" in errors and NAMES[0] in errors, errors


def test_copies():
    """The same bytes again, while the image is open: duplicates, which fail nothing."""
    camera = Camera(0, range(3))
    frames = [frame for frame in camera.frames() for _ in range(2)]
    del frames[-1]
    with processes.folder() as folder:
        found, _ = capture(folder, frames, layout(folder), "--allow-late", expect=0)
    assert found["frames"]["conflict"] == 0 and found["frames"]["duplicate"] >= 3 * (images.PIECES - 1), found


def two_ports(folder, ways):
    return sum((("--port", "net_pcap%d,rx_pcap=%s" % (way, images.write_pcap(folder, "%d.pcap" % way, frames)))
                for way, frames in enumerate(ways)), ())


@pytest.mark.parametrize("which", (0, 1), ids=("one source", "two sources"))
def test_second_leg(which):
    """Two ways of the same images, by two ports: their copies are the second leg's, or late, and no failure."""
    ways = [Camera(0, range(50)).frames(), Camera(which, range(50)).frames()]
    with processes.folder() as folder:
        found, _ = capture(folder, [], layout(folder, legs=2, open=200), port=two_ports(folder, ways), expect=0)
        frames = found["frames"]
        assert found["complete"] == 50 and frames["placed"] == len(ways[0]), found
        assert frames["second_leg"] + frames["late"] == len(ways[1]) and frames["duplicate"] == 0, found


def test_legs_that_differ():
    """Two cameras that were declared as legs: their pixels are others."""
    with processes.folder() as folder:
        found, errors = capture(folder, mixed(Camera(0, range(50)), Camera(1, range(50), seed=7)),
                                layout(folder, legs=2, open=200), expect=3)
    assert found["frames"]["conflict"] >= 50 * (images.PIECES - 1) and found["frames"]["second_leg"] == 0, found
    assert found["conflicts"][0]["other"] == "bytes" and "legs do not send the same images" in errors, errors


def test_undeclared_second_leg():
    ways = [Camera(0, range(50)).frames(), Camera(1, range(50)).frames()]
    with processes.folder() as folder:
        found, _ = capture(folder, [], layout(folder, open=200), port=two_ports(folder, ways), expect=3)
    assert found["frames"]["conflict"] + found["frames"]["late"] > 0, found
    assert found["frames"]["second_leg"] == 0, found


def test_one_sender_with_many_ports():
    """legs=any: source ports that spread one image over queues."""
    camera = Camera(0, range(5))
    frames = [bytearray(frame) for frame in camera.frames()]
    for i, frame in enumerate(frames):
        frame[34:36] = (5000 + i % 7).to_bytes(2, "big")
    with processes.folder() as folder:
        frames = [bytes(frame) for frame in frames]
        found, _ = capture(folder, frames, layout(folder), expect=3)
        assert found["frames"]["conflict"] > 0, found
        found, _ = capture(folder, frames, layout(folder, legs="any"), expect=0)
        assert found["complete"] == 5, found


def test_text():
    """For people: the row, and the first conflict's senders."""
    first, second = Camera(0, range(3)), Camera(1, range(3))
    with processes.folder() as folder:
        path = images.write_pcap(folder, "in.pcap", mixed(first, second))
        done = e2e.run("capture", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" + path, "--image",
                       layout(folder, open=30), expect=3)
    assert "is from %s, the frame from %s" % NAMES in done.out, done.out
