# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap bench: what it measures here, as JSON, as a table and in files, also when it is stopped; and
gdrcap report, which shows and draws such files."""
import copy
import functools
import json
import os
import pathlib
import pty
import re
import resource
import signal
import stat
import subprocess
import time
import xml.etree.ElementTree

import e2e
import processes
import test_report

PARAMETERS = ("frame_bytes", "burst", "blocks", "queues", "pattern", "memory", "source")
FOUND = ("runs", "core_speed", "median", "least", "most", "limit", "of_limit", "mpps", "gbps",
         "seconds", "frames", "validated", "damaged", "lost", "sequence_checked", "latency", "note")
# Short runs: what is looked at is not the figures.
SHORT = ("--quick", "--gpu", "host", "--runs", "3", "--run-time", "2")


def stages():
    """Id -> group, in order, as --help has them."""
    found, group = {}, None
    for line in e2e.run("bench", "--help").out.split("Stages, in the order")[1].splitlines():
        match = re.match(r"  group (\w+)$", line)
        if match:
            group = match.group(1)
        match = re.match(r"    (\w+) ", line)
        if match:
            found[match.group(1)] = group
    return found


def few():
    """Some stages that need no GPU and are soon done, with several points in all."""
    there = stages()
    wanted = [name for name in ("rx_burst", "mempool", "ring") if name in there]
    assert wanted, "no stage of %s" % ", ".join(there)
    return ",".join(wanted)


def bench(*arguments, expect=0, **options):
    return e2e.run("bench", *arguments, expect=expect, **options)


def measure(*arguments, **options):
    return bench(*SHORT, "--stages", few(), *arguments, **options)


@functools.lru_cache(maxsize=None)
def measured():
    """A report, to be shown or changed."""
    return measure("--json", "--quiet").out


def point(result):
    return tuple(result[key] for key in ("stage",) + PARAMETERS)


def check_result(result, report):
    stage = {row["id"]: row for row in report["stages"]}[result["stage"]]
    missing = [key for key in PARAMETERS + FOUND + ("error",) if key not in result]
    assert not missing, "%s: %s" % (missing, result)
    if result["error"]:
        assert result["runs"] == result["core_speed"] == [] and result["median"] is None, result
        return
    assert len(result["runs"]) == report["parameters"]["runs"], result
    assert result["median"] in result["runs"], result
    assert len(result["core_speed"]) == (len(result["runs"]) if result["queues"] else 0), result
    # A core that others have is slow, but no core is as fast as 200 operations a nanosecond.
    assert all(0 < speed < 200 for speed in result["core_speed"]), result
    assert result["least"] == min(result["runs"]) > 0, result
    assert result["most"] == max(result["runs"]), result
    assert sorted(result["runs"])[len(result["runs"]) // 2] == result["median"], result
    assert result["seconds"] > 0 and result["damaged"] == 0, result
    assert result["validated"] + result["damaged"] <= result["frames"] or not result["validated"]
    if result["of_limit"]:
        part = result["limit"] / result["median"]
        part = part if stage["less_is_better"] else 1 / part
        assert abs(part - result["of_limit"]) < 1e-9, result


def check(report, complete=True):
    assert report["schema"] == "gdrcap.bench/1" and report["error"] is None, report
    assert report["complete"] is complete, report["complete"]
    assert report["version"].startswith("gdrcap "), report["version"]
    machine = report["machine"]
    assert machine["cpus"] == len(os.sched_getaffinity(0)), machine
    assert machine["kernel"] == os.uname().release and machine["gpu"] is None, machine
    points = [point(result) for result in report["results"]]
    assert len(set(points)) == len(points), "a point is there twice"
    for result in report["results"]:
        check_result(result, report)


def test_help():
    result = bench("--help")
    for word in ("--quick", "--stages LIST", "--runs N", "--run-time MS", "--gpu GPU",
                 "--cores LIST", "--save FILE.json", "--json", "--quiet", "Exit status", "group limit"):
        assert word in result.out, "%s: %s" % (word, result)
    assert not re.search(r" $", result.out, re.M) and max(map(len, result.out.splitlines())) < 100
    assert "bench" in e2e.run("--help").out


def test_refuses():
    """Command lines: status 2, which option, and what is allowed."""
    for arguments, words in (
            (("--quik",), "did you mean '--quick'"),
            (("extra",), "unknown argument 'extra'"),
            (("--quick=1",), "--quick takes no value"),
            (("--runs",), "--runs needs a value"),
            (("--runs", "0"), "from 1 to 51"),
            (("--runs", "52"), "from 1 to 51"),
            (("--runs", "-1"), "from 1 to 51"),
            (("--runs", "5", "--runs", "6"), "given twice"),
            (("--run-time", "1s"), "from 1 to 60000"),
            (("--run-time", "99999999999999999999"), "from 1 to 60000"),
            (("--stages", "nothing"), "neither a stage (%s" % ", ".join(list(stages())[:2])),
            (("--stages", few() + ","), "neither a stage"),
            (("--cores", "0-"), "cores"),
            (("--cores", "8191"), "CPU 8191 is not there"),
            (("--port", "ring:a"), "give both"),
            (("--rx-by", "cpu"), "give port and tx_port"),
            (("--port", "ring:a", "--tx-port", "ring:a", "--rx-by", "driver,"), "rx_by"),
            (("--port", "ring:a", "--tx-port", "ring:a", "--tx-by", "cp"), "tx_by"),
            (("--gpu", "first"), "gpu")):
        result = bench(*arguments, expect=2)
        assert words in result.err and not result.out, result
        report = json.loads(bench("--json", *arguments, expect=2).out)
        assert report["schema"] == "gdrcap.bench/1" and report["error"], report
        assert report["results"] == [] and report["complete"] is False, report


def test_json():
    result = measure("--json")
    report = result.summary
    check(report)
    assert report["parameters"] == {"quick": True, "runs": 3, "run_ms": 2, "gpu": "host",
                                    "cores": report["parameters"]["cores"],
                                    "port": None, "tx_port": None, "tx_by": None}
    assert {row["id"]: row["group"] for row in report["stages"]} == stages()
    measured = {result["stage"] for result in report["results"]}
    assert set(few().split(",")) <= measured, measured
    # What limits a stage comes with it, and before it.
    order = [row["id"] for row in report["stages"]]
    for row in report["stages"]:
        if row["limit"]:
            assert order.index(row["limit"]) < order.index(row["id"]), row
        if row["limit"] and row["id"] in measured:
            assert row["limit"] in measured, row
    # A line for each point on stderr, and none with --quiet.
    assert len(re.findall(r"^gdrcap bench: \d+/%d, \d+:\d\d min left: " % len(report["results"]),
                          result.err, re.M)) == len(report["results"]), result
    assert not measure("--json", "--quiet").err


def test_table():
    with e2e.Folder() as folder:
        file = folder + "/all.json"
        result = measure("--save", file)
        report = json.loads(pathlib.Path(file).read_text())
        check(report)
        for table, most in ((result.out, 130), (text_of(file).stdout, None)):
            for stage in few().split(","):
                assert re.search(r"^%s  \w" % stage, table, re.M), table
            # One row for each result.
            rows = re.findall(r"^  +[-\d].*\+-\d+\.\d%.*$", table, re.M)
            assert len(rows) == sum(not result["error"] for result in report["results"]), table
            assert not most or max(map(len, table.splitlines())) <= most, table
            assert "\033" not in table


def test_save():
    with e2e.Folder() as folder:
        file = pathlib.Path(folder) / "all.json"
        file.write_text("of before")
        # A file that was linked to stays one.
        link = pathlib.Path(folder) / "link.json"
        link.symlink_to("all.json")
        measure("--save", str(link))
        check(json.loads(file.read_text()))
        assert link.is_symlink() and sorted(os.listdir(folder)) == ["all.json", "link.json"]
        assert stat.S_IMODE(file.stat().st_mode) & 0o111 == 0


def test_interrupt():
    with e2e.Folder() as folder:
        file = pathlib.Path(folder) / "all.json"
        arguments = ("bench", "--quick", "--gpu", "host", "--runs", "3", "--run-time", "300",
                     "--stages", few(), "--save", str(file))
        process = e2e.start(*arguments)
        seen = []
        for line in process.stderr:
            seen.append(line)
            if "bench: 2/" in line:
                process.send_signal(signal.SIGINT)
                break
        result = e2e.finish(process, arguments)
        assert result.status == 130, result
        assert "stopped; what was measured is in " + str(file) in result.err, result
        assert "Not all points were measured" in result.out, result
        report = json.loads(file.read_text())
        check(report, complete=False)
        # The point that was begun last, when the signal came, may have been done.
        begun = [int(number) for number in re.findall(r"bench: (\d+)/\d+,", "".join(seen) + result.err)]
        assert begun == list(range(1, len(begun) + 1)) and len(report["results"]) in (len(begun) - 1, len(begun)), result
        assert ", not complete" in text_of(file).stdout


def test_stopped_at_once():
    """A second Ctrl-C does not wait for the run; what was saved is whole."""
    with e2e.Folder() as folder:
        file = pathlib.Path(folder) / "all.json"
        process = e2e.start("bench", "--gpu", "host", "--run-time", "20000", "--stages", few(),
                            "--save", str(file))
        e2e.interrupt_when_running(process, "bench: 1/")
        # Two that come together are one.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        result = e2e.finish(process)
        assert result.status == 130 and "stopped at once" in result.err, result
        check(json.loads(file.read_text()), complete=False)


def test_cannot_be_saved():
    with e2e.Folder() as folder:
        os.mkfifo(folder + "/fifo")
        for name in ("", "/none/x", "/fifo"):
            # Seen before much is measured.
            result = bench("--gpu", "host", "--run-time", "100", "--stages", few(), "--save",
                           folder + name, expect=1)
            assert folder + name in result.err and "may be written" in result.err, result
        assert os.listdir(folder) == ["fifo"] and stat.S_ISFIFO(os.stat(folder + "/fifo").st_mode)


def saved_with(results):
    """Bytes of a file with half a result more than so many; figures are of some other length each time."""
    text = measured()
    all_of_it = json.loads(text)
    each = len(json.dumps(all_of_it["results"])) // len(all_of_it["results"])
    return len(text) - each * (len(all_of_it["results"]) - results) + each // 2


def test_disk_full():
    """No half of a file, and nothing lost of the one that was there."""
    with e2e.Folder() as folder:
        file = pathlib.Path(folder) / "all.json"
        most = saved_with(3)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        result = bench(*SHORT, "--stages", few(), "--save", str(file), expect=1, preexec_fn=limit)
        assert "File too large" in result.err and "may be written" in result.err, result
        report = json.loads(file.read_text())
        check(report, complete=False)
        there = len(report["results"])
        # No other point was begun, and what was saved before is whole.
        assert 1 <= there <= 6 and "bench: %d/" % (there + 1) in result.err, (there, result)
        assert "bench: %d/" % (there + 2) not in result.err, (there, result)
        assert file.stat().st_size <= most and os.listdir(folder) == ["all.json"]


def test_progress_on_a_terminal():
    master, slave = pty.openpty()
    process = e2e.start("bench", *SHORT, "--stages", few(), stderr=slave)
    os.close(slave)
    seen = processes.read_terminal(master)
    assert e2e.finish(process).status == 0
    assert b"\n" not in seen and b"min left" in seen, seen
    assert seen.endswith(b"\r\033[K"), seen[-80:]


# ---- the picture ----

def made_up(report):
    """The same with a path and a consumer of all frame sizes."""
    report = copy.deepcopy(report)
    row = report["stages"][0]
    report["stages"] = [dict(row, id=group, group=group, unit="Mpps", limit=None)
                        for group in ("path", "consumer")]
    like = report["results"][0]
    report["results"] = []
    for stage, mpps in (("path", 40.0), ("consumer", 900.0)):
        for size in (64, 128, 256, 512, 1024, 1500, 9000):
            mpps = min(mpps, 250e3 / size)
            report["results"].append(dict(
                like, stage=stage, frame_bytes=size, burst=256, blocks=None, queues=1,
                pattern="prbs31", memory="device", source="ring", error=None, runs=[mpps] * 3,
                median=mpps, least=mpps, most=mpps, mpps=mpps, gbps=mpps * size * 8e-3))
    return report


def report_of(*arguments):
    return subprocess.run([e2e.PROGRAM, "report", *arguments], text=True, capture_output=True, check=False)


def text_of(file):
    """Its tables. No library is needed for them."""
    return report_of("--text", str(file))


def draw(folder, *reports):
    """The script's end, and its picture."""
    files = []
    for i, report in enumerate(reports):
        files.append(os.path.join(folder, "%u.json" % i))
        pathlib.Path(files[-1]).write_text(json.dumps(report))
    picture = pathlib.Path(folder) / "drawn.svg"
    test_report.need()
    return picture, report_of("--plot", picture, *files)


