# SPDX-License-Identifier: BSD-3-Clause
"""Receive queues of our own, polled by fronts on a GPU (--rx-by gpu), on two ConnectX cards, which are software.
The GPU is played by CPU threads (softmlx5/front_thread.c); its memory the session's own threads cannot touch, so one that
looked at a ring or a frame would end the program."""
import os
import signal

import connectx
import e2e
import processes
import test_own_rx as own

FEW = own.FEW
MANY = processes.scaled(300000, 50000)

PROGRAM = os.environ["GDRCAP_FRONTED"]
PATCHES = ((own, "WHO", "gpu"), (own, "MANY", MANY))

# What a card or a cable does is the same to either kind of front.
test_million = own.test_million
test_few_slots = own.test_few_slots
test_cable = own.test_cable
test_lost_in_the_card = own.test_lost_in_the_card
test_receive_error = own.test_receive_error
test_broken_order = own.test_broken_order
if e2e.LONG:
    test_queues = own.test_queues
    test_sizes = own.test_sizes
    test_stale_check = own.test_stale_check
    test_saved = own.test_saved
    test_dma_flips_a_bit = own.test_dma_flips_a_bit
    test_late_completions = own.test_late_completions
    test_stale_is_told_from_damage = own.test_stale_is_told_from_damage
    test_wrong_owner = own.test_wrong_owner
    test_first_frame_in_error = own.test_first_frame_in_error
    test_receive_error_while_frames_are_held = own.test_receive_error_while_frames_are_held
    test_revoked_key = own.test_revoked_key
    test_a_card_that_makes_no_queue = own.test_a_card_that_makes_no_queue


def running(*arguments, faults=connectx.LOSSLESS, **variables):
    return processes.Running("loopback", "--quiet", "--watchdog", "60", "--seconds", "3600", "--quiet-time", connectx.QUIET,
                             *own.sizes(), *connectx.ports(), *arguments,
                             env=connectx.environment(faults, **variables))


def threads_of(process):
    folder = "/proc/%d/task" % process.pid
    names = []
    for task in os.listdir(folder):
        try:
            with open(os.path.join(folder, task, "comm"), encoding="ascii") as file:
                names.append(file.read().strip())
        except FileNotFoundError:  # it has ended meanwhile
            pass
    return names


# ---- no CPU in the path ----

def test_no_receiver_thread():
    """Of the CPU's threads none receives, and Ctrl-C ends fronts as everything else."""
    with running("--queues", "2") as run:
        run.wait_for_frames("received", FEW)
        names = threads_of(run.process)
        run.signal(signal.SIGINT)
        run.finish(0)
    assert names.count("gpu-front") == 2 and "gdrcap-acct" in names, names
    assert not [name for name in names if name.startswith("gdrcap-rx")], names
    done = connectx.Run(run.result())
    e2e.check_perfect(done.summary)


def test_strides():
    """Work entries of several slots, which go back whole, also where a front goes on in the midst of one."""
    connectx.perfect(*own.sizes(), "--rx-strides", "64", count=MANY)
    done = connectx.until(FEW, *own.by(), "--frame-size", "82-1518", "--rx-strides", "64", "--queues", "2",
                          "--streams", "16", "--format", "udp", "--rate", "20kpps",
                          faults=connectx.LOSSLESS + ",1.rx_error=3000/12000/2")
    e2e.check_identities(done.summary, done)
    assert done.frames["damaged"] == 0 and done.summary["queue_restarts"] >= 2, done
    assert done.lost_by["unexplained"] == 0, done


def test_slow_accountant():
    """ROOM: a verdict that nobody has read is not overwritten, however long that takes; the card waits."""
    connectx.perfect(*own.sizes(), "--pool", "16M", "--descriptors", "256", "--burst", "4", count=2 * FEW,
                     variables={"fronted_slow_us": "20000"})


def test_error_in_one_of_several():
    """The kernel ends as a whole: the queues that were not in error lose nothing by it."""
    done = connectx.until(FEW, *own.by(), "--queues", "4", "--streams", "16", "--format", "udp",
                          "--frame-size", "82-1518", "--rate", "20kpps",
                          faults=connectx.LOSSLESS + ",1.rx_error=5000/6000/2")
    e2e.check_identities(done.summary, done)
    assert done.frames["damaged"] == 0 and done.summary["queue_restarts"] == 2, done
    assert done.lost_by["nic_error"] == done.frames["lost"] and done.lost_by["nic_missed"] == 0, done


# ---- a front that goes wrong ----

def test_front_dies():
    """As a kernel with a fault in it does: it is said, and the run ends."""
    done = connectx.loopback(*own.sizes(), "--rate", "20kpps", count=FEW, expect=3, sends_all=False,
                             variables={"fronted_dies": "100"})
    assert "made to die" in processes.messages(done.summary), done
    assert done.frames["damaged"] == 0, done


def test_front_hangs():
    """It takes nothing any more, and does not end when it is told to: what came meanwhile counts as lost, and the run
    ends all the same."""
    done = connectx.loopback(*own.sizes(), "--rate", "20kpps", count=FEW, expect=3, sends_all=False,
                             faults="", variables={"fronted_hangs": "100"})
    assert done.frames["damaged"] == 0 and done.frames["lost"] > 0, done
    assert "receivers take nothing any more" in processes.messages(done.summary), done


# ---- what is refused ----

def test_refused():
    def refused(*arguments, text, expect=1, **variables):
        done = connectx.run("loopback", "--frames", "100", *connectx.ports(), *own.by(), *arguments,
                            expect=expect, env=connectx.environment(**variables))
        told = " ".join(done.summary["errors"])
        assert text in told, told

    refused("--burst", "48", text="a power of two", expect=2)
    refused("--flush", "host", text="publishes without the CPU")
    refused(text="does not say that it orders", fronted_ordering="0")
    connectx.perfect(*own.sizes(), "--flush", "none", count=1000, variables={"fronted_ordering": "0"})
