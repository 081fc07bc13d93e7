# SPDX-License-Identifier: BSD-3-Clause
"""--start-at: the first frame is sent at a time of the wall clock, and the summary says how late it was."""
import datetime
import json
import signal
import time

import e2e
import processes

NULL = ("--tx-port", "net_null0", "--frames", "1000")


def rfc3339(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat().replace(
        "+00:00", "Z")


def asked_of(summary):
    """Seconds since 1970, to the microsecond."""
    text = summary["sender"]["start"]["asked"]
    assert len(text) == 30 and text.endswith("Z"), text
    return datetime.datetime.fromisoformat(text[:26] + "+00:00").timestamp()


def run_at(form, *options):
    """A machine that others keep busy may not be there in time, and says so."""
    for ahead in (2, 8, 32):
        asked = round(time.time() + ahead, 6)
        result = e2e.run("replay", "--quiet", *NULL, *options, "--start-at", form(asked), "--json",
                         expect=None)
        if result.status != 2:
            break
        assert "has passed" in result.err, result
    assert result.status == 0, result
    return result.summary, asked


def check_start(summary, asked, ended):
    """Not before, and its own words agree with a clock that is not its own."""
    start = summary["sender"]["start"]
    assert abs(asked_of(summary) - asked) < 2e-6, (start, asked)
    assert isinstance(start["late_ns"], int) and start["late_ns"] >= 0, start
    assert ended > asked + start["late_ns"] / 1e9, (start, asked, ended)


def test_at_a_time():
    """In each form, as fast as can be, at a rate, and of several streams."""
    for form, options in ((rfc3339, ()), (lambda seconds: "%.6f" % seconds, ("--rate", "100kpps")),
                          (lambda seconds: rfc3339(seconds + 5400).replace("Z", "+01:30"),
                           ("--streams", "3"))):
        summary, asked = run_at(form, *options)
        check_start(summary, asked, time.time())
        assert summary["sender"]["frames"] == 1000, summary["sender"]


def test_after_the_start():
    """Frames of a loopback, each of which is there; they count from then on, as the seconds do."""
    before = time.time()
    summary = processes.run_json("loopback", "--quiet", "--frames", "20000", "--queues", "2",
                                 "--start-at", "+0.4")
    e2e.check_perfect(summary, 20000)
    assert asked_of(summary) > before + 0.4, summary["sender"]
    check_start(summary, asked_of(summary), time.time())
    # The run's time begins with its first frame: the time before is none of it.
    summary = processes.run_json("replay", "--quiet", "--tx-port", "net_null0", "--rate", "10kpps",
                                 "--seconds", "1.5", "--start-at", "+1.7")
    check_start(summary, asked_of(summary), time.time())
    assert summary["sender"]["frames"] > 100, summary["sender"]
    # Who does not ask is told nothing.
    assert processes.run_json("replay", "--quiet", *NULL)["sender"]["start"] is None
    assert "s after the time of --start-at" in e2e.run("replay", *NULL, "--start-at", "+0.01").out


def test_one_that_has_passed():
    for text, why in ((rfc3339(time.time() - 5), "has passed"), ("1", "has passed"),
                      (rfc3339(time.time() + 86400 * 367), "days ahead"), ("now", "is no time"), ("", "is empty"),
                      ("2026-02-30T00:00:00Z", "out of range"), ("+31622401", "out of range")):
        result = e2e.run("replay", *NULL, "--start-at", text, expect=2)
        assert why in result.err and "start" in result.err, result
    assert "--start-at" in e2e.run("capture", "--port", "net_null0", "--start-at", "+1",
                                   expect=2).err


def test_one_that_passes_meanwhile():
    """Receivers took so long that it is over: nothing is sent, and that is no run."""
    with processes.folder() as directory:
        path = directory + "/rx.json"
        asked = time.time() + 2
        process = e2e.start("replay", *NULL, "--json", "--start-at", "%.3f" % asked, "--wait-ready",
                            path)
        while time.time() <= asked:
            time.sleep(0.05)
        e2e.run("loopback", "--quiet", "--frames", "10", "--ready", path)
        out, err = process.communicate(timeout=e2e.TIMEOUT)
    assert process.returncode == 2 and "has passed" in err, (process.returncode, err)
    assert json.loads(out)["frames"] is None, out


def test_interrupted():
    """Ctrl-C while it waits ends in order: nothing was sent, which is no pass."""
    for options in (("--frames", "1000"), ()):
        process = e2e.start("replay", "--tx-port", "net_null0", "--json", *options, "--start-at",
                            "+600")
        e2e.interrupt_when_running(process, r"the first frame is sent in \d", signal.SIGINT)
        out, err = process.communicate(timeout=e2e.TIMEOUT)
        summary = json.loads(out)
        assert process.returncode == 3, (process.returncode, err)
        assert summary["sender"]["frames"] == 0, summary["sender"]
        assert summary["sender"]["start"]["late_ns"] is None, summary["sender"]
