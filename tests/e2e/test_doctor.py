# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap doctor: what it prints in which shape, what it refuses, and that it can be done again from
a capture; what it says of whole machines (doctor_machines.py), and of damaged ones."""
import json
import os
import pathlib
import pty
import random
import re
import subprocess

import doctor_machines
import e2e
import processes

VERDICTS = ["fail", "warn", "unknown", "ok", "not applicable"]
SEVERITIES = ["fatal", "slow", "info"]


def examine(*arguments):
    result = e2e.run("doctor", "--json", *arguments, expect=None)
    assert result.status in (0, 3), result
    summary = result.summary
    assert summary["schema"] == "gdrcap.doctor/1" and summary["error"] is None, result
    fatal = [check for check in summary["checks"]
             if check["severity"] == "fatal" and check["verdict"] == "fail"]
    assert summary["able"] == (not fatal) and result.status == (3 if fatal else 0), result
    assert summary["unknown"] == sum(
        check["severity"] == "fatal" and check["verdict"] == "unknown"
        for check in summary["checks"]), result
    return summary


def test_help():
    result = e2e.run("doctor", "--help")
    for word in ("--json", "--all", "--live", "--root DIR", "--capture DIR",
                 "--write-config FILE", "Exit status", "gdrcap loopback --config"):
        assert word in result.out, "%s: %s" % (word, result)
    assert not re.search(r" $", result.out, re.M) and max(map(len, result.out.splitlines())) < 100
    assert "doctor" in e2e.run("--help").out


def test_refused():
    for arguments, text in (
            (["--jsn"], "did you mean '--json'"), (["--nonsense"], "unknown option '--nonsense'"),
            (["here"], "unknown argument 'here'"), (["--root"], "--root needs a value"),
            (["--root="], "--root needs a value"), (["--json=1"], "--json takes no value"),
            (["--root", "/", "--root=/"], "given twice"),
            (["--live", "--root", "/"], "leave out --root or --live")):
        result = e2e.run("doctor", *arguments, expect=2)
        assert text in result.err and result.out == "", result
        result = e2e.run("doctor", "--json", *arguments, expect=2)
        if text != "given twice":
            assert result.summary["able"] is None and result.summary["error"], result
    with e2e.Folder() as empty:
        result = e2e.run("doctor", "--root", empty, expect=1)
        assert "nothing of a machine" in result.err and "able" not in result.out, result
    for arguments, text in ((["--root", "/none/of/it"], "No such file"),
                            (["--root", "/etc/passwd"], "Not a directory"),
                            (["--capture", "/none/of/it"], "cannot be written"),
                            (["--write-config", "/none/of/it"], "cannot be written")):
        result = e2e.run("doctor", *arguments, expect=1)
        assert text in result.err, result
        assert text in e2e.run("doctor", "--json", *arguments, expect=1).summary["error"]


def test_json():
    summary = examine()
    order = [(VERDICTS.index(check["verdict"]), SEVERITIES.index(check["severity"]))
             for check in summary["checks"]]
    assert order == sorted(order), "not the worst first: %s" % order
    for check in summary["checks"]:
        assert set(check) == {"id", "group", "subject", "severity", "verdict", "read", "why",
                              "remedy"}, check
        assert check["read"] and check["why"], check
        if check["verdict"] in ("fail", "warn"):
            assert check["remedy"], "nothing to be done about %s" % check
    assert set(summary["machine"]) == {"distribution", "kernel", "container", "virtual_machine",
                                       "root", "gpus", "cards"}


def test_text():
    result = e2e.run("doctor", expect=None)
    last = result.out.splitlines()[-1]
    assert last.startswith("This machine is %sable to capture into GPU memory" % (
        "not " if result.status == 3 else "")), result
    assert "\033" not in result.out, "colour is for terminals: %s" % result
    everything = e2e.run("doctor", "--all", expect=None)
    for check in examine()["checks"]:
        assert check["id"] in everything.out, check
        assert check["verdict"] in ("ok", "not applicable") or check["id"] in result.out, check


def on_terminal(environment):
    reader, writer = pty.openpty()
    process = subprocess.Popen([e2e.PROGRAM, "doctor"], stdout=writer, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL, env=environment)
    os.close(writer)
    out = processes.read_terminal(reader)
    assert process.wait() in (0, 3)
    return out


def test_colour():
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    assert b"\033[" in on_terminal(environment)
    assert b"\033[" not in on_terminal({**environment, "NO_COLOR": "1"})


def captured(folder):
    """All in it, links too and not what they lead to."""
    return [pathlib.Path(at, name) for at, folders, files in os.walk(folder)
            for name in folders + files]


def test_capture():
    """A capture says the same elsewhere, and nothing of what is nobody's business."""
    with e2e.Folder() as directory:
        root = os.path.join(directory, "machine")
        secret = {**os.environ, "DOCTOR_SECRET": "not-to-be-told"}
        here = json.loads(e2e.run("doctor", "--json", "--capture", root, expect=None,
                                  env=secret).out)
        for path in captured(root):
            assert path.is_file() or path.is_dir() or path.is_symlink(), path
            assert path.name != "environ", path
            if path.is_file() and not path.is_symlink():
                assert b"not-to-be-told" not in path.read_bytes(), path
        there = examine("--root", root)
        assert here == there, "%s\n%s" % (here, there)
        # A capture of a capture is one, too.
        again = os.path.join(directory, "again")
        assert examine("--root", root, "--capture", again) == here
        assert examine("--root", again) == here
        # What is there is not written over.
        result = e2e.run("doctor", "--capture", again, expect=1)
        assert "File exists" in result.err, result


