# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap report: one page of what runs wrote. Whatever stands in a file, the page is a right one or the error a clear one.

What it looks like: tests/python/test_report_page.py."""
import copy
import functools
import html.parser
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import xml.etree.ElementTree

import e2e
import pages

MARKUP = "<script>alert(1)</script><b onclick='x'>\"&amp;</b>{{ 7*7 }}{% raw %}]]>--><!--</svg></style>$\\alpha_2$\x1b[2J\u202e\0\ud800"
PAGE_MOST = 2_000_000  # bytes, of the longest run
ALONE = ("br", "hr", "img", "input", "link", "meta")


@functools.lru_cache(maxsize=None)
def need():
    """A Python with what the helper needs, as the helper finds it."""
    for python in ("python3", "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import jinja2, matplotlib"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return
        except OSError:
            pass
    raise e2e.Skip("a page needs python3-jinja2 and python3-matplotlib")


class Reader(html.parser.HTMLParser):
    """Tags, attributes and texts; fails where tags do not close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)


class Page:
    def __init__(self, text):
        self.html = text
        reader = Reader()
        reader.feed(text)
        reader.close()
        assert not reader.open, reader.open
        self.text = re.sub(r"\s+", " ", " ".join(reader.texts)).strip()
        self.tags = set(reader.tags)
        self.attributes = reader.attributes

    def check(self):
        """Nothing that runs, nothing that is fetched, no id twice, drawings that are XML."""
        assert not self.tags & {"script", "iframe", "object", "embed", "form", "base", "b"}, self.tags
        for tag, name, value in self.attributes:
            assert not name.startswith("on"), (tag, name, value)
            if name in ("href", "src", "xlink:href"):
                assert value.startswith(("#", "data:,")), (tag, name, value)
            assert "url(" not in (value or "") or re.fullmatch(r"(url\(#[\w-]+\)|[^(]|\((?=[^)]*\)))*", value), (name, value)
        ids = [value for _, name, value in self.attributes if name == "id"]
        assert len(ids) == len(set(ids)), [each for each in ids if ids.count(each) > 1][:5]
        for drawing in re.findall("<svg.*?</svg>", self.html, re.S):
            xml.etree.ElementTree.fromstring(drawing)
        assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", self.html)


@functools.lru_cache(maxsize=None)
def summary_of_a_run():
    """Of real frames, two streams, damage and loss put in by hand where a clean build has none."""
    found = e2e.run_json("loopback", "--gpu", "host", "--frames", "2000", "--queues", "2", "--quiet")
    found["damage"] = [{"kind": "payload", "stream": 1, "sequence": 7, "queue": 1, "wrong_bits": 3, "offset": 60, "expected": 0x41,
                        "got": 0x4a}, {"kind": "header", "stream": None, "sequence": None, "queue": 0, "wrong_bits": None, "offset": None,
                                       "expected": None, "got": None}]
    found["errors"] = ["2 frames damaged"]
    found["messages"] = ["a message"]
    found["result"] = "fail"
    found["lost_by"]["causes"].update(out_of_buffer=1234, wire_crc=0)
    found["stages"][0].update(state="failed", causes=["the likeliest"])
    found["steering"] = {"by": "card", "rules": [{"rule": "ethertype 0x88b5", "frames": None}]}
    found["images"] = None
    return found


def copied():
    return copy.deepcopy(summary_of_a_run())


def passed_run():
    """The same, with nothing wrong."""
    found = copied()
    found.update(result="pass", errors=[], damage=[])
    found["stages"][0].update(state="passed", causes=[])
    return found


def report(*contents, expect=0, arguments=(), names=(), program=e2e.LONG):
    """The page of files with these contents, objects or bytes; or what the error says. Of the program itself where that
    is told, and in `make check-long`; else of its helper (pages.py)."""
    with e2e.Folder() as folder:
        paths = []
        for i, content in enumerate(contents):
            paths.append(os.path.join(folder, names[i] if names else "%d.json" % i))
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            pathlib.Path(paths[-1]).write_bytes(data)
        done = e2e.run("report", *arguments, *paths, expect=expect) if program else pages.report(*arguments, *paths)
        assert done.status == expect, done
        assert "Traceback" not in done.err, done
        if expect:
            assert done.out == "" and done.err.startswith("gdrcap report: "), done
            return done.err
        assert done.err == "", done.err
        page = Page(done.out)
        page.check()
        return page


