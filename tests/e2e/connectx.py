# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap on the software ConnectX of tests/softmlx5, preloaded: two cards with a cable between
them, 0000:aa:00.0 (smlx0, mlx5_0) and 0000:aa:00.1."""
import json
import os
import re
import signal

import e2e
import pcapfile
import processes

LIBRARY = os.environ.get("SOFTMLX5")
FAULTY = os.environ.get("GDRCAP_FAULTY")
SENDER, RECEIVER = "0000:aa:00.0", "0000:aa:00.1"
# Its cable's flow control: a sender waits for the receiver's buffers, and nothing is lost.
LOSSLESS = "pause=1"
# How the driver makes its queues and rules, and which of its functions receive.
MODES = {
    "devx": (True, "dv_flow_en=1"),
    "devx scalar": (True, "dv_flow_en=1,rx_vec_en=0"),
    "verbs": (False, "dv_flow_en=1"),
    "verbs scalar": (False, "dv_flow_en=1,rx_vec_en=0"),
    "verbs flow": (False, "dv_flow_en=0"),
    "verbs flow scalar": (False, "dv_flow_en=0,rx_vec_en=0"),
}
DEFAULT = "devx"
# What takes the frames: CPU threads, that have memory which the session's own cannot touch.
DEVICE = ("--gpu", "host", "--guard")
# Frames of our own beside those that are counted: the staged first one.
STAGED = 1
# After so long no frame is under way any more. Those on the cable are moved by the cards' thread, which others may keep
# from its core where it may not go before them (softmlx5/nic.c).
QUIET = "2" if os.geteuid() else "0.5"
CAUSES = ("out_of_buffer card_full wire_crc wire_symbol wire_length queue_error pause_sent "
          "wire_frames_received").split()
# Those that count frames which are lost for it.
EXPLAIN = "out_of_buffer card_full wire_crc wire_length tx_discard".split()
SENDER_CAUSES = "pause_received tx_wire_error tx_discard wire_frames_sent".split()


def environment(faults=LOSSLESS, mode=DEFAULT, **more):
    """Of a gdrcap before which the cards are preloaded."""
    sanitizers = os.environ.get("ASAN_OPTIONS", "")
    # A defect for all runs of a test, which is then to fail: test_connectx_mutants.py.
    faults = ",".join(filter(None, (faults, os.environ.get("CONNECTX_PLANT"))))
    variables = dict(
        os.environ, LD_PRELOAD=LIBRARY, SOFTMLX5_FAULTS=faults, SOFTMLX5_VERBOSE="1",
        SOFTMLX5_DEVX="1" if MODES[mode][0] else "0",
        # gcc's sanitizer wants to be first, and need not be: the library replaces little of the C
        # library, and asks for the rest by name.
        ASAN_OPTIONS=":".join(filter(None, (sanitizers, "verify_asan_link_order=0"))))
    variables.update({key.upper(): value for key, value in more.items() if value is not None})
    return variables


def port(name, mode=DEFAULT, devargs=""):
    return ",".join(filter(None, (name, MODES[mode][1], devargs)))


def ports(mode=DEFAULT, devargs=""):
    return ("--port", port(RECEIVER, mode, devargs), "--tx-port", port(SENDER, mode, devargs),
            *DEVICE)


def modes(*names):
    """For a test with an argument `mode`: it runs in each of these, in `make check` in the default one only."""
    return e2e.pytest.mark.parametrize("mode", [
        e2e.pytest.param(name, marks=() if name == DEFAULT else e2e.pytest.mark.long) for name in names])


class Run:
    """A summary, and what the cards themselves counted."""

    def __init__(self, result):
        self.result = result
        self.summary = result.summary
        processes.check_summary(self.summary, result)
        self.frames = self.summary["frames"]
        self.lost_by = self.summary["lost_by"]
        self.causes = self.lost_by["causes"] if self.lost_by else None

    def card(self, number, counter):
        """A counter of the software card at the end, 0 where it was not told."""
        found = re.search(r"^softmlx5: mlx5_%d: %s (\d+)$" % (number, counter), self.result.err,
                          re.M)
        return int(found.group(1)) if found else 0

    def check(self, lost=0, damaged=0, duplicate=0, reordered=0, filtered=0, wrong=0, **causes):
        """Exactly these faults and these counts of the cards, and nothing unaccounted for."""
        e2e.check_identities(self.summary, self)
        sent = self.frames["sent"]
        wanted = {"damaged": damaged, "lost": lost, "duplicate": duplicate,
                  "reordered": reordered, "valid": sent - lost - damaged}
        found = {key: self.frames[key] for key in wanted}
        assert found == wanted, "counted %s, planted %s: %s" % (found, wanted, self)
        assert self.summary["filtered"] == filtered, self
        assert self.summary["bits"]["wrong"] == wrong, self
        assert self.lost_by["nic_missed"] == self.causes["out_of_buffer"], self
        seen = {**self.causes, **self.summary["sender"]["causes"]}
        assert sorted(seen) == sorted(CAUSES + SENDER_CAUSES), seen
        for cause in set(seen) - {"pause_sent", "pause_received", "wire_frames_sent",
                                  "wire_frames_received", "queue_error"}:
            # A card does not have each; what it has is exact.
            assert seen[cause] in (causes.get(cause, 0), None if cause not in causes else -1), (
                "%s: %s, not %d: %s" % (cause, seen[cause], causes.get(cause, 0), self))
        for cause in causes:
            assert seen[cause] == causes[cause], (cause, seen[cause], self)
        explained = sum(seen[cause] or 0 for cause in EXPLAIN)
        assert self.lost_by["unexplained"] == max(0, lost - explained), self
        return self

    def __str__(self):
        return "%s\n%s" % (json.dumps(self.summary, indent=1)[:6000], self.result)

    __repr__ = __str__


def run(command, *arguments, expect=0, env=None, **options):
    result = e2e.run(command, "--json", *arguments, expect=expect, env=env or environment(),
                     **options)
    done = Run(result)
    assert (done.summary["result"] == "pass") == (result.status == 0), done
    return done


def loopback(*arguments, count, mode=DEFAULT, faults=LOSSLESS, devargs="", expect=0, variables=None,
             sends_all=True, play=None, **options):
    """From the first card into the second, through memory that the CPU cannot read. play: others'
    frames, which `faults` puts on the cable."""
    with processes.folder() as directory:
        if play:
            path = pcapfile.write_pcap(os.path.join(directory, "play.pcap"), play)
            variables = {**(variables or {}), "softmlx5_play": path}
        done = run("loopback", "--quiet", "--frames", str(count), "--watchdog", "60",
                   "--quiet-time", QUIET, *ports(mode, devargs), *arguments, expect=expect,
                   env=environment(faults, mode, **(variables or {})), **options)
    assert done.frames is None or not sends_all or done.frames["sent"] == count, done
    if done.frames:
        assert [stage["state"] for stage in done.summary["stages"]] == ["passed"] * 8, done
    return done


def until(received, *arguments, mode=DEFAULT, faults=LOSSLESS, expect=3, **variables):
    """The same until so many frames came: for what happens in a run that a loaded machine may
    take any time for."""
    with processes.Running("loopback", "--quiet", "--frame-size", "64-1518", "--watchdog", "60",
                           "--seconds", "3600", "--quiet-time", QUIET, *ports(mode), *arguments,
                           env=environment(faults, mode, **variables)) as running:
        running.wait_for_frames("received", received)
        running.signal(signal.SIGINT)
        running.finish(expect)
        return Run(running.result())


# What a run says on a machine whose cores others have: nothing is wrong with it.
BUSY = re.compile("rate was not reached|did not catch up|with pause frames|sends again|had no core")


def perfect(*arguments, count, **options):
    """The same, every frame right, and put there by one rule of the card's."""
    done = loopback(*arguments, count=count, **options)
    e2e.check_perfect(done.summary, count)
    done.check()
    assert done.card(1, "soft_to_kernel") == 0, done
    assert done.summary["queue_restarts"] == 0, done
    assert [line for line in done.summary["messages"] if not BUSY.search(line)] == [], done
    return done


