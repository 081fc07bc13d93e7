# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap merge: real summaries of senders and receivers, loss that was planted, and hostile files.

A sender writes a file, from which frames are taken or copied; receivers read what is left of it."""
import json
import os
import pty
import random
import shutil
import signal
import subprocess

import pytest

import e2e
import pcapfile
import processes
import test_images as images

pytestmark = pytest.mark.sanitized

END = 0xFF  # in place of the pattern's number: an end-of-stream frame
RUNNING = '{"schema":"gdrcap.summary/1","command":"capture","result":"running","errors":[]}\n'


def stream_of(data):
    return int.from_bytes(data[18:20], "big")


def is_end(data):
    return data[17] == END


def send(folder, name, *arguments):
    """(the summary's file, the frames with those that say the ends)."""
    path = os.path.join(folder, name + ".pcap")
    summary = processes.run_json("replay", "--quiet", "--gpu", "host", "--tx-port",
                                 "net_pcap0,tx_pcap=" + path, *arguments)
    return keep(folder, name, summary), [frame.data for frame in pcapfile.read(path)]


def receive(folder, name, frames, *until):
    """The summary's file."""
    path = pcapfile.write_pcap(os.path.join(folder, name + ".pcap"), frames)
    return keep(folder, name, processes.run_json(
        "capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" + path,
        *(until or ("--frames", str(len(frames)))), expect=None))


def keep(folder, name, summary):
    """With one start time for all: on a loaded machine these runs begin minutes apart, and merge refuses such files."""
    summary["run"]["started_ns"] = 1700000000 * 10**9
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="ascii") as file:
        json.dump(summary, file)
    return path


def load(path):
    with open(path, encoding="ascii") as file:
        return json.load(file)


def merge(*files, expect):
    result = e2e.run("merge", "--json", *files, expect=expect)
    merged = result.summary
    assert merged["schema"] == "gdrcap.merge/1" and len(merged["files"]) == len(files), result
    assert (merged["result"] == "pass") == (expect == 0) == (not merged["errors"]), result
    counts = {**merged["frames"], "filtered": merged["filtered"]}
    if None not in counts.values():
        counts = {key: int(count) for key, count in counts.items()}
        assert counts["sent"] == counts["valid"] + counts["damaged"] + counts["lost"], counts
        assert counts["received"] == (counts["valid"] + counts["damaged"] + counts["duplicate"] +
                                      counts["filtered"]), counts
    return merged


def said(merged, part):
    assert any(part in line for line in merged["errors"]), (part, merged["errors"])


def check(merged, **expected):
    for key, count in expected.items():
        assert merged["frames"][key] == count, (key, merged["frames"], merged["errors"])


def streams_of(merged):
    return {row["stream"]: row["frames"] for row in merged["streams"]}


def by_streams(frames, *streams):
    return [data for data in frames if stream_of(data) in streams]


def test_senders_and_receivers():
    """Two senders, two receivers that have streams of both: nothing is lost, then exactly what was
    planted, the last frames of a stream and a whole one too."""
    with processes.folder() as folder:
        one, first = send(folder, "one", "--frames", "600", "--streams", "3")
        two, second = send(folder, "two", "--frames", "500", "--streams", "2", "--first-stream", "9",
                           "--src-mac", "02:00:00:00:00:09")
        left = by_streams(first, 0, 1) + by_streams(second, 9)
        right = by_streams(first, 2) + by_streams(second, 10)
        # Ends of streams that come to the other receiver: it alone cannot know of them.
        a, b = receive(folder, "a", left), receive(folder, "b", right)
        assert load(a)["result"] == load(b)["result"] == "fail", load(a)["errors"]
        merged = merge(one, two, a, b, expect=0)
        check(merged, sent=1100, valid=1100, damaged=0, lost=0, duplicate=0, reordered=0)
        text = e2e.run("merge", one, two, a, b).out
        assert "PASS: each of 1,100 frames of 5 streams" in text, text
        assert sorted(streams_of(merged)) == [0, 1, 2, 9, 10], merged["streams"]

        # Of stream 0: 4 inside, and its end with the last 3; stream 10 does not come at all.
        zero = [data for data in by_streams(left, 0) if not is_end(data)]
        gone = set(zero[5:9] + zero[-3:])
        less = [data for data in left if data not in gone and not (is_end(data) and
                                                                   stream_of(data) == 0)]
        damaged = bytearray(less[50])
        damaged[60] ^= 1
        less[50:51] = [bytes(damaged)]
        a = receive(folder, "a", less + [less[0]])
        b = receive(folder, "b", by_streams(right, 2))
        merged = merge(a, one, b, two, expect=3)
        tenth = load(two)["streams"][1]["frames"]["sent"]
        check(merged, sent=1100, lost=7 + tenth, damaged=1, duplicate=1)
        assert streams_of(merged)[0]["lost"] == 7 and streams_of(merged)[10]["lost"] == tenth, merged
        assert "FAIL: " in e2e.run("merge", a, one, b, two, expect=3).out
        said(merged, "1 frame damaged")
        said(merged, "%d frames lost" % (7 + tenth))


