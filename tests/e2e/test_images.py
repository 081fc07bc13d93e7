# SPDX-License-Identifier: BSD-3-Clause
"""capture --image: packets of a counter's over UDP, whole and with holes, twice, out of order, over the
end of their numbers. Every byte that is handed out is compared, and every count."""
import collections
import os
import random
import signal
import struct
import subprocess
import zlib

import e2e
import pcapfile
import processes

PIECE, PIECES, BYTES = 1000, 16, 15700  # the last piece has 700 bytes
FILL = 0xA5
PORT = 5000

LAYOUT = """image:
  name: counter
  base: udp
  stream: {at: 10, bytes: 1}
  number: {at: 0, bytes: %(number_bytes)d%(wrap)s}
  place:
    - {at: 8, bytes: 2, times: 1000}
  data: {payload: 11}
  piece: 1000
  bytes: 15700
  ring: %(ring)d
  open: %(open)d
  timeout: 60
  fill: 165
  full: %(full)s
match: ["dst_port=5000"]
"""


def layout(folder, ring=1024, open=2, wrap=None, full="drop_new"):
    path = os.path.join(folder, "layout.yaml")
    with open_file(path, "w") as file:
        file.write(LAYOUT % {"ring": ring, "open": open, "full": full, "number_bytes": 2 if wrap else 8,
                             "wrap": ", wrap: %d" % wrap if wrap else ""})
    return path


open_file = open


def udp(payload, port=PORT, vlan=None):
    datagram = struct.pack(">HHHH", 4000, port, 8 + len(payload), 0) + payload
    tag = struct.pack(">HH", 0x8100, vlan) if vlan else b""
    return (b"\2\0\0\0\0\1\2\0\0\0\0\2" + tag + b"\x08\0" +
            struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0,
                        b"\x0a\0\0\1", b"\x0a\0\0\2") + datagram)


def spead(items, data, flavour=0x0206):
    """A packet with these immediate items, {id: value}."""
    return udp(struct.pack(">HHHH", 0x5304, flavour, 0, len(items)) +
               b"".join(struct.pack(">Q", (0x8000 | item) << 48 | value) for item, value in items.items()) + data)


def heap(number, size, *parts):
    """The packets of a heap of zeros: (offset, bytes) each."""
    return [spead({1: number, 2: size, 3: at, 4: count}, bytes(count)) for at, count in parts]


def content(stream, number):
    return random.Random(stream << 40 | number).randbytes(BYTES)


class Sender:
    """Packets of images, in order: (stream, number, piece)."""

    def __init__(self, numbers, streams=(0,), wrap=None):
        self.wrap = wrap
        self.image = {(stream, number): content(stream, number)
                      for number in numbers for stream in streams}
        self.packets = [(*image, piece) for image in self.image for piece in range(PIECES)]
        self.indexed, self.pieces = [], {}  # self.packets as they were, and which pieces of each image

    def frame(self, packet, **options):
        stream, number, piece = packet
        head = (struct.pack(">H6x", number % self.wrap) if self.wrap
                else struct.pack(">Q", number)) + struct.pack(">HB", piece, stream)
        return udp(head + self.image[stream, number][piece * PIECE:(piece + 1) * PIECE],
                   **options)

    def frames(self):
        return [self.frame(packet) for packet in self.packets]

    def there(self, stream, number):
        if self.indexed != self.packets:
            self.indexed, self.pieces = self.packets[:], collections.defaultdict(set)
            for packet in self.packets:
                self.pieces[packet[:2]].add(packet[2])
        return self.pieces.get((stream, number), set())

    def expected(self, stream, number):
        """What is handed out of it: the bytes that were sent, and `fill` in the holes."""
        there, data = self.there(stream, number), bytearray(self.image[stream, number])
        for piece in range(PIECES):
            if piece not in there:
                end = min((piece + 1) * PIECE, BYTES)
                data[piece * PIECE:end] = bytes([FILL]) * (end - piece * PIECE)
        return bytes(data)

    def missing(self, stream, number):
        """[first byte, bytes] of each hole."""
        ranges, there = [], self.there(stream, number)
        for piece in sorted(set(range(PIECES)) - there):
            end = min((piece + 1) * PIECE, BYTES)
            if ranges and sum(ranges[-1]) == piece * PIECE:
                ranges[-1][1] = end - ranges[-1][0]
            else:
                ranges.append([piece * PIECE, end - piece * PIECE])
        return ranges