def change_faults(path, text):
    """Other faults for a run that looks at this file; at once, so that it never reads half of them. Returns the path."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text + "\n")
    os.replace(path + ".new", path)
    return path


def capture(frames, *arguments, mode=DEFAULT, faults=LOSSLESS, expect=0):
    """What a capture makes of these frames, which come once its rules are there. How many to wait
    for is among the arguments; silence ends only what fails."""
    with processes.folder() as directory:
        start = change_faults(os.path.join(directory, "faults"), "")
        path = pcapfile.write_pcap(os.path.join(directory, "play.pcap"), frames)
        variables = environment(faults, mode, softmlx5_faults_file=start, softmlx5_play=path)
        with processes.Running("capture", "--quiet", "--port", port(RECEIVER, mode), "--gpu",
                               "host", "--guard", "--seconds", "240", "--idle", "30", *arguments,
                               env=variables) as running:
            running.wait_until_running()
            change_faults(start, "0.play=1")
            running.finish(expect)
            done = Run(running.result())
    return done


class Faulty:
    """The program with faults of tests/faults instead, for a `with` block."""

    def __enter__(self):
        if not FAULTY:
            raise e2e.Skip("GDRCAP_FAULTY does not name the program of tests/faults")
        self.program, e2e.PROGRAM = e2e.PROGRAM, FAULTY
        return self

    def __exit__(self, *_):
        e2e.PROGRAM = self.program