def test_config():
    with e2e.Folder() as directory:
        path = os.path.join(directory, "gdrcap.yaml")
        summary = examine("--write-config", path)
        result = e2e.run("doctor", "--write-config", path, expect=1)
        assert "is there already" in result.err, result
        if summary["machine"]["cards"]:
            return
        e2e.run("loopback", "--config", path, "--frames", "1000")


def test_documentation():
    """Each check is in docs/doctor.md, with its group and severity, and no other."""
    text = (e2e.ROOT / "docs" / "doctor.md").read_text()
    documented, group = set(), None
    for line in text.splitlines():
        heading = re.match(r"### .*\(`([a-z-]+)`\)$", line)
        group = heading.group(1) if heading else None if line.startswith("## ") else group
        row = re.match(r"\| `([a-z0-9-]+)` \| (fatal|slow|info) \|", line)
        if row and not row.group(1).startswith("live-"):
            documented.add((row.group(1), group, row.group(2)))
    with e2e.Folder() as nothing:
        os.mkdir(os.path.join(nothing, "sys"))
        checks = {(check["id"], check["group"], check["severity"])
                  for check in examine("--root", nothing)["checks"]}
    assert documented == checks, "documented only: %s; not documented: %s" % (
        documented - checks, checks - documented)


# ---- machines ----

class Tree:
    """A machine in a folder of its own, for a `with` block: the folder's path."""

    def __init__(self, machine, damaged=False):
        self.machine = machine
        self.damaged = damaged

    def __enter__(self):
        # Hundreds of small files: on some disks that is the longest part of the test.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = e2e.Folder(dir=memory)
        root = os.path.join(self.folder.name, "root")
        os.mkdir(root)
        self.machine.write(root, self.damaged)
        return root

    def __exit__(self, *_):
        self.folder.cleanup()


def named(summary):
    """The checks by name: "ID SUBJECT", or "ID" of the machine."""
    checks = {" ".join(filter(None, (check["id"], check["subject"]))): check
              for check in summary["checks"]}
    assert len(checks) == len(summary["checks"]), "two findings of one check on one subject"
    return checks


