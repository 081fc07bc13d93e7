# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap on two ConnectX cards, which are software; DPDK's driver on them is the real one. Frames
through memory that the CPU cannot read, by each of the driver's ways to receive."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import connectx
import e2e
import pcapfile
import processes

MANY = processes.scaled(1000000, 50000)
SOME = processes.scaled(100000, 20000)
FEW = 5000


def test_library_stands_in_for_all():
    """Whatever the program asks of libibverbs and libmlx5, the cards answer: the real libraries
    would take the model's objects for their own."""
    names = []
    for option, path in (("--undefined-only", e2e.PROGRAM), ("--defined-only", connectx.LIBRARY)):
        text = processes.output("nm", "-D", option, path)
        names.append(set(re.findall(r" (\w+)(?:@\S+)?$", text, re.M)))
    asked = {name for name in names[0] if name.startswith(("ibv_", "mlx5dv_"))}
    assert len(asked) > 50 and not asked - names[1], asked - names[1]
    # And nothing else of it is seen.
    assert {name for name in names[1] if not name.startswith(("ibv_", "mlx5dv_"))} <= {
        "clock_gettime", "fopen", "fopen64", "if_indextoname", "if_nametoindex", "ioctl", "open",
        "open64", "softmlx5_flush"} | {
            name for name in names[1] if name.startswith("__")}, names[1]


# ---- many frames ----

@connectx.modes(*connectx.MODES)
def test_million(mode):
    done = connectx.perfect("--frame-size", "64-1518", count=MANY, mode=mode)
    assert done.summary["memory"]["kind"].endswith("device"), done
    assert done.summary["memory"]["registration"] == "host memory", done
    assert done.causes["wire_frames_received"] == MANY + connectx.STAGED, done
    rules = done.summary["steering"]["rules"]
    assert [rule["rule"] for rule in rules] == ["ethertype=0x88b5"], rules
    # Without DevX the newer engine does not count.
    counts = connectx.MODES[mode][0] or "dv_flow_en=0" in connectx.MODES[mode][1]
    assert rules[0]["frames"] == (MANY if counts else None), rules