def check_images(summary, count=1):
    """The identities, of each description and of each of its streams."""
    assert len(summary["images"]) == count, summary["images"]
    for images in summary["images"]:
        for counts in [images, *images["streams"]]:
            frames, pieces = counts["frames"], counts["pieces"]
            assert frames["received"] == sum(frames[key] for key in (
                "placed", "duplicate", "second_leg", "conflict", "late", "no_room", "misfit", "filtered")), counts
            assert counts["begun"] == counts["complete"] + counts["incomplete"] + \
                counts["dropped"] and counts["open"] == 0, counts
            assert counts["incomplete"] == sum(counts["incomplete_by"].values()), counts
            assert pieces["expected"] == pieces["placed"] + pieces["lost"], counts
        for key in ("begun", "complete", "incomplete", "dropped", "skipped", "restarts", "bytes"):
            assert images[key] == sum(stream[key] for stream in images["streams"]), (key, images)
    assert summary["frames"]["received"] == sum(images["frames"]["received"]
                                                for images in summary["images"]), summary
    assert summary["frames"]["valid"] is summary["bits"] is None, summary


def write_pcap(folder, name, frames):
    path = os.path.join(folder, name)
    with open_file(path, "wb") as file:
        file.write(pcapfile.pcap_bytes(frames))
    return path


def capture(folder, frames, image, *arguments, port=None, expect=0):
    """The images of these frames, as the JSON tells of them, and their bytes. port: that brings them, if
    not one file."""
    out = os.path.join(folder, "out.raw")
    port = port or ("--port", "net_pcap0,rx_pcap=%s" % write_pcap(folder, "in.pcap", frames))
    summary = e2e.run_json("capture", "--quiet", "--gpu", "host", *port, "--frames",
                           str(len(frames)), "--image", image, "--save-images", out, *arguments,
                           expect=expect)
    check_images(summary)
    assert summary["frames"]["received"] == len(frames), summary["frames"]
    with open_file(out, "rb") as file:
        data = file.read()
    assert len(data) % BYTES == 0, len(data)
    return summary["images"][0], [data[at:at + BYTES] for at in range(0, len(data), BYTES)]


def handed_out(sender):
    """Images of which anything came."""
    return [image for image in sender.image if sender.there(*image)]


def check_handed_out(sender, images, data):
    """Each image once, in order within its stream, each byte of it; and what is said of holes."""
    begun = handed_out(sender)
    assert images["saved"] == {"images": len(begun), "missed": 0}, images["saved"]
    for stream in {image[0] for image in begun}:
        want = [sender.expected(*image) for image in begun if image[0] == stream]
        known = set(want)
        got = [entry for entry in data if entry in known]
        assert got == want, "stream %d" % stream
    assert len(data) == len(begun)
    holed = [image for image in begun if sender.missing(*image)]
    lost = sum(PIECES - len(sender.there(*image)) for image in begun)
    assert images["begun"] == len(begun) and images["dropped"] == 0, images
    assert images["incomplete"] == len(holed), images
    assert images["pieces"] == {"expected": PIECES * len(begun), "lost": lost,
                                "placed": PIECES * len(begun) - lost}, images
    notes = {(note["stream"], note["number"]): note for note in images["first_incomplete"]}
    assert len(notes) == min(len(holed), 16), notes
    for image, note in notes.items():
        ranges = sender.missing(*image)
        assert note["missing"] == ranges[:8] and note["ranges"] == len(ranges), (note, ranges)
        assert note["received"] == len(sender.there(*image)), note
        assert note["pieces"] == PIECES, note


def test_clean():
    sender = Sender(range(7, 207))
    with processes.folder() as folder:
        images, data = capture(folder, sender.frames(), layout(folder))
        check_handed_out(sender, images, data)
        assert images["name"] == "counter" and images["skipped"] == images["restarts"] == 0
        assert images["frames"]["placed"] == len(sender.packets), images
        # and behind VLAN tags, among frames that are not meant
        frames = [sender.frame(packet, vlan=5) for packet in sender.packets]
        frames += [udp(bytes(100), port=77), bytes(60)] * 10
        images, data = capture(folder, frames, layout(folder))
        check_handed_out(sender, images, data)
        assert images["frames"]["filtered"] == 20, images