def test_images():
    """Frames of images have no sequence numbers, so each run's own verdict counts."""
    sender = images.Sender(range(4))
    with processes.folder() as folder:
        files = []
        for name, frames, expect in (("a", sender.frames(), 0), ("b", sender.frames(), 0),
                                     ("c", sender.frames()[:-20] + sender.frames()[-18:], 3)):
            path = pcapfile.write_pcap(os.path.join(folder, name + ".pcap"), frames)
            files.append(keep(folder, name, processes.run_json(
                "capture", "--quiet", "--gpu", "host", "--port", "net_pcap0,rx_pcap=" + path, "--image", images.layout(folder),
                expect=expect)))
        check(merge(*files[:2], expect=0), received=2 * len(sender.frames()), lost=None)
        assert "PASS: 2 runs of images" in e2e.run("merge", *files[:2]).out
        said(merge(*files, expect=3), "c.json failed: 1 image incomplete")
        said(merge(*files[:2], os.path.join(folder, "none"), expect=3), "its machine gave nothing")
        for change in ({"complete": 0}, {"incomplete": 1}):
            forged = load(files[0])
            forged["images"][0].update(change)
            said(merge(keep(folder, "forged", forged), expect=2), 'its "images" say that the run failed')
        numbered, _ = send(folder, "numbered", "--frames", "10")
        said(merge(*files[:2], numbered, expect=3), "unknown")


def test_spread():
    """One stream frame by frame over two receivers: each lacks half. What is lost is unknown, never a
    number, also where all is there: counts do not say so."""
    with processes.folder() as folder:
        sent, frames = send(folder, "sent", "--frames", "400")
        data = [frame for frame in frames if not is_end(frame)]
        ends = [frame for frame in frames if is_end(frame)]
        a, b = receive(folder, "a", data[::2] + ends), receive(folder, "b", data[1::2] + ends)
        assert load(a)["frames"]["lost"] == load(b)["frames"]["lost"] == 200, load(a)["frames"]
        merged = merge(sent, a, b, expect=3)
        check(merged, sent=400, valid=None, duplicate=None, lost=None)
        assert merged["at_least"]["lost"] == 0, merged
        b = receive(folder, "b", data[1:-10:2] + ends)
        merged = merge(sent, a, b, expect=3)
        check(merged, sent=400, valid=None, duplicate=None, lost=None)
        assert merged["at_least"]["lost"] == 5 and merged["unsettled_streams"] == 1, merged
        said(merged, "stream 0: what is lost is unknown")
        b = receive(folder, "b", data[1::2] + data[:1] + ends)
        merged = merge(sent, a, b, expect=3)
        check(merged, lost=None)
        said(merged, "1 or more came twice")


def receive_spread(folder, name, frames, *more):
    return receive(folder, name, frames, "--ranges", "--frames", str(len(frames)), *more)