def check_machine(make):
    machine, expected = make()
    with Tree(machine) as root:
        summary = examine("--root", root)
    checks = named(summary)
    found = {name: check["verdict"] for name, check in checks.items()
             if check["verdict"] not in ("ok", "not applicable")}
    differences = ["%s: %s in place of %s; read: %s" % (
        name, found.get(name, "fine"), expected.findings.get(name, "fine"),
        checks.get(name, {"read": "no such finding"})["read"])
        for name in sorted({*found, *expected.findings})
        if found.get(name) != expected.findings.get(name)]
    assert not differences, "%s:\n  %s" % (make.__name__, "\n  ".join(differences))
    assert summary["able"] == expected.able, make.__name__
    for name, remedy in expected.remedies.items():
        assert checks[name]["remedy"].split("\n") == remedy, "%s, %s:\n%s\nin place of\n%s" % (
            make.__name__, name, checks[name]["remedy"], "\n".join(remedy))


def test_machines():
    failed = []
    for make in doctor_machines.MACHINES:
        try:
            check_machine(make)
        except AssertionError as error:
            failed.append(str(error))
    assert not failed, "\n".join(failed)


def test_machine_capture():
    """From a capture the same is found, with what could not be read; and no word too much. Of every fourth machine, in
    `make check-long` of all."""
    for make in doctor_machines.MACHINES[::1 if e2e.LONG else 4]:
        machine, _ = make()
        for path, (kind, *data) in list(machine.entries.items()):
            if path in ("/proc/cmdline", "/proc/self/status", "/proc/mounts"):
                machine.raw(path, data[0] + b" secret=not-to-be-told\nSecret: not-to-be-told\n")
        machine.file("/proc/self/environ", "SECRET=not-to-be-told")
        machine.file("/proc/net/arp", "192.0.2.77 0x1 0x2 not-to-be-told * ens6f0np0")
        machine.file("/etc/hosts", "192.0.2.77 not-to-be-told")
        with Tree(machine) as root, e2e.Folder() as folder:
            again = os.path.join(folder, "root")
            before = examine("--root", root, "--capture", again)
            for path in captured(again):
                if path.is_file() and not path.is_symlink():
                    data = path.read_bytes()
                    for word in (b"not-to-be-told", b"192.0.2", b"GPU-00000000", b"b8:ce:f6"):
                        assert word not in data, "%s: %s has %s" % (make.__name__, path, word)
            after = examine("--root", again)
            if before != after:
                one, other = named(before), named(after)
                raise AssertionError("%s:\n%s" % (make.__name__, "\n".join(
                    "%s\nbefore %s\nafter  %s" % (name, one.get(name), other.get(name))
                    for name in {*one, *other} if one.get(name) != other.get(name))
                    or "%s\n%s" % (before, after)))


def test_machine_config():
    """The healthy machine's configuration: its pair, its cores, and a file that gdrcap takes."""
    machine, _ = doctor_machines.healthy()
    with Tree(machine) as root:
        path = os.path.join(os.path.dirname(root), "gdrcap.yaml")
        pair = examine("--root", root, "--write-config", path)["pairs"][0]
        assert (pair["gpu"], pair["card"], pair["path"], pair["cores"]) == (
            doctor_machines.GPU, doctor_machines.CARDS[0], "PIX", "8-15,40-47,1-7,32-39"), pair
        with open(path) as file:
            text = file.read()
        lines = text.splitlines()
        for line in ("port: " + doctor_machines.CARDS[0], "tx_port: " + doctor_machines.CARDS[1],
                     "gpu: 0", "memory: device", "queues: 4", 'cores: "8,9,10,11,12,13,14,15"'):
            assert line in lines, "%s is not in\n%s" % (line, text)
        # Nothing is wrong with it but that these cards and this GPU are elsewhere.
        result = e2e.run("loopback", "--config", path, "--gpu", "host", "--memory", "host",
                         "--frames", "1", expect=1)
        assert doctor_machines.CARDS[0] in result.err, result
        assert "yaml" not in result.err and "cores" not in result.err, result