def test_holes():
    """What is missing is said exactly, and filled."""
    dice = random.Random(3)
    for chance in (0.005, 0.2, 0.9):
        sender = Sender(range(300))
        first, last = sender.packets[0], sender.packets[-1]
        sender.packets = [first] + [packet for packet in sender.packets[1:-1]
                                    if dice.random() > chance] + [last]
        with processes.folder() as folder:
            images, data = capture(folder, sender.frames(), layout(folder), expect=3)
        check_handed_out(sender, images, data)
        assert images["skipped"] == 300 - len(handed_out(sender)), images
        assert images["incomplete_by"]["timeout"] == 0, images


def test_twice_and_out_of_order():
    """Packets overtake each other, into the next image too, and come twice."""
    dice = random.Random(4)
    sender = Sender(range(200))
    order = [(at + dice.random() * 12, packet) for at, packet in enumerate(sender.packets)]
    order += [(at + dice.random() * 12, packet) for at, packet in enumerate(sender.packets)
              if dice.random() < 0.1]
    sender.packets = [packet for _, packet in sorted(order)]
    with processes.folder() as folder:
        images, data = capture(folder, sender.frames(), layout(folder), "--allow-late")
    check_handed_out(sender, images, data)
    assert images["frames"]["placed"] == 200 * PIECES, images
    # a second copy is late once its image was handed out
    assert images["frames"]["duplicate"] + images["frames"]["late"] == len(
        sender.packets) - 200 * PIECES, images


def test_numbers_wrap_and_streams_mix():
    """Three streams, packet by packet, over the end of 16-bit numbers."""
    sender = Sender(range(65400, 65700), streams=(1, 2, 200), wrap=65536)
    sender.packets.sort(key=lambda packet: (packet[1], packet[2]))
    with processes.folder() as folder:
        images, data = capture(folder, sender.frames(), layout(folder, wrap=65536))
    check_handed_out(sender, images, data)
    assert [stream["id"] for stream in images["streams"]] == [1, 2, 200], images["streams"]
    assert all(stream["complete"] == 300 for stream in images["streams"]), images
    assert images["restarts"] == images["skipped"] == 0, images


def test_a_sender_begins_anew():
    sender = Sender([*range(5000, 5050), *range(50)])
    with processes.folder() as folder:
        images, data = capture(folder, sender.frames(), layout(folder))
        check_handed_out(sender, images, data)
        assert images["restarts"] == 1 and images["skipped"] == 0, images
        # a wild number is an image of its own, and the others are whole
        wild = Sender([*range(100), 1 << 50])
        one = wild.packets[-PIECES]
        wild.packets = wild.packets[:50 * PIECES + 3] + [one] + wild.packets[50 * PIECES + 3:-PIECES]
        images, data = capture(folder, wild.frames(), layout(folder), expect=3)
    assert images["complete"] == 100 and images["incomplete"] == 1, images
    assert images["first_incomplete"][0]["number"] == 1 << 50, images


def test_queues_and_workers():
    """An image's packets in turn by two queues, each with two workers: whichever is first. How far one
    queue is ahead of the other is the scheduler's, so as many images may be open as there are."""
    sender = Sender(range(100))
    frames = sender.frames()
    with processes.folder() as folder:
        files = [write_pcap(folder, "%d.pcap" % queue, frames[queue::2]) for queue in range(2)]
        port = ("--port", "net_pcap0," + ",".join("rx_pcap=%s" % path for path in files),
                "--queues", "2", "--blocks", "2")
        images, data = capture(folder, frames, layout(folder, open=200), port=port)
    check_handed_out(sender, images, data)
    assert images["frames"]["placed"] == len(frames), images


def test_two_ports_fill_each_others_holes():
    """The same packets by two ways, each of which loses some (ST 2022-7)."""
    dice = random.Random(6)
    sender = Sender(range(100))
    ways = [[packet for packet in sender.packets if dice.random() > 0.1] for _ in range(2)]
    both = set(ways[0]) | set(ways[1])
    sender.packets = [packet for packet in sender.packets if packet in both]
    sent = [[sender.frame(packet) for packet in way] for way in ways]
    with processes.folder() as folder:
        port = sum((("--port", "net_pcap%d,rx_pcap=%s" % (
            way, write_pcap(folder, "%d.pcap" % way, frames))) for way, frames in enumerate(sent)), ())
        images, data = capture(folder, sent[0] + sent[1], layout(folder, open=200), port=port,
                               expect=3)
    check_handed_out(sender, images, data)
    assert 50 < images["complete"] < 100, images
    assert images["frames"]["placed"] == len(both), images
    assert images["frames"]["duplicate"] + images["frames"]["late"] == len(ways[0]) + len(
        ways[1]) - len(both), images


