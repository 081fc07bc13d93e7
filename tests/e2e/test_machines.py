# SPDX-License-Identifier: BSD-3-Clause
"""Several machines, one run: eight senders and four receivers in network namespaces, which meet by ready files
and begin at one time; what two receivers' cables lose is lost there, to the frame, and nowhere else."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

import e2e
import machines
import pcapfile
import processes

FAULTY = os.environ.get("GDRCAP_FAULTY")
RECEIVERS, SENDERS_EACH = 4, 2
# Of each sender: fewer than the kernel's ring of a port holds, so that a receiver without a core loses none.
FRAMES = 400
# In the playbook, from when receivers are ready until senders send: a busy machine takes so long to start them.
START_IN = 30
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


def ready_files(folder, receivers=RECEIVERS):
    return ",".join(os.path.join(folder, "rx%d.ready" % i) for i in range(receivers))


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
                 "--wait-ready", ready_files(folder), "--wait-seconds", "0", "--start-at", "+1"]))
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


def spread(folder, lost, twice):
    """One sender's stream, frame by frame in turn over two files, without those lost and with those copied."""
    path = os.path.join(folder, "sent.pcap")
    sent = processes.run_json("replay", "--quiet", "--gpu", "host", "--frames", str(FRAMES), "--tx-port",
                              "net_pcap0,tx_pcap=" + path)
    parts, number = [[], []], 0
    for frame in pcapfile.read(path):
        end = frame.data[17] == 0xFF
        for i, part in enumerate(parts):
            if end or (number not in lost and (number % 2 == i or number in twice)):
                part.append(frame.data)
        number += not end
    return sent, [pcapfile.write_pcap(os.path.join(folder, "part%d.pcap" % i), part)
                  for i, part in enumerate(parts)]


def test_one_stream_over_two_receivers():
    """A link aggregation that sends frames in turn: each receiver lacks half, and together what was planted."""
    lost, twice = {0, 7, 100, 101, FRAMES - 1}, {50, 61}
    with machines.Machines(2, 1) as network, processes.folder() as folder:
        sent, parts = spread(folder, lost, twice)
        with contextlib.ExitStack() as stack:
            running = []
            stack.callback(lambda: [process.kill() for process in running])
            for i in range(2):
                running.append(start(network.inside(network.receiver_name(i)),
                                     ["capture", *network.ports(), "--ranges", "--ready",
                                      os.path.join(folder, "rx%d.ready" % i)]))
            for i in range(2):
                running.append(start(network.inside(network.sender_name(i)),
                                     ["replay", *network.out(), "--pcap", parts[i], "--rate", "2kpps",
                                      "--wait-ready", ready_files(folder, 2), "--wait-seconds", "0"]))
            summaries = [finish(process, 3 if i < 2 else 0) for i, process in enumerate(running)]
        files = []
        for name, summary in (("tx", sent), ("rx0", summaries[0]), ("rx1", summaries[1])):
            files.append(os.path.join(folder, name + ".json"))
            with open(files[-1], "w", encoding="ascii") as file:
                json.dump(summary, file)
        merged = e2e.run("merge", "--json", *files, expect=3).summary
    assert merged["frames"] == {"sent": FRAMES, "received": merged["frames"]["received"], "damaged": 0,
                                "valid": FRAMES - len(lost), "lost": len(lost), "reordered": 0,
                                "duplicate": len(twice)}, merged
    assert merged["errors"] == ["%d frames lost" % len(lost), "%d frames duplicated" % len(twice)], merged
    assert merged["unsettled_streams"] == 0, merged


# ---- recipes: deploy/machines ----

RECIPES = e2e.ROOT / "deploy" / "machines"
QUIET = "--idle-sleep 500 --gpu host --descriptors 256"


def receive_words(network):
    return " ".join(["--senders", str(SENDERS_EACH), QUIET, *network.ports()])


def send_words(network):
    return " ".join([*network.out(), "--frames", str(FRAMES), "--rate", "2kpps", QUIET])


def check_gathered(folder, receivers, senders):
    """All summaries are there, of one run in which nothing was lost."""
    for name in receivers + senders:
        with open(os.path.join(folder, name + ".json"), encoding="ascii") as file:
            summary = json.load(file)
        processes.check_summary(summary, name)
        assert summary["result"] == "pass", (name, summary)
        each = SENDERS_EACH if name in receivers else 1
        assert summary["frames"]["sent"] == each * FRAMES, (name, summary["frames"])


