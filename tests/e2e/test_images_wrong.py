# SPDX-License-Identifier: BSD-3-Clause
"""capture --image: layouts that are not the sender's never pass, and --save-images spoils nobody's file."""
import os
import stat
import struct

import pytest

import e2e
import processes
import test_images as images
import test_images_index

pytestmark = pytest.mark.sanitized

PICTURE, PAYLOAD = 2560, 500


def gvsp(block, packet_id, kind, data):
    return images.udp(struct.pack(">HHI", 0, block, kind << 24 | packet_id) + data)


def picture(block):
    """A leader, six packets of which the last is shorter, a trailer."""
    data = bytes((block + i) % 251 for i in range(PICTURE))
    packets = [data[at:at + PAYLOAD] for at in range(0, PICTURE, PAYLOAD)]
    return [gvsp(block, 0, 1, struct.pack(">HHQIIIIIHH", 0, 1, 7, 0x01080001, 64, 40, 0, 0, 0, 0)),
            *[gvsp(block, 1 + i, 3, part) for i, part in enumerate(packets)],
            gvsp(block, 1 + len(packets), 2, struct.pack(">HHI", 0, 1, 40))]


def pictures(folder, layout, expect):
    frames = [frame for block in (1, 2, 3) for frame in picture(block)]
    return e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" +
                        images.write_pcap(folder, "camera.pcap", frames), "--frames",
                        str(len(frames)), "--image", layout, expect=expect)


def test_a_camera_s_packets_are_of_another_size():
    with processes.folder() as folder:
        summary = pictures(folder, "gvsp,bytes=2560,piece=500", 0)
        assert summary["images"][0]["complete"] == 3, summary
        for piece in (100, 250, 400, 450, 499, 501, 600, 1000):
            for size in (PICTURE, 10000):
                summary = pictures(folder, "gvsp,bytes=%d,piece=%d" % (size, piece), 3)
                assert summary["images"][0]["complete"] == 0, (piece, size, summary)
                assert any("do not fit the layout" in text for text in summary["messages"]), summary


def test_a_short_packet_before_others():
    """It lacks its end, so its piece is a hole, in whichever order they come."""
    for short in range(6):
        for order in (1, -1):
            frames = [picture(block) for block in (1, 2, 3)]
            frames[1][1 + short] = gvsp(2, 1 + short, 3, bytes(10))
            frames[1][1:-1] = frames[1][1:-1][::order]
            with processes.folder() as folder:
                out = os.path.join(folder, "out.raw")
                summary = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" + images.write_pcap(
                    folder, "camera.pcap", sum(frames, [])), "--image", "gvsp,bytes=2560,piece=500,fill=7", "--save-images", out,
                                       expect=0 if short == 5 else 3)
                found = summary["images"][0]
                with open(out, "rb") as file:
                    data = file.read()
            if short == 5:
                assert found["complete"] == 3 and len(data) == 3 * PICTURE - 50, found
                continue
            assert (found["complete"], found["incomplete"]) == (2, 1), (short, order, found)
            assert found["first_incomplete"][0]["missing"] == [[short * PAYLOAD, PAYLOAD]], found
            assert data[PICTURE + short * PAYLOAD:][:PAYLOAD] == bytes([7]) * PAYLOAD, (short, order)


def saved(folder, frames, layout, expect):
    """Number, end, bytes and missing ranges of each image, from the index."""
    out = os.path.join(folder, "out.raw")
    e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" +
                 images.write_pcap(folder, "in.pcap", frames), "--image", layout, "--save-images", out, expect=expect)
    rows = [line for line, _ in test_images_index.split(out)]
    assert sum(row["bytes"] for row in rows) == os.path.getsize(out), rows
    return [(row["number"], row["end"], row["bytes"], row["missing"]) for row in rows]


def test_an_incomplete_image_ends_with_its_short_last_packet():
    """It is no longer than what came: nothing behind it is listed as there."""
    with processes.folder() as folder:
        frames = [*picture(1), *picture(2)[2:]]
        assert saved(folder, frames, "gvsp,bytes=8000,piece=500", 3) == [
            (1, "complete", PICTURE, []), (2, "stopped", PICTURE, [[0, 500]])]
        frames = images.heap(1, 1500, (0, 512), (1024, 476))
        assert saved(folder, frames, "spead,bytes=8192,piece=512", 3) == [(1, "stopped", 1500, [[512, 512]])]
        frames = images.heap(1, 1003, (504, 496), (1000, 3)) + images.heap(2, 1003, (0, 504), (504, 499))
        assert saved(folder, frames, "spead,bytes=8192", 0) == [(1, "stopped", 1003, [[0, 504]]), (2, "complete", 1003, [])]


