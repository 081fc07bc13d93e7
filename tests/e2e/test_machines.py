# SPDX-License-Identifier: BSD-3-Clause
"""Several machines, one run: eight senders and four receivers in network namespaces, which meet by ready files
and begin at one time; what two receivers' cables lose is lost there, to the frame, and nowhere else."""
import contextlib
import json
import os
import subprocess

import e2e
import machines
import processes

FAULTY = os.environ.get("GDRCAP_FAULTY")
RECEIVERS, SENDERS_EACH = 4, 2
# Of each sender: fewer than the kernel's ring of a port holds, so that a receiver without a core loses none.
FRAMES = 400
# Of the faulty program, on a receiver's first cable: from which frame on, and how many.
LOST = {1: (100, 7), 3: (300, 30)}


def start(prefix, arguments, program=e2e.PROGRAM, **environment):
    # Threads that sleep: there are more of them than cores.
    return subprocess.Popen([*prefix, program, *arguments, "--json", "--quiet", "--idle-sleep", "500", "--gpu",
                             "host", "--descriptors", "256"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **environment})


def finish(process, status):
    out, err = process.communicate(timeout=e2e.TIMEOUT)
    assert process.returncode == status, "%d, not %d: %s%s" % (process.returncode, status, out, err)
    summary = json.loads(out)
    processes.check_summary(summary, err)
    return summary


def ready_files(folder):
    return ",".join(os.path.join(folder, "rx%d.ready" % i) for i in range(RECEIVERS))


def run(network, folder):
    """(what senders say, what receivers say), in order."""
    with contextlib.ExitStack() as stack:
        receivers, senders = [], []
        stack.callback(lambda: [process.kill() for process in receivers + senders])
        for i in range(network.senders):
            senders.append(start(
                network.inside(network.sender_name(i)),
                ["replay", *network.out(), "--frames", str(FRAMES), "--frame-size", "64-300",
                 "--rate", "2kpps", "--streams", "2", "--first-stream", str(2 * i),
                 "--wait-ready", ready_files(folder), "--start-at", "+1"]))
        for i in range(RECEIVERS):
            faults = {"GDRCAP_FAULTS": "drop=%d:%d" % LOST[i]} if i in LOST else {}
            receivers.append(start(
                network.inside(network.receiver_name(i)),
                ["capture", *network.ports(), "--senders", str(SENDERS_EACH), "--ready",
                 os.path.join(folder, "rx%d.ready" % i)], FAULTY if faults else e2e.PROGRAM, **faults))
        return ([finish(process, 0) for process in senders],
                [finish(process, 3 if i in LOST else 0) for i, process in enumerate(receivers)])


def test_eight_senders_and_four_receivers():
    if not FAULTY:
        raise e2e.Skip("GDRCAP_FAULTY does not name the program of tests/faults")
    with machines.Machines(RECEIVERS, SENDERS_EACH) as network, processes.folder() as folder:
        sent, received = run(network, folder)
        ready = []
        for path in ready_files(folder).split(","):
            with open(path, encoding="ascii") as file:
                ready.append(json.load(file))
    for i, summary in enumerate(sent):
        assert summary["frames"]["sent"] == FRAMES, (i, summary["frames"])
        assert summary["sender"]["start"]["late_ns"] is not None, summary["sender"]
    for i, summary in enumerate(received):
        lost = LOST[i][1] if i in LOST else 0
        e2e.check_identities(summary)
        processes.check_counts(summary, sent=SENDERS_EACH * FRAMES, valid=SENDERS_EACH * FRAMES - lost,
                               lost=lost, damaged=0, duplicate=0, reordered=0)
        assert summary["ended_by_sender"] is True and summary["conflicts"] == 0, summary
        streams = {row["stream"]: row["frames"]["sent"] for row in summary["streams"]}
        assert streams == {2 * SENDERS_EACH * i + n: FRAMES // 2 for n in range(4)}, streams
        on_first = sum(row["frames"]["lost"] for row in summary["streams"]
                       if row["stream"] < 2 * SENDERS_EACH * i + 2)
        assert on_first == lost, summary["streams"]
        assert len({port["mac"] for port in ready[i]["ports"]}) == SENDERS_EACH, ready[i]


if __name__ == "__main__":
    e2e.main(globals())