def test_spread_with_ranges():
    """The same, where each has which frames came: what is lost and what came twice is exact, to the frame."""
    with processes.folder() as folder:
        sent, frames = send(folder, "sent", "--frames", "4000", "--streams", "2")
        data = [frame for frame in frames if not is_end(frame)]
        ends = [frame for frame in frames if is_end(frame)]
        # Two each in turn: a row or two, however many frames.
        left = [frame for i, frame in enumerate(data) if i % 4 < 2]
        right = [frame for i, frame in enumerate(data) if i % 4 >= 2]
        a, b = receive_spread(folder, "a", left + ends), receive_spread(folder, "b", right)
        assert load(a)["streams"][0]["frames"]["lost"] > 0, load(a)["streams"]
        assert all(len(row["ranges"]) <= 2 for row in load(b)["streams"]), load(b)["streams"]
        merged = merge(sent, a, b, expect=0)
        check(merged, sent=4000, valid=4000, lost=0, duplicate=0)
        assert merged["unsettled_streams"] == 0, merged
        # Without the sender's word: one has heard the ends.
        check(merge(a, b, expect=0), sent=4000, valid=4000, lost=0)
        # One of them alone has no ranges: unknown, as ever.
        plain = receive(folder, "plain", right)
        assert "ranges" not in load(plain)["streams"][0], load(plain)["streams"]
        said(merge(sent, a, plain, expect=3), "plain.json has no ranges of it")

        # At random, with planted loss and copies, to one and to both; the last frames too.
        dice = random.Random(21)
        parts = [[], [], []]
        lost, twice = {0: 0, 1: 0}, 0
        for frame in data:
            fate = dice.random()
            if fate < 0.02 or frame in data[-5:]:
                lost[stream_of(frame)] += 1
                continue
            first = dice.randrange(3)
            parts[first].append(frame)
            if fate < 0.05:
                parts[dice.randrange(3)].append(frame)
                twice += 1
        files = [receive_spread(folder, "part%d" % i, part + ends) for i, part in enumerate(parts)]
        merged = merge(sent, *files, expect=3)
        total = sum(lost.values())
        check(merged, sent=4000, lost=total, valid=4000 - total, damaged=0, duplicate=twice)
        assert {key: row["lost"] for key, row in streams_of(merged).items()} == lost, merged
        said(merged, "%d frames lost" % total)
        assert any("came to more than one receiver" in line for line in merged["messages"]), merged
        # A damaged frame is there too; where it came to two, nobody knows which one is the copy.
        wrong = bytearray(parts[0][10])
        wrong[60] ^= 1
        files[0] = receive_spread(folder, "wrong", parts[0][:10] + [bytes(wrong)] + parts[0][11:] + ends)
        check(merge(sent, *files, expect=3), lost=total, duplicate=twice, damaged=None, valid=None)
        single = {frame: 0 for frame in data}
        for frame in parts[0] + parts[1] + parts[2]:
            single[frame] += 1
        once = [[frame for frame in part if single[frame] == 1] for part in parts]
        wrong = bytearray(once[0][10])
        wrong[60] ^= 1
        once[0][10] = bytes(wrong)
        files = [receive_spread(folder, "once%d" % i, part) for i, part in enumerate(once)]
        there = sum(map(len, once))
        check(merge(sent, *files, expect=3), lost=4000 - there, duplicate=0, damaged=1, valid=there - 1)


def all_came(path, streams):
    """Whether the last whole line has frames of so many streams."""
    with open(path, encoding="ascii") as file:
        lines = [json.loads(line) for line in file if line.endswith("\n")]
    return lines and sum(row["frames"]["valid"] > 0 for row in lines[-1]["streams"]) == streams


