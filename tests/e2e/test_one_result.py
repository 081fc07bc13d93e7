# SPDX-License-Identifier: BSD-3-Clause
"""Of runs that failed, each for another reason: text, JSON, metrics, report and merge say the same."""
import json
import os
import re

import pytest

import e2e
import metrics_text
import pcapfile
import processes
import test_images as images
import test_images_conflict as conflict
import test_metrics
import test_report
import test_save


def own(*changes):
    """The numbers of 20 frames in order, after each change; a negative one is damaged."""
    numbers = list(range(20))
    for change in changes:
        change(numbers)
    sent = test_save.own_frames(20)
    return [sent[number] if number >= 0 else test_save.changed(sent[-number], 60, 1) for number in numbers]


def some(lost=(), numbers=range(4)):
    """A camera's frames less those (image, piece)."""
    camera = images.Sender(numbers)
    return [camera.frame(packet) for packet in camera.packets if packet[1:] not in lost]


def short():
    """Frames of a camera whose pieces are smaller than the layout's."""
    return [images.udp(frame[42:53 + 900]) for frame in some(numbers=range(10, 11))]


OF_IMAGES = "--image", "LAYOUT"
# Name: frames, arguments, a part of the reason.
CASES = {
    "lost": (lambda: own(lambda n: n.pop(7)), (), "1 frame lost"),
    "damaged": (lambda: own(lambda n: n.__setitem__(7, -7)), (), "1 frame damaged"),
    "duplicated": (lambda: own(lambda n: n.insert(8, 7)), (), "1 frame duplicated"),
    "several": (lambda: own(lambda n: n.insert(8, 7), lambda n: n.__setitem__(3, -3), lambda n: n.pop(15)), (), "1 frame lost"),
    "fewer": (own, ("--frames", "30"), "20 of 30 frames received"),
    "nothing": (lambda: [bytes(60)], (), ""),
    "long": (lambda: [*own(lambda n: n.pop()), own()[19] + bytes(9500)], (), "1 frame damaged"),
    "expected": (lambda: own(lambda n: n.pop(7)), ("--expect", "EXPECT"), "1 frame lost"),
    "incomplete": (lambda: some({(1, 3)}), OF_IMAGES, "1 image incomplete"),
    "skipped": (lambda: some({(1, i) for i in range(images.PIECES)}), OF_IMAGES, "1 image skipped"),
    "late": (lambda: some(numbers=range(20)) + some(numbers=range(1)), OF_IMAGES, "handed out"),
    "conflict": (lambda: conflict.Camera(0, range(2)).frames()[:20] + conflict.Camera(1, range(2)).frames()[19:], OF_IMAGES,
                 "second sender"),
    "misfit": (lambda: some() + short(), OF_IMAGES, "did not fit"),
    "no image": (lambda: [bytes(60)], OF_IMAGES, ""),
    "fewer images": (some, (*OF_IMAGES, "--images", "9"), "4 of 9 images came whole"),
}


def reasons(done):
    """Of the text's last line."""
    failed = re.findall(r"^FAIL: (.*)$", done.out, re.M)
    assert len(failed) == 1, done.out
    return failed[0]


def check_image_metrics(values, summary):
    for i, found in enumerate(summary["images"]):
        which = "%d,%s" % (i, found["name"])
        assert values["gdrcap_images_open{%s}" % which] == found["open"]
        assert values["gdrcap_image_bytes_total{%s}" % which] == found["bytes"]
        assert values["gdrcap_image_pieces_lost_total{%s}" % which] == found["pieces"]["lost"]
        for key in ("complete", "incomplete", "dropped", "skipped"):
            assert values["gdrcap_images_total{%s,%s}" % (which, key)] == found[key], key
        for key in ("placed", "duplicate", "second_leg", "conflict", "late", "no_room", "misfit", "filtered"):
            assert values["gdrcap_image_frames_total{%s,%s}" % (which, key)] == found["frames"][key], key


@pytest.mark.parametrize("case", CASES)
def test_same(case):
    make, arguments, part = CASES[case]
    with processes.folder() as folder:
        path = pcapfile.write_pcap(os.path.join(folder, "in.pcap"), make())
        whole = pcapfile.write_pcap(os.path.join(folder, "whole.pcap"), own())
        named = {"LAYOUT": images.layout(folder, open=2, ring=8 if case == "late" else 64), "EXPECT": whole}
        run = ("capture", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" + path, *(named.get(a, a) for a in arguments))
        metrics, file = os.path.join(folder, "run.prom"), os.path.join(folder, "run.json")
        done = e2e.run(*run, expect=3)
        summary = e2e.run_json(*run, "--quiet", "--metrics-textfile", metrics, expect=3)
        pcapfile.write(file, json.dumps(summary).encode())
        with open(metrics) as text:
            values = metrics_text.flat(text.read())
        assert summary["result"] == "fail" and summary["errors"], summary
        assert part in " ".join(summary["errors"]), summary["errors"]
        # text
        assert reasons(done) == "; ".join(summary["errors"]), (done.out, summary["errors"])
        # metrics
        assert values["gdrcap_run_failed"] == 1 and values["gdrcap_running"] == 0, values
        assert values["gdrcap_received_frames_total"] == summary["frames"]["received"], values
        if summary["images"]:
            check_image_metrics(values, summary)
        else:
            test_metrics.check_final(values, summary)
        # report
        test_report.need()
        page = test_report.report(summary)
        assert "FAIL" in page.text, page.text[:1500]
        for error in summary["errors"]:
            assert re.sub(r"\s+", " ", error) in page.text, (error, page.text[:1500])
        # merge
        merged = e2e.run("merge", "--json", file, expect=3).summary
        assert merged["result"] == "fail" and merged["errors"], merged
        for key, count in merged["frames"].items():
            if count is not None and summary["frames"].get(key) is not None and key != "sent":
                assert int(count) == summary["frames"][key], (key, merged["frames"], summary["frames"])