def test_too_few_buffers():
    """Images that find none are dropped as a whole; what is handed out is right."""
    sender = Sender(range(2000))
    right = {sender.expected(*image) for image in sender.image}
    for full in ("drop_new", "drop_oldest"):
        with processes.folder() as folder:
            image = layout(folder, ring=3, full=full)
            images, data = capture(folder, sender.frames(), image, expect=None)
        assert images["begun"] == 2000 and images["incomplete"] <= 1, images
        assert images["complete"] == len(data) + images["saved"]["missed"], images
        assert images["pieces"]["lost"] == 0 or images["incomplete"], images
        assert sum(entry in right for entry in data) >= images["complete"] - images["saved"][
            "missed"] - images["incomplete"], images


def test_hostile_frames():
    """Any header: a count for each frame, and the images of a stream beside them are whole."""
    dice = random.Random(5)
    sender = Sender(range(50), streams=(3,))
    order = [(i / len(sender.packets), frame) for i, frame in enumerate(sender.frames())]
    for i in range(3000):
        fits = dice.random() < 0.3
        head = struct.pack(">QHB", dice.randrange(1 << 6), dice.randrange(15 if fits else 1 << 16),
                           dice.choice((7, 8, 9)))
        frame = bytearray(udp(head + dice.randbytes(PIECE if fits else dice.randrange(1400))))
        if dice.random() < 0.5:
            frame[dice.randrange(42)] = dice.randrange(256)
        if dice.random() < 0.5:
            del frame[dice.randrange(14, len(frame)):]
        order.append((i / 3000, bytes(frame)))
    order.sort(key=lambda entry: entry[0])
    with processes.folder() as folder:
        images, data = capture(folder, [frame for _, frame in order], layout(folder), expect=3)
    assert images["frames"]["misfit"] > 0 and images["frames"]["filtered"] > 0, images
    stream = [stream for stream in images["streams"] if stream["id"] == 3][0]
    assert stream["complete"] == 50 and stream["incomplete"] == 0, images
    assert [entry for entry in data if entry in set(sender.image.values())] == [
        sender.image[image] for image in sender.image]


def test_two_descriptions():
    """Images of two kinds beside each other, by rules: each has its own buffers and counts."""
    one, two = Sender(range(60)), Sender(range(1000, 1060))
    del two.packets[33 * PIECES + 7]
    frames = [frame for pair in zip(one.frames(), [
        two.frame(packet, port=5001) for packet in two.packets]) for frame in pair]
    frames += [one.frame(one.packets[-1]), udp(bytes(50), port=99), bytes(60)]
    with processes.folder() as folder:
        with open_file(layout(folder)) as file:
            first = file.read()
        other = os.path.join(folder, "other.yaml")
        with open_file(other, "w") as file:
            file.write(first.replace("counter", "other").replace("5000", "5001"))
        path = write_pcap(folder, "in.pcap", frames)
        arguments = ("capture", "--quiet", "--gpu", "host", "--port",
                     "net_pcap0,rx_pcap=%s" % path, "--frames", str(len(frames)), "--image",
                     os.path.join(folder, "layout.yaml"), "--image", other)
        summary = e2e.run_json(*arguments, expect=3)
        check_images(summary, 2)
        result = e2e.run(*arguments, "--save-images", os.path.join(folder, "x"), expect=2)
        assert "--save-images: one file holds images of one layout" in result.err, result
    counter, other = summary["images"]
    assert (counter["name"], other["name"]) == ("counter", "other"), summary
    assert (counter["complete"], counter["incomplete"]) == (60, 0), counter
    assert (other["complete"], other["incomplete"]) == (59, 1), other
    assert other["first_incomplete"][0]["number"] == 1033, other
    assert other["first_incomplete"][0]["missing"] == [[7000, 1000]], other
    assert (counter["frames"]["filtered"], other["frames"]["filtered"]) == (2, 0), summary
    assert summary["filtered"] == 2, summary