# ---- damaged machines ----

NAMES = ("line\nend", "$(reboot)", "';reboot;'", "x" * 200, "-rf", "\x1b[2J", "0000:ff:1f.7",
         "uverbs9999999999", "node99999999999", "policy")


def damage(machine, odds):
    """One thing of many kinds after the other, with this source of chances."""
    paths = sorted(machine.entries)
    for _ in range(odds.choice((1, 5, 40, len(paths) // 2))):
        path = odds.choice(paths)
        kind, *data = machine.entries.get(path, ("folder",))
        bytes_ = data[0] if kind == "file" else b""
        at = odds.randrange(len(bytes_) + 1)
        flipped = bytearray(bytes_)
        for _ in range(min(8, len(bytes_))):
            flipped[odds.randrange(len(bytes_))] = odds.randrange(256)
        machine.entries[path] = odds.choice((
            ("file", odds.randbytes(odds.choice((1, 64, 256, 4096, 65536)))),
            ("file", bytes_[:at]), ("file", b""), ("file", bytes(flipped)),
            ("file", bytes_ * 50), ("file", b"9" * odds.randrange(1, 5000)), ("file", b"-1\n"),
            ("file", b"\n".join([bytes_, *[b"0x7fffffff %s 1,2-3" % bytes_[:99]] * 99])),
            ("sparse", 1 << 40), ("folder",), ("fifo",), ("link", "."),
            ("link", path.rsplit("/", 1)[1]), ("link", "../" * 30 + "proc/self/environ"),
            ("link", "/dev/zero"), ("link", "/" + "x/" * 1500), ("link", odds.choice(paths)),
            ("gone",)))
        if machine.entries[path] == ("gone",):
            del machine.entries[path]
        if odds.random() < 0.1:
            name = "%s/%s" % (odds.choice(paths).rsplit("/", 1)[0], odds.choice(NAMES))
            machine.entries[name] = odds.choice((
                ("file", b"1"), ("folder",), ("link", odds.choice(paths))))
    if odds.random() < 0.3:
        rename(machine, odds.choice((*doctor_machines.INTERFACES, "mlx5_0", "uverbs0", "node0",
                                     "policy1", "mlx5_core", *doctor_machines.CARDS)),
               odds.choice(NAMES))


def rename(machine, old, new):
    """A device with this name, wherever the name is."""
    def renamed(path):
        return "/".join(new if part == old else part for part in path.split("/"))

    machine.entries = {renamed(path): (kind, *(map(renamed, data) if kind == "link" else data))
                       for path, (kind, *data) in machine.entries.items()}


def test_damaged():
    """Machines with damage of any kind: no crash, no hang, and JSON that is valid."""
    count = 300 if e2e.LONG else 30
    makes = doctor_machines.MACHINES
    for seed in range(count):
        odds = random.Random(seed)
        machine, _ = makes[seed % len(makes)]()
        damage(machine, odds)
        with Tree(machine, damaged=True) as root:
            capture = os.path.join(os.path.dirname(root), "captured")
            yaml = os.path.join(os.path.dirname(root), "gdrcap.yaml")
            try:
                result = e2e.run("doctor", "--json", "--root", root, "--capture", capture,
                                 "--write-config", yaml, expect=None)
                assert result.status in (0, 3), result
                for check in result.summary["checks"]:
                    for line in (check["read"], *check["remedy"].split("\n")):
                        assert line.isprintable() or not line, check
                    # Nothing of others' names for a shell.
                    assert "reboot)" not in check["remedy"], check
                    assert ";reboot" not in check["remedy"] and " -rf" not in check["remedy"], check
                assert sum(path.lstat().st_size for path in captured(capture)) < 64 << 20
            except Exception as error:
                raise AssertionError("seed %d (%s): %s" % (
                    seed, makes[seed % len(makes)].__name__, error)) from error
