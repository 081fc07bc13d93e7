# SPDX-License-Identifier: BSD-3-Clause
"""capture --image of a camera that sends before and after the run: the images in whose middle it began and
ended are no loss, and every other hole is."""
import contextlib
import os
import signal
import subprocess

import pytest

import e2e
import processes
import test_images as images
import test_images_wrong as wrong

pytestmark = pytest.mark.sanitized

FIRST, LAST = 7, 20  # images that are sent


def seen(keep, expect, *arguments):
    """The images of those packets of FIRST..LAST for which keep(number, piece)."""
    sender = images.Sender(range(FIRST, LAST + 1))
    sender.packets = [packet for packet in sender.packets if keep(*packet[1:])]
    with processes.folder() as folder:
        found, data = images.capture(folder, sender.frames(), images.layout(folder), *arguments, expect=expect)
    images.check_handed_out(sender, found, data)
    return found


def holes(*lost):
    """All but these packets, and what a run from the middle of FIRST to the middle of LAST does not see."""
    return lambda number, piece: (number, piece) not in lost and (number, piece) >= (FIRST, 5) and (
        number, piece) <= (LAST, 9)


def test_begins_and_ends_in_the_middle():
    found = seen(holes(), 0)
    assert found["cut"] == {"by_start": 1, "by_stop": 1} and found["incomplete"] == 2, found
    assert found["complete"] == LAST - FIRST - 1, found


def test_loss_beside_a_cut():
    """In the first image, in the last, and the beginning or end of one between them."""
    for lost, cut in ((((FIRST, 8),), (0, 1)), (((LAST, 4),), (1, 0)), (((FIRST + 3, 0),), (1, 1)),
                      (((FIRST + 3, images.PIECES - 1),), (1, 1)), (((FIRST, images.PIECES - 1),), (0, 1))):
        found = seen(holes(*lost), 3)
        assert (found["cut"]["by_start"], found["cut"]["by_stop"]) == cut, (lost, found)


def test_last_packets_of_one_before_the_last():
    """The sender went on to the next image, which came whole or which the stop cut: they were lost."""
    for last, cut in ((images.PIECES - 1, 0), (5, 1)):
        found = seen(lambda number, piece, last=last: (number, piece) != (LAST - 1, images.PIECES - 1) and (
            number, piece) <= (LAST, last), 3)
        assert found["cut"] == {"by_start": 0, "by_stop": cut}, (last, found)
        assert found["incomplete"] == 1 + cut, (last, found)


def test_two_images_in_turn():
    """A sender that mixes the packets of two images is cut in both."""
    sender = images.Sender(range(4))
    pieces = images.PIECES
    first, last = sender.packets[:2 * pieces], sender.packets[2 * pieces:]
    sender.packets = first + [packet for pair in zip(last[:pieces - 2], last[pieces:]) for packet in pair]
    with processes.folder() as folder:
        found, data = images.capture(folder, sender.frames(), images.layout(folder))
    images.check_handed_out(sender, found, data)
    assert found["cut"] == {"by_start": 0, "by_stop": 2} and found["complete"] == 2, found


def test_no_whole_image():
    """There is nothing that a run of two halves could have proved."""
    sender = images.Sender(range(2))
    sender.packets = sender.packets[5:-5]
    with processes.folder() as folder:
        path = images.write_pcap(folder, "in.pcap", sender.frames())
        done = e2e.run("capture", "--gpu", "host", "--port", "net_pcap0,rx_pcap=%s" % path, "--frames",
                       str(len(sender.packets)), "--image", images.layout(folder), expect=3)
    assert "no image came whole" in done.out, done


def test_silence_of_an_interface_cuts_nothing():
    """libpcap's port reads files or an interface. Behind the last packet of a file others may have been sent; a sender
    that fell silent on an interface sent no more, or it was lost."""
    sender = images.Sender(range(4))
    del sender.packets[-3:]
    with e2e.VethPair() as pair, processes.folder() as folder:
        with processes.Running("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,iface=%s" % pair.right,
                               "--idle", "3", "--image", images.layout(folder)) as running:
            running.wait_until_running()
            processes.send_raw(pair, sender.frames())
            found, = running.finish(3)["images"]
    assert found["cut"] == {"by_start": 0, "by_stop": 0}, found
    assert (found["complete"], found["incomplete"]) == (3, 1), found