def test_every_so_many():
    sender = Sender(range(100))
    with processes.folder() as folder:
        _, data = capture(folder, sender.frames(), layout(folder), "--save-every", "7")
    assert data == [sender.expected(0, number) for number in range(0, 100, 7)]


def png_pixels(data):
    """Width, height, bit depth, colour type and the bytes of a PNG without interlacing, by its
    specification (ISO/IEC 15948)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, header, packed = 8, None, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(
            kind + chunk)
        header = struct.unpack(">IIBBBBB", chunk) if kind == b"IHDR" else header
        packed += chunk if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour = header[:4]
    each = depth // 8 * {0: 1, 2: 3, 6: 4}[colour]
    raw, row, pixels = zlib.decompress(packed), width * each, bytearray()
    for y in range(height):
        kind, line = raw[y * (row + 1)], bytearray(raw[y * (row + 1) + 1:(y + 1) * (row + 1)])
        above = pixels[-row:] if y else bytes(row)
        for x in range(row):
            left, up = line[x - each] if x >= each else 0, above[x]
            corner = above[x - each] if x >= each else 0
            guess = left + up - corner
            paeth = min((abs(guess - left), 0, left), (abs(guess - up), 1, up),
                        (abs(guess - corner), 2, corner))[2]
            line[x] = line[x] + (0, left, up, (left + up) // 2, paeth)[kind] & 255
        pixels += line
    return (width, height, depth, colour), bytes(pixels)


def pictures(folder, *arguments, expect=0):
    """Of five images, as they lie in files."""
    sender = Sender(range(5))
    name = arguments[1]
    path, out = write_pcap(folder, "in.pcap", sender.frames()), os.path.join(folder, "o.ut." + name)
    summary = e2e.run_json("capture", "--quiet", "--gpu", "host", "--port",
                           "net_pcap0,rx_pcap=%s" % path, "--frames", str(len(sender.packets)),
                           "--image", layout(folder), "--save-images", out, *arguments,
                           expect=expect)
    files = []
    for number in range(5 if not expect else 0):
        with open_file(os.path.join(folder, "o.ut-%d.%s" % (number, name)), "rb") as file:
            files.append(file.read())
    assert not os.path.exists(out)
    return summary, files, list(sender.image.values())


def test_pictures():
    """15,700 bytes are 157 x 100 pixels of 8 bits, 157 x 50 of 16, or 785 x 5 of four bytes."""
    with processes.folder() as folder:
        for size, largest in (((157, 100), 255), ((157, 50), 65535)):
            summary, files, want = pictures(folder, "--image-format", "pgm", "--image-size",
                                            "%dx%d" % size)
            assert files == [b"P5\n%d %d\n%d\n" % (*size, largest) + data for data in want]
            assert summary["images"][0]["saved"] == {"images": 5, "missed": 0}, summary
        summary, _, _ = pictures(folder, "--image-format", "ppm", "--image-size", "157x100",
                                 expect=3)
        assert "is no ppm picture of 157 x 100 pixels" in " ".join(summary["errors"]), summary
        assert summary["images"][0]["saved"] == {"images": 0, "missed": 5}, summary
        result = e2e.run("capture", "--image", layout(folder), "--save-images", "x.png",
                         "--image-format", "png", "--image-size", "1x1", "--port", "ring:x",
                         expect=None)
        if "without libpng" in result.err:
            raise e2e.Skip("the program was built without libpng")
        for size, depth, colour in (((157, 100), 8, 0), ((157, 50), 16, 0), ((785, 5), 8, 6)):
            _, files, want = pictures(folder, "--image-format", "png", "--image-size",
                                      "%dx%d" % size)
            assert [png_pixels(file) for file in files] == [
                ((*size, depth, colour), data) for data in want]


def test_picture_replaces_nothing_else():
    """A file of the name that a picture gets, which is none: it stays."""
    with processes.folder() as folder:
        path = os.path.join(folder, "o.ut-2.pgm")
        with open(path, "w") as file:
            file.write("a letter\n")
        summary, _, _ = pictures(folder, "--image-format", "pgm", "--image-size", "157x100", expect=3)
        assert "o.ut-2.pgm is there and is no picture" in " ".join(summary["errors"]), summary
        assert summary["images"][0]["saved"] == {"images": 2, "missed": 3}, summary
        with open(path) as file:
            assert file.read() == "a letter\n"
        os.unlink(path)
        pictures(folder, "--image-format", "pgm", "--image-size", "157x100")


def test_live():
    """From an interface, while it runs; what the kernel drops is a hole."""
    sender = Sender(range(100))
    with e2e.VethPair() as pair, processes.folder() as folder:
        out = os.path.join(folder, "out.raw")
        with processes.Running("capture", "--quiet", "--gpu", "host", "--port",
                               "net_af_packet0,iface=%s" % pair.right, "--image", layout(folder),
                               "--save-images", out) as running:
            running.wait_until_running()
            count = processes.send_raw(pair, sender.frames())
            running.wait_for_all(count)
            running.signal(signal.SIGINT)
            summary = running.finish(expect=None)
        check_images(summary)
        if summary["lost_by"]["nic_missed"] == 0 and pair.dropped() == 0:
            with open_file(out, "rb") as file:
                data = file.read()
            assert data == b"".join(sender.image.values())
            assert summary["result"] == "pass", summary


def test_example():
    """examples/images.c, as docs/embedding.md shows it."""
    if not os.environ.get("IMAGES_EXAMPLE"):
        raise e2e.Skip("IMAGES_EXAMPLE is not set")
    sender = Sender(range(30))
    del sender.packets[5 * PIECES + 3:5 * PIECES + 5]
    with processes.folder() as folder:
        with open_file(layout(folder)) as file:
            image = file.read()
        path = os.path.join(folder, "config.yaml")
        with open_file(path, "w") as file:
            file.write("port: \"net_pcap0,rx_pcap=%s\"\ngpu: host\nconsumer: {name: host}\n"
                       "frames: %d\n%s" % (write_pcap(folder, "in.pcap", sender.frames()),
                                          len(sender.packets), image))
        done = subprocess.run([os.environ["IMAGES_EXAMPLE"], path], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=e2e.TIMEOUT)
    lines = done.stdout.splitlines()
    assert done.returncode == 3 and len(lines) == 31, done
    assert "images: 1 image incomplete" in done.stderr, done
    assert lines[4] == "stream 0 image 4: 15700 of 15700 bytes", lines[4]
    assert lines[5] == "stream 0 image 5: 13700 of 15700 bytes, missing 3000+2000", lines[5]
    assert lines[30] == "29 complete, 1 incomplete, 0 dropped, 0 skipped", lines[30]


def test_text():
    """The same counts for people, and the exit status."""
    sender = Sender(range(20))
    del sender.packets[5 * PIECES + 3]
    with processes.folder() as folder:
        path = write_pcap(folder, "in.pcap", sender.frames())
        result = e2e.run("capture", "--gpu", "host", "--port", "net_pcap0,rx_pcap=%s" % path,
                         "--frames", str(len(sender.packets)), "--image", layout(folder), expect=3)
    assert "FAIL: 1 image incomplete" in result.out, result
    assert "stream 0 number 5 (newer): 15 of 16 pieces; missing bytes 3000-3999" in result.out, result


def test_refused():
    with processes.folder() as folder:
        path = write_pcap(folder, "in.pcap", [bytes(60)])
        for arguments, what in (
                (("--save-images", "x.raw"), "there are no images"),
                (("--image", layout(folder), "--save", "x.pcapng"), "save"),
                (("--image", layout(folder), "--save-images", "/nowhere/x.raw"), "/nowhere/x.raw"),
                (("--image", layout(folder), "--image-format", "pgm"), "--save-images"),
                (("--image", layout(folder), "--save-images", "x", "--image-format", "gif"), "gif"),
                (("--image", layout(folder), "--save-images", "x", "--image-format", "pgm"),
                 "--image-size"),
                (("--image", layout(folder), "--save-images", "x", "--image-size", "5x5"),
                 "--image-format"),
                (("--image", layout(folder), "--save-images", "x", "--image-format", "pgm",
                  "--image-size", "640x0"), "640x0"),
                (("--image", "nothing.yaml"), "nothing.yaml")):
            result = e2e.run("capture", "--gpu", "host", "--port", "net_pcap0,rx_pcap=%s" % path,
                             *arguments, expect=None)
            assert result.status in (1, 2) and what in result.err, result