def test_ranges_of_an_interrupted_run():
    """After Ctrl-C and SIGTERM too; lines before the last have none, nor has a run that was not asked."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with processes.folder() as folder:
            with open(os.path.join(folder, "log"), "wb") as log:
                process = e2e.start("loopback", "--quiet", "--ranges", "--json-lines", "0.1", "--seconds", "600",
                                    "--rate", "1kpps", "--streams", "2", stdout=log)
                # Frames of both streams, by a whole line.
                assert processes.wait_until(lambda: all_came(log.name, 2), e2e.TIMEOUT)
                process.send_signal(number)
                process.communicate(timeout=e2e.TIMEOUT)
            lines = [json.loads(line) for line in open(log.name, encoding="ascii")]
            for line in lines[:-1]:
                assert line["result"] == "running" and "ranges" not in str(line["streams"]), line
            for row in lines[-1]["streams"]:
                assert row["ranges"] == [[0, row["frames"]["valid"]]], lines[-1]
            check(merge(log.name, expect=0), lost=0, valid=lines[-1]["frames"]["valid"])


def test_hostile_ranges():
    """Ranges of another run, or that are not what the counts beside them say."""
    with processes.folder() as folder:
        sent, frames = send(folder, "sent", "--frames", "400")
        data = [frame for frame in frames if not is_end(frame)]
        a, b = receive_spread(folder, "a", data[::2]), receive_spread(folder, "b", data[1::2])
        check(merge(sent, a, b, expect=0), valid=400)
        good = load(b)
        for ranges, reason in (([[0, 1, 2, 199]], "not as many frames"), ([[5, 10], [0, 190]], "run backwards"),
                               ([[0, 150], [100, 50]], "overlap"), ([[1000, 200]], "beyond those that were sent"),
                               ([[0, 1, 0, 200]], "one that is not"), ("x", "no list"),
                               ([[1, 1, 2, str(10**30)]], "one that is not"), ([[0, 1]] * 40000, "more than a run has")):
            good["streams"][0]["ranges"] = ranges
            with open(b, "w", encoding="ascii") as file:
                json.dump(good, file)
            said(merge(sent, a, b, expect=2), reason)


def test_machine_gave_nothing():
    """Not there, empty, cut off, not ended: unknown by name, never 0, and the others are merged."""
    with processes.folder() as folder:
        sent, frames = send(folder, "sent", "--frames", "300", "--streams", "2")
        a = receive(folder, "a", by_streams(frames, 0))
        b = receive(folder, "b", by_streams(frames, 1))
        check(merge(sent, a, b, expect=0), valid=300)
        whole = open(b, "rb").read()
        for content in (None, b"", b"\n\n", whole[:1], whole[:1000], whole[:-1],
                        whole + b"\n" + whole[:100], RUNNING.encode(),
                        RUNNING.encode() + whole[:50]):
            if content is None:
                os.unlink(b)
            else:
                with open(b, "wb") as file:
                    file.write(content)
            several = content is not None and content.startswith(whole)
            merged = merge(sent, a, b, expect=2 if several else 3)
            assert set(merged["frames"].values()) == {None}, (content, merged["frames"])
            assert merged["files"][2]["frames"] is None, merged["files"]
            assert merged["files"][2]["state"] == ("refused" if several else "unknown"), merged
            said(merged, b + ":" if several else b + ": unknown: ")
            zero, one = streams_of(merged)[0], streams_of(merged)[1]
            assert zero["lost"] == 0 and zero["valid"] == zero["sent"], (content, zero)
            assert one["lost"] is None and merged["at_least"]["lost"] == 0, (content, one)
            assert merged["at_least"]["valid"] == zero["valid"], merged["at_least"]
        said(merge(sent, a, folder, expect=3), folder + ": unknown: could not be read")


def test_lines():
    """--json-lines: the last line counts, of a log of any length; of a killed run it is unknown."""
    with processes.folder() as folder:
        sent, frames = send(folder, "sent", "--frames", "100")
        a = receive(folder, "a", frames)
        last = open(a, "rb").read()
        for lines in (3, 17 * 1024 * 1024 // len(RUNNING)):
            with open(a, "wb") as file:
                file.write(RUNNING.encode() * lines + last + b"\n")
            check(merge(sent, a, expect=0), valid=100, lost=0)
            killed = {**json.loads(RUNNING), "run": {**json.loads(last)["run"], "pid": 1}}
            with open(a, "wb") as file:
                file.write(json.dumps(killed).encode() + b"\n" + RUNNING.encode() * lines + last)
            said(merge(sent, a, expect=2), "more than one run: line ")
        with open(os.path.join(folder, "log"), "wb") as log:
            process = e2e.start("loopback", "--quiet", "--json-lines", "0.1", "--seconds", "600",
                                "--rate", "1kpps", stdout=log)
            assert processes.wait_until(lambda: os.path.getsize(log.name) > 0, e2e.TIMEOUT)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        merged = merge(sent, log.name, expect=3)
        said(merged, "log: unknown: ")


def test_loopback_alone():
    """One file's own numbers."""
    with processes.folder() as folder:
        summary = processes.run_json("loopback", "--quiet", "--frames", "2000", "--streams", "4")
        merged = merge(keep(folder, "a", summary), expect=0)
        check(merged, **summary["frames"])
        assert merged["files"][0]["run"] == summary["run"], merged["files"]


def test_what_does_not_belong_together():
    with processes.folder() as folder:
        sent, frames = send(folder, "sent", "--frames", "100")
        a = receive(folder, "a", frames)
        copy = shutil.copy(a, os.path.join(folder, "copy.json"))
        merged = merge(sent, a, copy, expect=2)
        said(merged, "copy.json: is the run of %s once more" % a)
        # Another pattern; and a sender of other runs, who sent less than came.
        other, _ = send(folder, "other", "--frames", "100", "--pattern", "prbs15")
        said(merge(other, a, expect=2), "sent the pattern prbs15")
        fewer, _ = send(folder, "fewer", "--frames", "60")
        merged = merge(fewer, a, expect=3)
        check(merged, lost=None)
        said(merged, "receivers saw numbers of 100 frames, and 60 were sent")
        said(merge(sent, fewer, a, expect=3), "stream 0 is of 2 senders")
        # A receiver's size only says how long a frame may be.
        small, frames = send(folder, "small", "--frames", "100", "--frame-size", "64-200")
        assert merge(small, receive(folder, "b", frames), expect=0)["messages"]


