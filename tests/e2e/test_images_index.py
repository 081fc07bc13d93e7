# SPDX-License-Identifier: BSD-3-Clause
"""The index beside a file of raw images: what 20 lines of Python need to split it, whatever ended the run."""
import json
import os
import resource
import signal

import pytest

import e2e
import pcapfile
import processes
import test_file_ports

pytestmark = pytest.mark.sanitized

PIECE = 1000
IMAGE = ("--gpu", "host", "--image", "gvsp,bytes=8000,piece=1000,timeout=0.2,ring=16")


def gvsp(number, packets, lost=()):
    """An image's frames, of which some are lost."""
    frames = test_file_ports.gvsp(number, packets, PIECE)
    return [frame for i, frame in enumerate(frames) if i - 1 not in lost]


def pixels(number, packets):
    return b"".join(bytes([(number + i) % 251]) * PIECE for i in range(packets))


def split(path):
    """[(line of the index, image)]: lines that are whole, as the documentation's example reads them."""
    with open(path, "rb") as file, open(path + ".jsonl") as index:
        data = file.read()
        lines = [json.loads(line) for line in index.read().split("\n")[:-1]]
    for line in lines:
        assert line["offset"] + line["bytes"] <= len(data), line
    return [(line, data[line["offset"]:line["offset"] + line["bytes"]]) for line in lines]


def check_image(line, image, packets, missing=()):
    wanted = pixels(line["number"], packets)
    assert line["bytes"] == len(wanted) and line["missing"] == [list(row) for row in missing], line
    at = 0
    for begin, count in (*missing, (len(wanted), 0)):
        assert image[at:begin] == wanted[at:begin], line
        at = begin + count


def capture(folder, frames, *arguments, expect=0, **options):
    path = pcapfile.write_pcap(os.path.join(folder, "in.pcap"), frames)
    return processes.run_json("capture", "--quiet", *test_file_ports.port(path), *IMAGE, *arguments, expect=expect, **options)


def test_sizes_and_holes():
    """Pictures of other sizes one after the other, with pieces and an end that are missing."""
    sizes = {1: 2, 2: 3, 3: 8, 4: 1, 5: 2, 6: 5}
    lost = {2: (1,), 3: (0, 1, 4), 6: (4,)}
    holes = {2: [(1000, 1000)], 3: [(0, 2000), (4000, 1000)], 6: [(4000, 1000)]}
    frames = [frame for number, packets in sizes.items() for frame in gvsp(number, packets, lost.get(number, ()))]
    with processes.folder() as folder:
        out = os.path.join(folder, "out.raw")
        summary = capture(folder, frames, "--save-images", out, expect=3)
        assert summary["images"][0]["saved"] == {"images": 6, "missed": 0}, summary["images"]
        assert os.path.getsize(out) == sum(sizes.values()) * PIECE
        images = split(out)
        assert [(line["seq"], line["number"]) for line, _ in images] == [(i, i + 1) for i in range(6)]
        for line, image in images:
            check_image(line, image, sizes[line["number"]], holes.get(line["number"], ()))
            assert line["first_time"] <= line["last_time"] and line["stream_id"] == 0, line
        # The next run replaces both files. With every second image saved, the index has a line for those only.
        capture(folder, frames, "--save-images", out, "--save-every", "2", expect=3)
        assert [line["number"] for line, _ in split(out)] == [1, 3, 5]
        assert os.stat(out + ".jsonl").st_mode & 0o777 == os.stat(out).st_mode & 0o777 == 0o600


def test_full_disk():
    """Lines of the images that are in the file as a whole."""
    frames = [frame for number in range(1, 41) for frame in gvsp(number, 8)]

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    with processes.folder() as folder:
        out = os.path.join(folder, "out.raw")
        summary = capture(folder, frames, "--save-images", out, expect=3, preexec_fn=limit)
        images = split(out)
        assert len(images) == 100000 // 8000 == summary["images"][0]["saved"]["images"], summary["images"]
        for line, image in images:
            check_image(line, image, 8)


def test_killed():
    """SIGKILL: each line that is whole is of an image that is."""
    frames = [frame for number in range(1, 41) for frame in gvsp(number, 1 + number % 8)]
    with processes.folder() as folder:
        path, out = pcapfile.write_pcap(os.path.join(folder, "in.pcap"), frames), os.path.join(folder, "out.raw")
        process = e2e.start("capture", "--quiet", *IMAGE, "--port", "net_pcap0,rx_pcap=%s,infinite_rx=1" % path, "--save-images",
                            out, stderr=None, stdout=None)
        try:
            assert processes.wait_until(lambda: os.path.exists(out + ".jsonl") and os.path.getsize(out + ".jsonl") > 5000)
        finally:
            process.kill()
            process.wait()
        images = split(out)
        assert len(images) > 20
        for line, image in images:
            check_image(line, image, 1 + line["number"] % 8)


def test_nothing_beside_a_pipe():
    with processes.folder() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        capture(folder, gvsp(1, 8), "--save-images", pipe)
        assert os.read(reader, 10000) == pixels(1, 8) and not os.path.exists(pipe + ".jsonl")
        os.close(reader)


def test_what_it_would_overwrite():
    """It is a file that the run writes, as others are."""
    with processes.folder() as folder:
        out = os.path.join(folder, "out.raw")
        path = pcapfile.write_pcap(out + ".jsonl", gvsp(1, 8))
        arguments = ("capture", "--quiet", *IMAGE, "--save-images", out)
        for more, words in ((test_file_ports.port(path), "which this run reads"),
                            (("--port", "net_null0", "--json", "--json-file", path), "are one file")):
            result = e2e.run(*arguments, *more, expect=2)
            assert words in result.err and os.path.getsize(path) > 8000, result
        link = os.path.join(folder, "other.raw")
        os.symlink(path, link + ".jsonl")
        summary = capture(folder, gvsp(1, 8), "--save-images", link, expect=1)
        assert "other.raw.jsonl: it is a symbolic link" in test_file_ports.errors(summary), summary["errors"]