def program_of_rank(network, folder):
    """A program that runs in the namespace of its rank: receivers come first."""
    path = os.path.join(folder, "gdrcap")
    holders = [holder.pid for name, holder in sorted(network.holders.items())]
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nset -- %s \"$@\"\nrank=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}\n"
                   "for pid in %s; do\n[ \"$rank\" -gt 0 ] || exec nsenter --net --target $pid \"$@\"\n"
                   "rank=$((rank - 1))\ndone\n" % (e2e.PROGRAM, " ".join(map(str, holders))))
    os.chmod(path, 0o755)
    return path


def rank_words(network, folder):
    return [str(RECIPES / "rank.sh"), folder, "2", receive_words(network),
            send_words(network) + " --first-stream {rank}0 --wait-seconds 0 --start-at +0.5"]


def names(network):
    return (["rx%d" % i for i in range(2)], ["tx%d" % (2 + i) for i in range(network.senders)])


def test_mpirun():
    """Six ranks: two receive, four send."""
    processes.tool("mpirun", "openmpi-bin")
    with machines.Machines(2, SENDERS_EACH) as network, processes.folder() as folder:
        command = ["mpirun", "--mca", "orte_abort_on_non_zero_status", "0", "--allow-run-as-root",
                   "--oversubscribe", "--bind-to", "none", "-n", "6", *rank_words(network, folder)]
        environment = {**os.environ, "GDRCAP": program_of_rank(network, folder)}
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=e2e.TIMEOUT)
        assert done.returncode == 0, done.stdout
        assert len([line for line in done.stdout.splitlines() if "exit status 0" in line]) == 6, done.stdout
        check_gathered(folder, *names(network))
        # A folder of another run is no new one.
        done = subprocess.run(rank_words(network, folder), env={**environment, "SLURM_PROCID": "0"},
                              capture_output=True, text=True, timeout=e2e.TIMEOUT)
        assert done.returncode == 2 and "another run" in done.stderr, done


@pytest.mark.long  # test_mpirun has the other environment of the same recipe
def test_slurm_environment():
    """The same ranks with what srun says to them."""
    with machines.Machines(2, SENDERS_EACH) as network, processes.folder() as folder:
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("OMPI_", "PMIX_"))}
        environment["GDRCAP"] = program_of_rank(network, folder)
        ranks = [subprocess.Popen(rank_words(network, folder), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  env={**environment, "SLURM_PROCID": str(rank)}) for rank in range(6)]
        for process in ranks:
            err = process.communicate(timeout=e2e.TIMEOUT)[1]
            assert process.returncode == 0, err
        check_gathered(folder, *names(network))
        done = subprocess.run(rank_words(network, folder), env=environment, capture_output=True,
                              text=True, timeout=e2e.TIMEOUT)
        assert done.returncode == 2 and "no rank" in done.stderr, done


def ansible_playbook():
    """That of the Python which has ansible-core (scripts/test-python.sh), or the system's."""
    beside = pathlib.Path(sys.executable).with_name("ansible-playbook")
    return str(beside) if beside.exists() else processes.tool("ansible-playbook", "ansible-core")


@pytest.mark.long
def test_ansible():
    """The playbook, with this machine's namespaces for hosts."""
    ansible = ansible_playbook()
    with machines.Machines(1, SENDERS_EACH) as network, processes.folder() as folder:
        lines = ["[receivers]", "rx0 receive='%s'" % receive_words(network), "[senders]"]
        lines += ["tx%d send='%s --first-stream %d'" % (i, send_words(network), 10 * i)
                  for i in range(network.senders)]
        lines += ["[all:vars]", "ansible_connection=local", "folder=%s/each" % folder,
                  "gather=%s/all" % folder, "start_in=%d" % START_IN,
                  "ansible_python_interpreter=/usr/bin/python3"]
        inventory = os.path.join(folder, "inventory.ini")
        os.mkdir(os.path.join(folder, "host_vars"))
        for name in network.holders:
            with open(os.path.join(folder, "host_vars", name + ".json"), "w", encoding="ascii") as file:
                json.dump({"gdrcap": " ".join([*network.inside(name), e2e.PROGRAM])}, file)
        with open(inventory, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        done = subprocess.run([ansible, "-i", inventory, str(RECIPES / "play.yml")],
                              env={**os.environ, "ANSIBLE_HOME": folder + "/home",
                                   "ANSIBLE_ASYNC_DIR": folder + "/async"},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=2 * e2e.TIMEOUT)
        assert done.returncode == 0, done.stdout
        check_gathered(os.path.join(folder, "all"), ["rx0"],
                       ["tx%d" % i for i in range(network.senders)])