def lines(count, summary=None, seconds=1.0, final=True):
    """What --json-lines wrote before lines had a time: as many, the last final, as a stream of bytes."""
    found = passed_run() if summary is None else summary
    found.pop("elapsed_seconds", None)
    for i in range(1, count + 1):
        over = final and i == count
        found.update(result="pass" if over else "running", seconds=seconds * i, bytes=i * 150_000_000)
        found["frames"].update(sent=i * 100_000, received=i * 100_000, valid=i * 100_000, lost=0 if over else i // 100)
        found["sender"].update(frames=i * 100_000, bytes=i * 150_000_000, seconds=seconds * i)
        yield json.dumps(found, separators=(",", ":")).encode() + b"\n"


# ---- what is shown ----

def test_passed():
    need()
    summary = e2e.run_json("loopback", "--gpu", "host", "--frames", "1000", "--quiet")
    page = report(summary, program=True)
    assert "PASS 1,000 frames received, every one valid" in page.text, page.text[:2000]
    assert "gdrcap report: passed" in page.text
    # Of a wire in memory nobody counts these.
    assert "Not known, as no card here counts them: out_of_buffer, card_full" in page.text
    assert summary["version"] in page.text and "gdrcap.summary/1" in page.text


def test_failed():
    """Causes with what helps, in the program's own words; wrong bits marked."""
    need()
    page = report(summary_of_a_run(), program=True)
    assert "FAIL" in page.text and "2 frames damaged" in page.text and "a message" in page.text and "the likeliest" in page.text
    assert re.search(r"out_of_buffer 1,234 no free slot in the queue .*raise --blocks or --pool", page.text), page.text
    assert "Counted, and 0: wire_crc." in page.text
    # 0x41 is 0100 0001, and 0x4a 0100 1010.
    assert '0 wrong">0100 <mark>1</mark>0<mark>1</mark><mark>0</mark></span>' in page.html
    assert "payload 1 7 1 3 60 0x41 0x4a" in page.text
    assert "header not known not known 0 not known" in page.text


def test_over_time():
    """Rates are differences of the lines, the end is the last line's."""
    need()
    page = report(b"".join(lines(10)))
    assert "PASS" in page.text and "svg" in page.tags
    assert "10 lines of 0.json" in page.text and "lost or in flight: 0" in page.text
    assert "no frame had come" not in page.text
    # A run that stands still for three lines, and one that was cut off.
    found = list(lines(10, final=False))
    page = report(b"".join(found[:5] + [found[4]] * 3 + found[5:9]) + found[9][:-50])
    assert "STILL RUNNING" in page.text and "At 3 lines no frame had come since the line before" in page.text, page.text
    assert "The last line is cut off after %s bytes" % format(len(found[9]) - 50, ",") in page.text, page.text[:1000]
    assert "seconds since the first frame" in page.text and "Time is that of the last frame" in page.text


def timed(found, elapsed, **more):
    found = copy.deepcopy(found)
    found.update(elapsed_seconds=elapsed, **more)
    return found


def test_time_of_lines():
    """The axis is the lines' own time, whether frames come or not; only where a line has none it is the frames'."""
    need()
    sys.path.insert(0, str(e2e.ROOT / "app/page"))
    import course
    found = [json.loads(line) for line in lines(4, final=False)]
    # 3 s before the first frame, a frame each second, and 20 s of silence.
    quiet = timed(found[0], 3.0, seconds=None, bytes=0)
    quiet["frames"]["received"] = quiet["sender"]["frames"] = quiet["sender"]["bytes"] = quiet["sender"]["seconds"] = 0
    read = [quiet, timed(found[0], 4.0), timed(found[1], 5.0), timed(found[2], 6.0), timed(found[2], 26.0), timed(found[3], 27.0)]
    run = course.Course()
    for line in read:
        run.add(line)
    assert run.exact and run.stood == 0
    points = run.points()
    assert [point.time for point in points] == [3, 4, 5, 6, 26, 27], points
    assert [round(point.mpps, 9) for point in points] == [0, 0.1, 0.1, 0.1, 0, 0.1], points
    # The end comes at once, with some frames more: it makes no rate of its own; later it does.
    for elapsed, expected in ((27.01, [3, 4, 5, 6, 26, 27.01]), (27.9, [3, 4, 5, 6, 26, 27, 27.9])):
        run = course.Course()
        for line in read:
            run.add(line)
        run.add(timed(found[3], elapsed, result="pass"))
        assert [point.time for point in run.points()] == expected, run.points()
    page = report(as_lines(*read, timed(found[3], 27.01, result="pass")))
    assert "since the run's start" in page.text and "Time is that" not in page.text, page.text[:3000]
    assert "no frame had come since" not in page.text, page.text[page.text.index("no frame had come") - 200:]
    assert "run 27.010 s from its start to its end" in page.text, page.text[:2000]
    # What goes back, or is no time, is none.
    for wrong in (1.0, None, "x", [], -1, 1e400):
        run = course.Course()
        for line in (*read[:3], dict(read[3], elapsed_seconds=wrong)):
            run.add(line)
        assert not run.exact and [point.time for point in run.points()][:3] == [3, 4, 5], (wrong, run.points())
        assert run.points()[3].time > 5, (wrong, run.points())


def test_images():
    """Images, and holes in them; a sender, which receives nothing and so has no losses."""
    need()
    found = e2e.run_json("loopback", "--gpu", "host", "--frames", "4096", "--image", str(e2e.ROOT / "config/image-gdrcap.yaml"), "--rate", "1gbit",
                         "--quiet", expect=None)
    page = report(found)
    image = found["images"][0]
    assert "Images" in page.text and "bits checked" not in page.text, page.text[:1500]
    assert "%s %d %d %d %d %d" % (image["name"], image["begun"], image["complete"], image["incomplete"],
                                  image["cut"]["by_start"], image["cut"]["by_stop"]) in page.text, page.text[:1500]
    found.update(result="pass", errors=[])
    image.update(complete=3, incomplete=1, first_incomplete=[{"stream": 0, "number": 7, "by": "timeout", "pieces": None, "received": 3, "ranges": 2,
                                                              "missing": [[0, 1464]]}])
    page = report(found)
    assert "VERDICT NOT KNOWN it says “pass”, which this does not bear out: images incomplete: 1" in page.text and "7 0 timeout not known 3 2" in page.text, page.text[:1500]
    sent = e2e.run_json("replay", "--gpu", "host", "--tx-port", "net_null0", "--frames", "1000", "--quiet")
    sent["sender"].update(seconds=1.0)
    begun = copy.deepcopy(dict(sent, result="running"))
    begun["sender"].update(seconds=0.5, frames=500, bytes=sent["sender"]["bytes"] // 2)
    page = report((json.dumps(begun) + "\n" + json.dumps(sent) + "\n").encode())
    assert "PASS 1,000 frames sent" in page.text and "svg" in page.tags and "count so far" not in page.text, page.text[:1500]


def test_several():
    """Several files on one page, and several runs in a file; from standard input, and into a file."""
    need()
    summary = summary_of_a_run()
    page = report(summary, b"".join(lines(3)) * 2, names=("left.json", "right.jsonl"), arguments=("--title", "Abnahme <1>"))
    assert "Abnahme <1>" in page.text and "Abnahme &lt;1&gt;" in page.html
    for part in ("left.json, loopback FAIL", "right.jsonl, run 1, loopback PASS", "right.jsonl, run 2, loopback PASS"):
        assert part in page.text, (part, page.text[:600])
    with e2e.Folder() as folder:
        out = pathlib.Path(folder, "page.html")
        done = subprocess.run([e2e.PROGRAM, "report", "-", "--output", out], input=json.dumps(summary).encode(), capture_output=True,
                              check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done
        assert "standard input, loopback" in Page(out.read_text()).text
        missing = e2e.run("report", os.path.join(folder, "none.json"), expect=1)
        assert "none.json: No such file or directory" in missing.err, missing
        full = e2e.run("report", str(out.parent / "x"), "--output", "/dev/full", expect=1)
        assert "x: No such file" in full.err, full
        pathlib.Path(folder, "x").write_text(json.dumps(summary))
        full = e2e.run("report", str(out.parent / "x"), "--output", "/dev/full", expect=1)
        assert "/dev/full could not be written: No space left on device" in full.err, full


@functools.lru_cache(maxsize=None)
def examination():
    return json.loads(e2e.run("doctor", "--json", expect=None).out)


def test_doctor():
    """The machine beside a run: what is wrong with its remedy; hostile texts are texts."""
    need()
    found = copy.deepcopy(examination())
    found["machine"]["gpus"] = [{"pci": "0000:01:00.0", "name": "A <GPU>", "cuda_ordinal": 0, "numa_node": None}]
    found["checks"] = [
        {"id": "good", "group": "x", "subject": None, "severity": "slow", "verdict": "ok", "read": "r", "why": "w", "remedy": ""},
        {"id": "slow", "group": "x", "subject": "eth0", "severity": "slow", "verdict": "warn", "read": "is 1", "why": "w", "remedy": "do a\ndo b"},
        {"id": "bad", "group": "x", "subject": None, "severity": "fatal", "verdict": "fail", "read": "is 2", "why": "w", "remedy": "c"}]
    page = report(found, summary_of_a_run())
    assert "NOT ABLE" in page.text and "A <GPU> 0 not known" in page.text, page.text[:1000]
    assert re.search("bad fail is 2 w c slow eth0 warn is 1 w do a do b", page.text) and "fine: good" in page.text, page.text[:2000]
    assert "gdrcap report: failed" in page.text
    strange = (MARKUP, None, 7, [], {}, 10**400, "\n" * 500)
    report(*(dict(everywhere(found, lambda _, value=value: value), schema="gdrcap.doctor/1") for value in strange))
    report(*(dict(examination(), **{key: value}) for key in ("able", "machine", "checks", "pairs", "error") for value in (None, [7], {"a": 1})))
    many = dict(found, checks=found["checks"] * 1000)
    assert len(report(many).html) < PAGE_MOST


def test_command_line():
    assert "no file" in e2e.run("report", expect=2).err
    assert "--output" in e2e.run("report", "--outpt", "x", "y", expect=2).err
    assert "report --help" in e2e.run("report", "--nothing", expect=2).err
    shown = e2e.run("report", "--help").out
    assert "python3-jinja2 python3-matplotlib" in shown and "--output FILE" in shown, shown


def test_without_libraries():
    """What is missing is named with what installs it; nothing was written."""
    with e2e.Folder() as folder:
        file = pathlib.Path(folder, "a.json")
        file.write_text('{"schema":"gdrcap.summary/1"}')
        environment = dict(os.environ, PATH=folder)
        done = subprocess.run([e2e.PROGRAM, "report", file], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "python3 cannot be started: No such file" in done.stderr, done
        assert "apt-get install python3 python3-jinja2" in done.stderr, done
        # A Python that has neither, nor another one that it could ask.
        os.symlink(sys.executable, os.path.join(folder, "python3"))
        for name in ("jinja2", "matplotlib"):
            pathlib.Path(folder, name + ".py").write_text("raise ImportError(name=%r)" % name)
        environment.update(PYTHONPATH=folder, GDRCAP_REPORT_AGAIN="1")
        done = subprocess.run([e2e.PROGRAM, "report", file], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "lacks jinja2: sudo apt-get install python3-jinja2 python3-matplotlib" in done.stderr, done


# ---- verdicts, as far as they are known ----

def as_lines(*found):
    return b"".join(json.dumps(each).encode() + b"\n" for each in found)


def of_run(pid, result, **frames):
    """A line of the run that this process makes."""
    found = passed_run()
    found.update(result=result, run={"host": "here", "pid": pid, "started_ns": 1_700_000_000_000_000_000 + pid})
    found["frames"].update(frames)
    return found


def test_a_run_that_was_killed():
    """Another run's line ends a run: the one before it has no verdict, whatever the next one's is."""
    need()
    page = report(as_lines(of_run(1, "running", lost=500), of_run(1, "running", lost=900), of_run(2, "running"), of_run(2, "pass")))
    assert "0.json, run 1, loopback NOT ENDED no final line of it is here, and another run follows" in page.text, page.text[:1500]
    assert "0.json, run 2, loopback PASS" in page.text and page.text.startswith("gdrcap report: not ended"), page.text[:500]
    # Its final line and the next one's first are glued together.
    glued = as_lines(of_run(1, "running")) + as_lines(of_run(1, "fail"))[:900] + as_lines(of_run(2, "running"), of_run(2, "pass"))
    page = report(glued)
    assert "run 1, loopback NOT ENDED" in page.text and "run 2, loopback PASS" in page.text, page.text[:1500]
    # Two that write at once.
    page = report(as_lines(*(of_run(pid, result) for result in ("running", "running", "pass") for pid in (1, 2))))
    assert page.text.startswith("gdrcap report: every run passed") and "0.json, run 3" not in page.text, page.text[:500]
    # Of the last run there is a broken line only.
    for rest in (as_lines(of_run(2, "fail"))[:700], as_lines(of_run(2, "fail"))[:700] + b"\n"):
        page = report(as_lines(of_run(1, "pass")) + rest)
        assert page.text.startswith("gdrcap report: verdict not known"), page.text[:500]
        assert "1 broken line behind the end of a run: of another run that stood there nothing is known" in page.text, page.text[:1500]


def test_runs_not_shown():
    """The page's title is of all runs of a file."""
    need()
    page = report(as_lines(*(of_run(i, "fail" if i == 0 else "pass") for i in range(17))))
    assert page.text.startswith("gdrcap report: failed"), page.text[:300]
    assert "The file has 17 runs, of which the last 16 are shown. Of those before: FAIL: 1." in page.text and "run 17, loopback PASS" in page.text, page.text[:3000]


def test_pass_that_is_none():
    """A verdict says no more than the counts beside it."""
    need()
    clean = passed_run()
    image = {"name": "x", "complete": 5, "incomplete": 0, "dropped": 0, "skipped": None}
    cases = [({"schema": clean["schema"], "result": "pass"}, "frames.sent: not known; errors: not known"),
             (dict(clean, errors=["5 frames lost"]), "error: 5 frames lost"), (dict(clean, errors=None), "errors: not known"),
             (dict(clean, stages=[{"name": "x", "state": "failed"}]), "stage failed"),
             (dict(clean, conflicts=2), "conflicts of streams: 2"), (dict(clean, sender=dict(clean["sender"], errors=3)), "could not send: 3"),
             (dict(clean, streams=[{"stream": 7, "frames": {"lost": 4}}]), "frames lost in stream 7: 4"),
             (dict(clean, images=[dict(image, incomplete=3)]), "images incomplete: 3"),
             (dict(clean, images=[{"name": "x", "complete": -1}]), "images complete: not known"),
             (dict(clean, images=[dict(image)] * 70 + [dict(image, dropped=1)]), "images dropped: 1")]
    for frames, words in (({"valid": None, "lost": 5}, "frames lost: 5; frames.valid: not known"), ({"damaged": 3}, "frames damaged: 3"),
                          ({"valid": 0, "received": 0, "sent": 0}, "frames.received: 0"), ({"sent": 1_000_000}, "frames.sent: 1,000,000, but"),
                          (dict.fromkeys(clean["frames"]), "frames.received: not known")):
        cases.append((dict(clean, frames=dict(clean["frames"], **frames)), words))
    page = report(*(found for found, _ in cases))
    assert page.text.startswith("gdrcap report: verdict not known") and " PASS " not in page.text, page.text[:500]
    said = page.text.split("it says “pass”, which this does not bear out: ")[1:]
    assert len(said) == len(cases), (len(said), len(cases))
    for (_, words), text in zip(cases, said):
        assert words in text[:250], (words, text[:250])
    page = report(clean, dict(clean, images=[image, image]), dict(clean, frames=dict(clean["frames"], lost=None)))
    assert "PASS 10 images, every one complete; skipped: not known" in page.text, page.text[:800]
    assert "every one valid; lost: not known" in page.text and page.text.startswith("gdrcap report: every run passed"), page.text[:800]


def test_keys_that_stand_twice():
    need()
    whole = json.dumps(passed_run())
    twice = whole.replace('"result": "pass"', '"result": "fail", "result": "pass"')
    for text in (twice, whole + "\n" + twice, whole + "\n" + twice + "\n", json.dumps(json.loads(whole), indent=1).replace(
            '"result": "pass"', '"result": "fail",\n "result": "pass"')):
        assert "the key “result” stands twice" in report(text.encode(), expect=2)


def test_which_run():
    """Host, process and time; one run that is given twice is told."""
    need()
    found = of_run(4711, "pass")
    page = report(found, found, names=("a.json", "b.json"))
    assert "host here process 4711 started 2023-11-14 22:13:20 UTC" in page.text, page.text
    assert page.text.count("The same run as in a.json: it is on this page more than once") == 1, page.text[:900]
    page = report(dict(found, run=None), dict(found, run={"host": MARKUP, "pid": -1, "started_ns": "18446744073709551615"}), dict(found, run=None))
    assert "host not known process not known started not known" in page.text and "started 2554-07-21" in page.text, page.text[:3000]
    assert "more than once" not in page.text


def test_output_that_is_read():
    """No page goes into what was read, under whatever name; a page that cannot be written leaves the old one."""
    need()
    with e2e.Folder() as name:
        folder = pathlib.Path(name)
        run, link, hard, page = (folder / each for each in ("run.json", "link.html", "hard.html", "page.html"))
        whole = json.dumps(passed_run())
        run.write_text(whole)
        link.symlink_to("run.json")
        hard.hardlink_to(run)
        for output in (run, link, hard):
            done = e2e.run("report", str(run), "--output", str(output), expect=2)
            assert "is what is read" in done.err and "give another file" in done.err, done
            with open(run, "rb") as source:
                done = subprocess.run([e2e.PROGRAM, "report", "-", "--output", output], stdin=source, capture_output=True, check=False)
            assert done.returncode == 2 and b"is what is read (standard input)" in done.stderr, done
        with open(run, "ab") as out:
            done = subprocess.run([e2e.PROGRAM, "report", run], stdout=out, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2 and b"standard output is what is read" in done.stderr, done
        assert run.read_text() == whole
        page.write_text("old")
        page.chmod(0o640)
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = subprocess.run([e2e.PROGRAM, "report", run, "--output", page], preexec_fn=small, capture_output=True, check=False)
        assert done.returncode == 1 and b"page.html could not be written: File too large" in done.stderr, done
        assert page.read_text() == "old" and len(list(folder.iterdir())) == 4, list(folder.iterdir())
        e2e.run("report", str(run), "--output", str(page), expect=0)
        assert page.read_text().startswith("<!DOCTYPE") and page.stat().st_mode & 0o777 == 0o640


def test_names_on_a_terminal():
    """Control characters of a file's name reach no terminal."""
    need()
    with e2e.Folder() as folder:
        file = os.path.join(folder, "a\x1b[2J\nb")
        for expect in (1, 2):
            done = e2e.run("report", file, expect=expect)
            assert "a?[2J b" in done.err and "\x1b" not in done.err, done
            pathlib.Path(file).write_text("{")


# ---- what a stranger may put into a file ----

def everywhere(value, change):
    """The same object with each leaf changed."""
    if isinstance(value, dict):
        return {key: everywhere(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [everywhere(each, change) for each in value]
    return change(value)


def with_schema(found):
    return dict(found, schema="gdrcap.summary/1")


def test_markup():
    """In each text, in each key of the causes, in each number's place: it is text, or not known."""
    need()
    summary = copied()
    summary["lost_by"]["causes"][MARKUP] = 5
    page = report(with_schema(everywhere(summary, lambda value: MARKUP if isinstance(value, str) else value)))
    assert "<script>" not in page.html and "49" not in page.text.split("alert(1)")[1][:60]
    assert page.text.count("<script>alert(1)</script>") > 20, page.text.count("<script>")
    report(with_schema(everywhere(summary, lambda value: MARKUP)))
    hostile = json.loads(next(lines(1, copied())))
    one = with_schema(everywhere(hostile, lambda value: MARKUP if isinstance(value, str) else value))
    report((json.dumps(dict(one, result="running")) + "\n").encode() * 3, names=("<b>x&.jsonl",), arguments=("--title", MARKUP[:60]))


def test_strange_values():
    """Any type anywhere: no traceback, and what is no count is not known, never 0."""
    need()
    summary = copied()
    strange = (None, True, -1, 1.5, float("nan"), float("inf"), 10**400, 2**64, "", "12x", {}, [[]], [{}], {"a": None}, [])
    page = report(*(dict(everywhere(summary, lambda _, value=value: value), schema="gdrcap.summary/1", images=None) for value in strange))
    assert page.text.count("lost not known frames sent and never seen") == len(strange), page.text[:3000]
    for value in (None, [None, 7, "x", [], {}]):
        report(*(with_schema(dict(summary, **{key: value})) for key in list(summary)[:32]))
        report(*(with_schema(dict(summary, **{key: value})) for key in list(summary)[32:]))
    summary["frames"].update(sent="18446744073709551615", lost=0)
    page = report(summary)
    assert "sent 18,446,744,073,709,551,615 frames" in page.text and "lost 0 frames" in page.text


def test_strange_lines():
    """Counters that jump about, in lines."""
    need()
    chance = random.Random(1)
    found = []
    for line in lines(200, final=False):
        each = json.loads(line)
        for part, key in ((each, "seconds"), (each, "bytes"), (each["frames"], "received"), (each["frames"], "lost"), (each["sender"], "seconds")):
            if chance.random() < 0.3:
                part[key] = chance.choice((None, -5, 2**63, 1e300, "9" * 19, "x", 0, [], 1e-300))
        found.append(json.dumps(each).encode())
    page = report(b"\n".join(found) + b"\n")
    assert "svg" in page.tags


def test_broken_files():
    """A clear error, exit status 2, and nothing on standard output."""
    need()
    whole = json.dumps(summary_of_a_run())
    assert "no JSON" in report(b"hello", expect=2, program=True)
    for text, words in (("", "empty"), ("\n \n", "empty"), ("hello", "no JSON"), (whole[:-2], "is the file whole?"), ("7", "no JSON object"), ("[]", "no JSON object"),
                        ("{}", "no `schema`"), ("[" * 100000, "nested too deep"), ('{"a":' * 100000, "nested too deep"), ("\xff\xfe", "no UTF-8"), ('{"schema":"x/1"}', "known are"),
                        (whole.replace("summary/1", "summary/2"), "this gdrcap knows gdrcap.summary/1"),
                        (whole + "\n" + whole.replace("summary/1", "summary/9"), "gdrcap.summary/9"),
                        (whole + "\n" + '{"schema":"gdrcap.doctor/1"}', "files of their own"), ('{"schema":"gdrcap.doctor/1"}\n{}', "a file of its own"),
                        ('{"schema":' + "1" * 5000 + "}", "no JSON")):
        said = report(text.encode("latin-1"), expect=2)
        assert words in said and "0.json" in said, (words, said)
    page = report(("\n".join([whole, "{", "hello", whole]) + "\n").encode())
    assert "Left out, as they are no JSON objects: 2 lines; the first is line 2" in page.text, page.text[:600]
    report(json.dumps(summary_of_a_run(), indent=4).encode())


def test_many_of_everything():
    """Lists of any length, and texts: the page says how many more there are, and stays small."""
    need()
    summary = copied()
    for key in ("damage", "queues", "streams", "stages"):
        summary[key] = summary[key][:1] * 2000
    for key in ("errors", "messages", "ports", "cores"):
        summary[key] = ["<" * 3000] * 300
    summary["lost_by"]["causes"] = {"<%d" % i * 100: 1 for i in range(2000)}
    page = report(summary)
    assert len(page.html) < PAGE_MOST, len(page.html)
    assert "… and 1,936 more" in page.text and "(2400 characters more)" in page.text


def long_run(folder, count):
    """The page of a run of so many lines, and the KiB that it took to make it."""
    path, out = os.path.join(folder, "week.jsonl"), os.path.join(folder, "week.html")
    with open(path, "wb") as file:
        file.writelines(lines(count))
    process = subprocess.Popen([e2e.PROGRAM, "report", path, "--output", out])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0, status
    return Page(pathlib.Path(out).read_text()), usage.ru_maxrss


def test_long_run():
    """Thinned as it is read: neither page nor memory grow with the lines."""
    need()
    with e2e.Folder() as folder:
        few, few_kib = long_run(folder, 600)
        many, many_kib = long_run(folder, 10_000)
    assert "Each point stands" not in few.text
    # 600 points: 10,000 lines are 313 of 32.
    assert "10,000 lines" in many.text and "Each point stands for 32 lines" in many.text, many.text[:1500]
    assert len(many.html) < len(few.html) + 50_000 < 400_000, (len(few.html), len(many.html))
    # Kept, those lines would take 100 MB.
    assert many_kib < few_kib + 30_000, (few_kib, many_kib)