def test_so_many_images():
    """--images ends a run, and fewer fail it."""
    sender = images.Sender(range(5))
    del sender.packets[3]
    frames = sender.frames()
    with processes.folder() as folder:
        port = "net_pcap0,rx_pcap=" + images.write_pcap(folder, "in.pcap", frames)
        for wanted, expect in ((4, 3), (5, 3)):
            summary = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", port, "--image", images.layout(folder),
                                   "--images", str(wanted), expect=expect)
            assert summary["images"][0]["complete"] == 4, summary
            assert ("4 of 5 images came whole" in summary["errors"]) == (wanted == 5), summary["errors"]
        endless = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", port + ",infinite_rx=1", "--image",
                               images.layout(folder), "--images", "40", expect=3)
        assert endless["images"][0]["complete"] >= 40, endless
        done = e2e.run("capture", "--port", port, "--images", "4", expect=2)
    assert "images are wanted, and this run assembles none" in done.err, done


def test_holes_behind_the_last_image():
    """A run of three images is through with the third; how much of a file was read by then is by chance."""
    sender = images.Sender(range(7))
    sender.packets = [packet for packet in sender.packets if packet[1:] not in ((3, 4), (4, 0), (6, 2))]
    with processes.folder() as folder:
        port = "net_pcap0,rx_pcap=" + images.write_pcap(folder, "in.pcap", sender.frames())
        for wanted, expect in ((3, 0), (4, 3)):
            found, = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", port, "--image", images.layout(folder),
                                  "--images", str(wanted), expect=expect)["images"]
            assert found["incomplete"] - found["cut"]["by_stop"] == (0 if wanted == 3 else 2), (wanted, found)


def changed_layout(folder, old, new):
    path = images.layout(folder)
    with open(path) as file:
        text = file.read()
    assert old in text
    with open(path, "w") as file:
        file.write(text.replace(old, new))
    return path


def test_incomplete_ones_are_not_wanted():
    """`incomplete: drop` drops the cut ones too, and they fail no run for that."""
    sender = images.Sender(range(FIRST, LAST + 1))
    sender.packets = sender.packets[5:-5]
    with processes.folder() as folder:
        found, _ = images.capture(folder, sender.frames(), changed_layout(folder, "  timeout: 60\n",
                                                                          "  timeout: 60\n  incomplete: drop\n"))
    assert found["dropped"] == 2 and found["incomplete"] == 0, found
    assert found["cut"] == {"by_start": 1, "by_stop": 1}, found


def test_leader():
    """Where a camera's leader came, the run did not begin in the middle of its picture."""
    for first, expect in (([0, 4, 5, 6, 7], 3), ([4, 5, 6, 7], 0), ([7], 0), ([0, 7], 3)):
        frames = [wrong.picture(1)[at] for at in first] + wrong.picture(2) + wrong.picture(3)
        with processes.folder() as folder:
            summary = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" +
                                   images.write_pcap(folder, "in.pcap", frames), "--image", "gvsp,bytes=2560,piece=500",
                                   expect=expect)
        found, = summary["images"]
        assert found["complete"] == 2 and found["cut"]["by_start"] == (expect == 0), (first, found)


SENDER = """
import itertools, socket, sys, time
frames = open(sys.argv[2], "rb").read()
size = len(frames) // int(sys.argv[3])
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind((sys.argv[1], 0))
    for number in itertools.count():
        for piece in range(int(sys.argv[3])):
            frame = bytearray(frames[piece * size:(piece + 1) * size])
            frame[42:50] = number.to_bytes(8, "big")
            out.send(frame)
            time.sleep(0.0002)
"""


@contextlib.contextmanager
def camera(interface, folder):
    """Sends until the block ends: packets of one size, and in each image the same bytes."""
    path = os.path.join(folder, "frames")
    with open(path, "wb") as file:
        for piece in range(images.PIECES):
            file.write(images.udp(bytes(8) + bytes([0, piece, 0]) + bytes([piece]) * images.PIECE))
    with subprocess.Popen(["python3", "-c", SENDER, interface, path, str(images.PIECES)]) as process:
        try:
            yield
        finally:
            process.kill()


def test_joins_a_running_camera():
    """Ten of ten, wherever in an image the run begins and ends."""
    with e2e.VethPair() as pair, processes.folder() as folder, camera(pair.left, folder):
        layout = changed_layout(folder, "bytes: 15700", "bytes: 16000")
        for _ in range(10):
            with processes.Running("capture", "--quiet", "--gpu", "host", "--port",
                                   "net_af_packet0,iface=%s,framecnt=4096" % pair.right, "--image",
                                   layout) as running:
                running.wait_for_frames("received", 400)
                running.signal(signal.SIGINT)
                found, = running.finish(0)["images"]
            assert found["complete"] > 10 and found["skipped"] == 0, found
            assert found["incomplete"] == sum(found["cut"].values()) <= 2, found