def test_strangers_file():
    """An error that says which file, and no traceback, no escape on the terminal."""
    report = json.loads(measured())
    whole = json.dumps(report)
    with e2e.Folder() as folder:
        file = pathlib.Path(folder) / "x.json"
        for text in e2e.some(("", whole[:-2], "[]", "7", "{}", "[" * 100000, json.dumps(dict(report, machine=None)),
                              json.dumps(dict(report, schema="x")), json.dumps(dict(report, stages=[7])),
                              json.dumps(dict(report, results=[{"stage": "ring"}]))), 1, 5, 6, 9):
            file.write_text(text)
            done = text_of(file)
            assert done.returncode == 2 and not done.stdout, (text, done)
            assert file.name in done.stderr and "Traceback" not in done.stderr, (text, done)
        report["machine"]["cpu"] = "\033[2J"
        file.write_text(json.dumps(report))
        assert "?[2J" in text_of(file).stdout


def test_plot():
    report = made_up(json.loads(measured()))
    # Texts of a stranger's file are texts.
    report["machine"]["cpu"] = report["machine"]["gpu"] = "$x_{1}$ `touch x` <b>"
    with e2e.Folder() as folder:
        picture, done = draw(folder, report)
        assert done.returncode == 0 and not done.stderr, done
        tree = xml.etree.ElementTree.parse(picture)
        assert tree.getroot().tag.endswith("}svg"), tree.getroot().tag
        texts = ["".join(node.itertext()).strip() for node in tree.iter()
                 if node.tag.endswith("}text")]
        for text in ("100 GbE", "200 GbE", "400 GbE"):
            assert texts.count(text) == 2, (text, texts)
        for text in ("Mpps", "64", "1500", "9000", "path, burst 256, 1 queue, prbs31, device, ring",
                     "consumer, burst 256, 1 queue, prbs31, device, ring"):
            assert text in texts, (text, texts)
        assert any("$x_{1}$ `touch x` <b>" in text for text in texts), texts
        # Two machines beside each other.
        other = copy.deepcopy(report)
        other["machine"].update(cpu="B", gpu=None)
        picture, done = draw(folder, report, other)
        assert done.returncode == 0 and "B: path, burst 256" in picture.read_text(), done
        # Nothing to draw, and what is none of ours.
        report["results"] = report["results"][:1]
        for what, words in e2e.some(
                ((report, "nothing to draw"), (dict(report, stages=[7]), "no result of gdrcap bench"), ([], "no JSON object"),
                 (dict(report, schema="x"), "schema"), ({}, "no `schema`"), ({"schema": "gdrcap.summary/1"}, "something else")), 0, 1):
            picture.unlink(missing_ok=True)
            _, done = draw(folder, what)
            assert done.returncode == (1 if what is report else 2) and words in done.stderr, done
            assert "Traceback" not in done.stderr and not picture.exists(), done


