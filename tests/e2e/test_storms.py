# SPDX-License-Identifier: BSD-3-Clause
"""What once destroyed a file, hung or ended the program, a thousand times each with other numbers. (Of peers that only connect
test_memif_peer.py has ten thousand, of half-open connections test_live.py.)"""
import concurrent.futures
import os
import random
import signal

import pytest

import e2e
import pcapfile
import processes
import test_failures
import test_file_ports
import test_save

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

LOOPS = 1000
FRAMES = test_save.own_frames(12)
SECOND = 10**9


def outputs_onto_inputs(dice, folder):
    """No output is written over what the run reads, however either is spelled."""
    names = {key: os.path.join(folder, key) for key in ("a.pcap", "b.pcap", "pattern", "layout.yaml", "run.yaml")}
    contents = {"a.pcap": pcapfile.pcap_bytes(FRAMES), "b.pcap": pcapfile.pcapng_bytes(FRAMES), "pattern": bytes(4096),
                "layout.yaml": b"image:\n  preset: gvsp\n  bytes: 8000\n  piece: 1000\n", "run.yaml": b"seconds: 1\n"}
    for key, path in names.items():
        pcapfile.write(path, contents[key])
    port = ("--port", "net_pcap0,rx_pcap=%s" % names["b.pcap"])
    images = ("capture", *port, "--gpu", "host", "--image", names["layout.yaml"])
    arguments, inputs = dice.choice((
        (("replay", "--tx-port", "net_null0", "--pcap", names["a.pcap"], "--config", names["run.yaml"]), ("a.pcap", "run.yaml")),
        (("capture", *port, "--expect", names["a.pcap"]), ("a.pcap", "b.pcap")),
        (("capture", *port, "--pattern", "file", "--pattern-file", names["pattern"]), ("pattern", "b.pcap")),
        (("capture", *port, "--config", names["run.yaml"]), ("run.yaml", "b.pcap")),
        (images, ("layout.yaml", "b.pcap"))))
    outputs = ["--json-file", "--ready", "--metrics-textfile"]
    outputs += ["--save-images"] if arguments is images else ["--save", "--save-damaged"] if arguments[0] == "capture" else []
    target = names[dice.choice(inputs)]
    how = dice.randrange(4)
    if how == 1:
        target = os.path.join(folder, ".", "..", os.path.basename(folder), os.path.basename(target))
    elif how > 1:
        other = os.path.join(folder, "other")
        (os.link if how == 2 else os.symlink)(target, other)
        target = other
    result = e2e.run(*arguments, dice.choice(outputs), target, expect=None)
    assert result.status in (1, 2), result
    for key, path in names.items():
        with open(path, "rb") as file:
            assert file.read() == contents[key], (key, result)


def no_room_for_signals(dice, folder):
    """Other processes of the user have used up what may be pending, when a signal comes that ends the run."""
    process = e2e.start("loopback", "--quiet", "--seconds", "0", "--rate", "1kpps", "--frame-size", "64", "--json-lines", "0.1",
                        prefix=("prlimit", "--sigpending=%d:%d" % ((dice.randrange(4),) * 2)))
    try:
        if process.stdout.readline():
            process.send_signal(dice.choice((signal.SIGINT, signal.SIGTERM)))
        result = e2e.finish(process)
        assert result.status in (0, 3), result
    finally:
        process.kill()
        process.wait()


def two_signals(dice, folder):
    """They end it at any time, while it waits in a write to standard error."""
    test_failures.two_signals_end(dice.choice((signal.SIGINT, signal.SIGTERM)), *dice.choice(((), ("--verbose",))),
                                  after=dice.random() * 0.2)


def times_of_a_file(dice, folder):
    """Each frame is due at its time since the first one's, or with what is due before it."""
    times = [pcapfile.START_NS]
    for _ in range(dice.randrange(1, 20)):
        times.append(times[-1] + dice.choice((0, 1000, 10**6, -1, -10**6, -3600 * SECOND, -400 * 86400 * SECOND)))
        if dice.randrange(3) == 0:
            times.append(times[0] + dice.randrange(20 * 10**6))
    path = pcapfile.write_pcap(os.path.join(folder, "in.pcap"), [FRAMES[i % 12] for i in range(len(times))], times_ns=times)
    result = e2e.run("replay", "--tx-port", "net_null0", "--pcap", path, "--json", "--end", "never")
    sender = processes.check_sender(result.summary, len(times))
    last = max(0, *(time - times[0] for time in times))
    assert abs((sender["asked"]["seconds"] or 0) * SECOND - last) < 1000, (times, sender)
    back = sum(after < before for before, after in zip(times, times[1:]))
    assert ("%d of %d frames step back" % (back, len(times)) in result.err) == (back > 0), (times, result)


def end_of_a_file(dice, folder):
    """Files and pipes of any length end a run, whatever else would; fewer frames than asked for are no pass."""
    counts = [dice.randrange(12) for _ in range(dice.choice((1, 1, 2)))]
    paths = [pcapfile.write(os.path.join(folder, "%d.cap" % i), dice.choice((pcapfile.pcap_bytes, pcapfile.pcapng_bytes))(
        [frame[:12] + b"\x12\x34" + frame[14:] for frame in FRAMES[:count]])) for i, count in enumerate(counts)]
    total = sum(counts)
    asked = dice.choice((None, 0, total, total + 1, total + 1000))
    more = ("--frames", str(asked)) if asked else dice.choice(((), ("--idle", "600"), ("--seconds", "600")))
    summary = processes.run_json("capture", "--quiet", "--queues", str(len(paths)), *test_file_ports.port(*paths), *test_file_ports.ANY,
                                 *more, expect=None)
    passed = 0 < total and (not asked or asked <= total)
    assert summary["frames"]["received"] == total and (summary["result"] == "pass") == passed, (counts, more, summary)


def attempt(one, number):
    with processes.folder() as folder:
        one(random.Random(number), folder)


@pytest.mark.parametrize("one", (outputs_onto_inputs, no_room_for_signals, two_signals, times_of_a_file, end_of_a_file),
                         ids=lambda one: one.__name__)
def test_storm(one):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        runs = {pool.submit(attempt, one, number): number for number in range(LOOPS)}
        try:
            for run in concurrent.futures.as_completed(runs):
                assert run.exception() is None, (runs[run], run.exception())
        finally:
            pool.shutdown(cancel_futures=True)