def test_a_shorter_copy_takes_nothing_away():
    with processes.folder() as folder:
        for at in range(1, 6):
            frames = picture(1)
            frames.insert(at + 1, gvsp(1, at, 3, frames[at][42 + 8:][:250]))
            assert saved(folder, frames, "gvsp,bytes=8000,piece=500", 0) == [(1, "complete", PICTURE, [])], at


def test_bytes_behind_the_end_of_a_heap():
    """Item 2 says where it ends; a packet that goes on behind brings nothing."""
    with processes.folder() as folder:
        for beyond in ((1000, 8), (1000, 1), (996, 12), (504, 504)):
            frames = images.heap(1, 1000, beyond, (0, 504), (504, 496))
            assert saved(folder, frames, "spead,bytes=8192,piece=4", 3) == [(1, "complete", 1000, [])], beyond


def test_a_camera_s_pictures_are_larger():
    with processes.folder() as folder:
        for size in (500, 2000, 2500, 2559):
            summary = pictures(folder, "gvsp,bytes=%d,piece=500" % size, 3)
            assert summary["images"][0]["complete"] == 0, (size, summary)


def test_a_camera_s_answers_are_no_pictures():
    """UDP port 3956 of the camera: what it says to who controls it."""
    with processes.folder() as folder:
        answer = bytearray(gvsp(133, 0, 1, bytes(40)))
        answer[34:36] = struct.pack(">H", 3956)
        frames = [*picture(1), bytes(answer), *picture(2)]
        summary = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" +
                               images.write_pcap(folder, "camera.pcap", frames), "--frames",
                               str(len(frames)), "--image", "gvsp,bytes=2560,piece=500")
        assert summary["images"][0]["complete"] == 2 and summary["images"][0]["skipped"] == 0, summary
        assert summary["images"][0]["frames"]["filtered"] == 1, summary


def test_numbers_jump_far_ahead():
    """Lost or begun anew, nobody knows: it is said."""
    sender = images.Sender([1, 2, 200000, 200001])
    with processes.folder() as folder:
        summary, _ = images.capture(folder, sender.frames(), images.layout(folder))[:2]
    told = summary["images"][0] if "images" in summary else summary
    assert told["restarts"] == 1 and told["complete"] == 4, told


def test_frames_as_large_as_the_layout_s_pieces():
    """Without --frame-size."""
    with processes.folder() as folder:
        path = os.path.join(folder, "large.yaml")
        with open(path, "w") as file:
            file.write("image:\n  number: {at: 0, bytes: 4}\n  index: {at: 4, bytes: 4}\n"
                       "  data: {payload: 8}\n  piece: 8192\n  pieces: 2\n")
        frames = [images.udp(struct.pack(">II", n, i) + bytes([n + i]) * 8192)
                  for n in range(3) for i in range(2)]
        summary = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" +
                               images.write_pcap(folder, "large.pcap", frames), "--frames", "6",
                               "--image", path)
        assert summary["images"][0]["complete"] == 3, summary


def refused(folder, out, status, why):
    frames = images.Sender([1, 2]).frames()
    path = images.write_pcap(folder, "in.pcap", frames)
    result = e2e.run("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" + path,
                     "--frames", str(len(frames)), "--image", images.layout(folder), "--save-images",
                     out, expect=status)
    assert why in result.err, result
    with open(path, "rb") as file:
        assert file.read() == images.pcapfile.pcap_bytes(frames), "the input was changed"


def test_files_that_are_not_written():
    with processes.folder() as folder:
        refused(folder, os.path.join(folder, "in.pcap"), 2, "which this run reads (port)")
        os.link(os.path.join(folder, "in.pcap"), os.path.join(folder, "other-name"))
    with processes.folder() as folder:
        target = os.path.join(folder, "target")
        os.symlink(target, os.path.join(folder, "link"))
        refused(folder, os.path.join(folder, "link"), 1, "symbolic link")
        assert not os.path.exists(target)
        os.mkfifo(os.path.join(folder, "pipe"))
        refused(folder, os.path.join(folder, "pipe"), 1, "no process reads this pipe")


def test_what_is_saved_is_its_owner_s():
    sender = images.Sender([1, 2])
    with processes.folder() as folder:
        images.capture(folder, sender.frames(), images.layout(folder))
        mode = os.stat(os.path.join(folder, "out.raw")).st_mode
        assert stat.S_IMODE(mode) == 0o600, oct(mode)