@connectx.modes("devx", "devx scalar", "verbs", "verbs flow scalar")
def test_idle_sleep(mode):
    """Receiver and sender sleep between frames, and where either has no room. The card's
    interrupt ends the receiver's sleep."""
    connectx.perfect("--idle-sleep", "500", count=SOME, mode=mode)
    done = connectx.perfect("--idle-sleep", "10000", "--rate", "1kpps", "--queues", "2",
                            count=FEW // 5, mode=mode)
    assert done.card(1, "soft_interrupts") > 0, done
    assert connectx.perfect(count=FEW, mode=mode).card(1, "soft_interrupts") == 0


@connectx.modes("devx", "verbs")
def test_idle_sleep_without_interrupts(mode):
    """A card that gives its driver no channel for them starts without, and that is said."""
    done = connectx.run("loopback", "--verbose", "--frames", str(FEW), "--idle-sleep", "500",
                        *connectx.ports(mode), env=connectx.environment(
                            connectx.LOSSLESS + ",1.refuse_channel=1", mode))
    e2e.check_perfect(done.summary, FEW)
    assert done.card(1, "soft_interrupts") == 0, done
    assert "starts without receive interrupts only" in done.result.err, done
    assert "the driver has no receive interrupts" in done.result.err, done


@connectx.modes("devx", "verbs flow scalar")
def test_jumbo(mode):
    connectx.perfect("--frame-size", "9000", count=SOME // 5, mode=mode)


def test_jumbo_of_mixed_sizes():
    connectx.perfect("--frame-size", "64-9000", count=SOME // 5)


def test_few_frames():
    """Fewer than the driver's vector functions care to look at, and none that would follow."""
    for count in e2e.some((1, 2, 3, 5, 63, 64, 65), 0, 2, 4, 6):
        connectx.perfect(count=count)


@connectx.modes("devx", "verbs flow scalar")
def test_sizes_and_formats(mode):
    for arguments in e2e.some((("--frame-size", "64"), ("--frame-size", "1518"),
                               ("--format", "udp", "--frame-size", "82-1518"),
                               ("--vlan", "7", "--frame-size", "68-1518"),
                               ("--format", "udp", "--vlan", "4094")), 0, 2, 4):
        connectx.perfect(*arguments, count=FEW, mode=mode)


@connectx.modes("devx", "verbs flow")
def test_queues_and_streams(mode):
    done = connectx.perfect("--queues", "4", "--streams", "8", "--frame-size", "64-1518",
                            count=SOME, mode=mode)
    assert len(done.summary["queues"]) == 4, done
    assert sorted(row["frames"]["sent"] for row in done.summary["streams"])[0] > 0, done


def test_rings_and_bursts():
    connectx.perfect("--descriptors", "64", "--burst", "64", "--pool", "8M", count=FEW)
    connectx.perfect("--descriptors", "8192", "--burst", "1", count=FEW)


@connectx.modes("devx", "verbs scalar")
def test_at_a_rate(mode):
    """Frames that come one by one are not left lying."""
    connectx.loopback("--rate", "20kpps", "--frame-size", "64", count=10001 if e2e.LONG else 5001, mode=mode).check()


# ---- what a user may call a port ----

def test_names():
    for receiver, sender in (("mlx5_1", "mlx5_0"), ("smlx1", "smlx0"), ("aa:00.1", "aa:00.0"),
                             ("smlx1,dv_flow_en=0", "mlx5_0,txq_inline_max=0")):
        done = connectx.run("loopback", "--quiet", "--frames", str(FEW), "--port", receiver,
                            "--tx-port", sender, "--gpu", "host", "--guard")
        done.check()
        assert done.summary["ports"] == [receiver], done.summary["ports"]


def test_unknown_names():
    for name, words in (("smlx7", "no interface and no RDMA device called smlx7"),
                        ("0000:bb:00.0", "no PCI device 0000:bb:00.0")):
        done = connectx.run("loopback", "--quiet", "--frames", "1", "--port", name, "--tx-port",
                            connectx.SENDER, "--gpu", "host", expect=1)
        assert words in done.summary["errors"][0], done


def test_two_pairs():
    """Four cards, two cables, both at once."""
    arguments = []
    for i in (0, 2):
        arguments += ["--tx-port", "0000:aa:00.%d" % i, "--port", "0000:aa:00.%d" % (i + 1)]
    done = connectx.run("loopback", "--quiet", "--frames", str(SOME), *arguments, "--gpu", "host",
                        "--guard", "--frame-size", "64-1518",
                        env=connectx.environment(softmlx5_devices="4"))
    done.check()
    assert len(done.summary["queues"]) == 2, done
    assert all(queue["valid"] for queue in done.summary["queues"]), done


def test_refused_arguments():
    """What would let the CPU read a payload, or what cannot be, is said before anything runs."""
    for devargs, words in (("txq_inline_max=290", "txq_inline_max=290 is refused"),
                           ("txq_inline_mpw=290", "txq_inline_mpw=290 is refused"),
                           ("mprq_en=1", "mprq_en=1 is refused"),
                           ("dv_flow_en=2", "dv_flow_en=2 is refused")):
        done = connectx.run(
            "loopback", "--quiet", "--frames", "1", "--port", connectx.RECEIVER, "--tx-port",
            connectx.SENDER + "," + devargs, "--gpu", "host", "--guard", expect=None)
        assert done.result.status in (1, 2) and words in done.summary["errors"][0], done


# ---- header-data split ----

@connectx.modes("devx", "verbs", "verbs flow scalar")
def test_split(mode):
    """Headers in host memory, payload in memory that the CPU cannot read; also frames that are no
    longer than the split."""
    for split in ("64", "32", "128"):
        done = connectx.perfect("--split", split, "--frame-size", "64-1518", count=SOME // 4,
                                mode=mode)
        assert done.summary["memory"]["split"] == int(split), done


def test_split_finds_damage():
    """On both sides of the border, and the first byte behind it."""
    for offset in e2e.some((63, 64, 65, 1000), 0, 1):
        done = connectx.loopback("--split", "64", count=FEW,
                                 faults="pause=1,0.corrupt=1000,0.corrupt_at=%d" % offset, expect=3)
        done.check(damaged=1, wrong=1)
        row = done.summary["damage"][0]
        assert (row["kind"], row["sequence"], row["offset"]) == ("payload", 998, offset), row


# ---- the card's clock ----

@connectx.modes(*connectx.MODES)
def test_card_clock(mode):
    """Arrival times are the card's: none before the start or after the end, and none goes back."""
    with processes.folder() as directory:
        path = os.path.join(directory, "all.pcapng")
        before = time.time_ns()
        done = connectx.perfect("--clock", "card", "--save", path, count=FEW, mode=mode)
        after = time.time_ns()
        saved = pcapfile.read_capture(path)
    assert done.summary["clock"] == "card", done.summary["clock"]
    assert done.summary["saved"]["frames"] == FEW, done.summary["saved"]
    times = [frame.time_ns for frame in saved.frames]
    assert len(times) == FEW, len(times)
    assert times == sorted(times), "times go back"
    # The model's clock is the time of day; a card's ticks are turned into it to within ms.
    slack = 20000000
    assert before - slack <= times[0] <= times[-1] <= after + slack, (before, times[0], after)
    # The CPU would have seen bursts: one time for several frames.
    assert len(set(times)) > FEW // 2, len(set(times))


# ---- who may ----

def test_without_root():
    """An unprivileged user, no hugepages, no network interface."""
    user = processes.nobody()
    with processes.folder() as directory:
        for path in (connectx.LIBRARY, e2e.PROGRAM):
            shutil.copy(path, directory)
            os.chmod(os.path.join(directory, os.path.basename(path)), 0o755)
        variables = {**user["env"], **{key: value for key, value in connectx.environment().items()
                                       if key.startswith(("SOFTMLX5", "ASAN", "LD_"))}}
        variables["LD_PRELOAD"] = os.path.join(directory, os.path.basename(connectx.LIBRARY))
        done = connectx.run("loopback", "--quiet", "--frames", str(FEW), *connectx.ports(),
                            **{**user, "env": variables})
    done.check()


def preloaded(*command, **more):
    """Another program with the library."""
    if "__asan" in processes.output("nm", "-D", "--undefined-only", connectx.LIBRARY):
        raise e2e.Skip("a sanitizer's library loads in programs with the sanitizer only")
    return subprocess.run(command, env=connectx.environment(**more), capture_output=True, text=True, timeout=e2e.TIMEOUT)


def test_wrappers():
    """Preloaded into a program that only starts another one: silent there, and the other one has the cards."""
    with processes.folder() as directory:
        done = preloaded("timeout", "60", "true", faults="nonsense=1", tmpdir=directory)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
        assert not os.listdir(directory), os.listdir(directory)
    done = preloaded("timeout", "600", "sh", "-c", '"$@"', "sh", e2e.PROGRAM, "loopback", "--frames", str(FEW),
                     *connectx.ports())
    assert done.returncode == 0 and "PASS" in done.stdout, done
    assert "mlx5_0: tx_packets_phy" in done.stderr, done.stderr


def test_verbs_come_late():
    """As in Python: the program begins without verbs, and loads them with gdrcap, before EAL looks for devices."""
    late = ("import ctypes, os; here = ctypes.CDLL(None); assert os.environ['LD_PRELOAD'] and not here.getenv(b'SYSFS_PCI_DEVICES'); "
            "ctypes.CDLL('libibverbs.so.1'); here.fopen(b'/dev/null', b'r'); print(here.getenv(b'SYSFS_PCI_DEVICES') != 0)")
    done = preloaded(sys.executable, "-c", late)
    assert done.stdout == "True\n", done


def test_nothing_is_left():
    """The folders that stand for the cards go with the program, however it goes."""
    with processes.folder() as directory:
        variables = connectx.environment(tmpdir=directory)
        connectx.perfect(count=1, variables={"tmpdir": directory})
        assert processes.wait_until(lambda: not os.listdir(directory)), os.listdir(directory)
        for number in e2e.some((signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV), 0, 2):
            arguments = ("loopback", "--seconds", "60", *connectx.ports())
            with processes.Running(*arguments, env=variables) as running:
                running.wait_until_running()
                assert os.listdir(directory), "no folder at all"
                running.signal(number)
                running.process.wait(e2e.TIMEOUT)
            assert processes.wait_until(lambda: not os.listdir(directory)), (
                number, os.listdir(directory))


def test_configuration_file():
    """The example for two cards, as it is."""
    text = (e2e.ROOT / "config" / "loopback-connectx.yaml").read_text(encoding="utf-8")
    with processes.folder() as directory:
        own_path = os.path.join(directory, "loopback.yaml")
        text = re.sub(r"0000:[0-9a-f]{2}:[0-9a-f]{2}\.", "0000:aa:00.", text)
        with open(own_path, "w", encoding="utf-8") as file:
            file.write(text)
        done = connectx.run("loopback", "--config", own_path, "--frames", str(FEW), "--gpu",
                            "host", "--guard", "--quiet")
    done.check()