def strange(report, key, value, *arguments):
    """With this in each result: shown, or refused by name."""
    changed = copy.deepcopy(report)
    for result in changed["results"]:
        result[key] = value
    with e2e.Folder() as folder:
        file = pathlib.Path(folder, "a.json")
        file.write_text(json.dumps(changed))
        done = report_of(*arguments, file)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr, (key, value, done.stderr)
    assert done.returncode == 0 or "a.json: no result of gdrcap bench" in done.stderr, done
    if done.returncode == 0 and not arguments:
        test_report.Page(done.stdout).check()


def test_page():
    """Tables and drawing on a page, whatever stands in the file."""
    report = made_up(json.loads(measured()))
    test_report.need()
    report["machine"]["cpu"] = test_report.MARKUP
    report["results"][0]["note"] = test_report.MARKUP
    page = test_report.report(report)
    assert "Stage path" in page.text and "400 GbE" in page.text and "[1] <script>alert(1)" in page.text, page.text[:2000]
    assert re.search("64 256 1 prbs31 device ring 40", page.text), page.text[-3000:]
    for key, value in e2e.some((("mpps", 1e308), ("frame_bytes", 0), ("mpps", -1), ("gbps", 10**400), ("frame_bytes", 10**300),
                                ("pattern", "$x_$<b>" * 900)), 0, 5):
        strange(report, key, value)
    for key, value in e2e.some((("gbps", float("nan")), ("frame_bytes", "64"), ("frame_bytes", [1]), ("median", 10**400), ("runs", None),
                                ("latency", 7)), 0, 3):
        strange(report, key, value, "--text")
    many = dict(report, results=report["results"] * 500)
    assert len(test_report.report(many).html) < test_report.PAGE_MOST


def test_no_reader():
    """Standard output that nobody reads any more is no success."""
    process = subprocess.Popen([e2e.PROGRAM, "bench", *SHORT, "--stages", few(), "--json",
                                "--quiet"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    error = process.stderr.read()
    assert process.wait(e2e.TIMEOUT) == 1 and error, error