def test_hostile():
    """A clear reason for each, in time; no terminal is told anything by a file."""
    with processes.folder() as folder:
        sent, frames = send(folder, "sent", "--frames", "100")
        a = receive(folder, "a", frames)
        good = load(a)
        path = os.path.join(folder, "bad\x1b[31m\n.json")

        def refused(text, reason):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            said(merge(sent, a, path, expect=2), reason)
            result = e2e.run("merge", sent, path, expect=2)
            assert "\x1b" not in result.out and "bad?[31m?.json" in result.out, result
            told = e2e.run("merge", "--json", sent, path, expect=2).err
            assert "\x1b" not in told and "bad?[31m?.json" in told, told

        def changed(reason, **values):
            refused(json.dumps({**good, **values}), reason)

        refused("no JSON at all", "is no JSON")
        refused("[" * 100000, "is no JSON")
        refused('{"a":' * 100000, "is no JSON")
        refused("7", "is no JSON")
        refused("{}", 'no "schema"')
        changed("gdrcap.summary/2", schema="gdrcap.summary/2")
        changed("gdrcap.bench/1", schema="gdrcap.bench/1")
        changed('"command"', command="reboot")
        changed('"result"', result=None)
        changed('"streams"', streams=good["streams"] * 1025)
        changed("does not add up", filtered=good["filtered"] + 1)
        for wrong in (-1, 1.5, "-1", "0x7", "18446744073709551616", [], True):
            changed('"sent" is not a count', frames={**good["frames"], "sent": wrong})
        # As text, beyond 63 bits: right, and then too many for a sum in 64 bits.
        many = str(2**64 - 1)
        frames = {**good["frames"], "sent": many, "received": many, "valid": many}
        row = {**good["streams"][0], "stream": 3, "frames": frames}
        with open(path, "w", encoding="ascii") as file:
            json.dump({**good, "run": {**good["run"], "pid": 1}, "frames": frames, "filtered": 0,
                       "streams": [row]}, file)
        merged = merge(path, expect=0)
        check(merged, valid=many, sent=many)
        check(merge(a, path, expect=3), valid=None, sent=None, damaged=0)
        # 17 MiB on one line, and sparse zeros.
        refused('{"a":"' + "x" * (17 << 20), "larger than any summary")
        os.truncate(path, 1 << 40)
        said(merge(sent, path, expect=2), "larger than any summary")


def test_command_line():
    assert "gdrcap merge [OPTION]... FILE..." in e2e.run("merge", "--help").out
    assert "no file was given" in e2e.run("merge", expect=2).err
    for arguments in (("--json",), ("--json", "--jsn", "x")):
        result = e2e.run("merge", *arguments, expect=2)
        assert result.summary["result"] == "fail" and result.summary["errors"], result
    # A pipe; and a name that begins with a dash.
    with processes.folder() as folder:
        _, frames = send(folder, "sent", "--frames", "100")
        summary = open(receive(folder, "-a", frames), "rb").read()
        for name in ("/dev/stdin", "-"):
            done = subprocess.run([e2e.PROGRAM, "merge", name], input=summary, cwd=folder,
                                  stdout=subprocess.PIPE, timeout=e2e.TIMEOUT)
            assert done.returncode == 0 and b"PASS" in done.stdout, done
        assert "PASS" in e2e.run("merge", "--", "-a.json", cwd=folder).out
    with open("/dev/full", "w", encoding="ascii") as full:
        assert "could not be written" in e2e.run("merge", "--json", "/nonexistent", stdout=full,
                                                 expect=1).err


def test_terminal():
    """Who looks on sees what takes its time, and nothing of it stays; a file gets none of it."""
    with processes.folder() as folder:
        with open(os.path.join(folder, "a.json"), "w", encoding="ascii") as file:
            file.write(RUNNING)
        reader, writer = pty.openpty()
        done = subprocess.run([e2e.PROGRAM, "merge", "a.json", "b.json"], cwd=folder, stdout=subprocess.PIPE, stderr=writer,
                              timeout=e2e.TIMEOUT, check=False)
        os.close(writer)
        shown = processes.read_terminal(reader).decode()
        assert done.returncode == 3, done
        assert shown.split("\r\x1b[K") == ["", "reading file 1 of 2 ...", "reading file 2 of 2 ...", "joining streams ...", ""], shown
        assert e2e.run("merge", "a.json", "b.json", cwd=folder, expect=3).err == ""
