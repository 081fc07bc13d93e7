# SPDX-License-Identifier: BSD-3-Clause
"""Each barrier and each check of a front is needed: without it a test fails.

usage: test_front_mutants.py ROOT BUILD COMPILER...

Builds tests/unit/test_cq_worker.c and test_cq_front.c with the front's sources and the thread sanitizer:
once as they are, which passes, and once with each of these changes, which does not. BUILD: where
compile_commands.json says how the library is built.

A change is (file, what stands there, what shall), and maybe the case of test_cq_worker.c that finds it: where the
first that fails would come late, or the other program cannot fail.
"""
import functools
import json
import pathlib
import shlex
import subprocess
import sys

import thread_mutants

FRONT = "lib/capture/cq_front.h"
WORKER = "lib/capture/cq_worker.c"
STEPS = "lib/capture/rx_worker_steps.h"
RING = "lib/capture/burst_ring.h"
FILES = (FRONT, WORKER, STEPS, RING, "lib/capture/cq_worker.h", "lib/capture/ring_producer.h",
         "lib/capture/rx_worker.h", "tests/unit/front_play.h",
         "tests/unit/front_stubs.c", "tests/unit/nap.h", "tests/unit/test_cq_front.c",
         "tests/unit/test_cq_worker.c", "tests/unit/test_long.h")
PROGRAMS = {"cq_front": ["tests/unit/test_cq_front.c"],
            "cq_worker": ["tests/unit/test_cq_worker.c", "tests/unit/front_stubs.c", WORKER]}
MUTANTS = {
    "ARRIVED: a completion's last word is loaded relaxed": (
        FRONT, "(const void *)(cqe + CQ_TAIL_AT),\n\t\t\t\t\t      __ATOMIC_ACQUIRE",
        "(const void *)(cqe + CQ_TAIL_AT),\n\t\t\t\t\t      __ATOMIC_RELAXED", "every_loop"),
    "PUBLISH: the ready word is stored relaxed": (
        RING, "__atomic_store_n(&ready->word, word, __ATOMIC_RELEASE)",
        "__atomic_store_n(&ready->word, word, __ATOMIC_RELAXED)"),
    "FREE: the done word is loaded relaxed": (
        RING, "__atomic_load_n(&result->done, __ATOMIC_ACQUIRE)",
        "__atomic_load_n(&result->done, __ATOMIC_RELAXED)"),
    "LEASE: `collected` is loaded relaxed": (
        WORKER, "&ring->collected, memory_order_acquire", "&ring->collected, memory_order_relaxed", "a_consumer_that_stands"),
    "LEASE is not asked for": (WORKER, "if (accounted) {", "if (0) {", "a_consumer_that_stands"),
    "REPOST: the record is stored relaxed": (
        FRONT, "cq_record(posted), __ATOMIC_RELEASE", "cq_record(posted), __ATOMIC_RELAXED", "every_loop"),
    "REPOST before FREE": (WORKER, "cq->queue.slots + cq_back(cq, ring);",
                           "cq->queue.slots + cq_next(cq, ring);"),
    "ROOM is not asked for": (FRONT, "return burst - collected < bursts;", "return 1;"),
    "ROOM: one burst too many": (FRONT, "burst - collected < bursts;", "burst - collected <= bursts;"),
    "PHASE: the pause is stored relaxed": (
        STEPS, "&worker->paused, 1, memory_order_release", "&worker->paused, 1, memory_order_relaxed", "reset_of_one_that_runs"),
    "PHASE: the phase is loaded relaxed": (
        STEPS, "&worker->phase, memory_order_acquire", "&worker->phase, memory_order_relaxed", "pauses"),
    "the stop's reason comes after it": (
        WORKER, "&cq->state, CQ_STOPPED, memory_order_release", "&cq->state, CQ_STOPPED, memory_order_relaxed", "stops"),
    "the record is not byte-swapped": (FRONT, "return cq_swap32(posted & 0xffff);", "return posted & 0xffff;"),
    "the record has more than 16 bits": (FRONT, "cq_swap32(posted & 0xffff)", "cq_swap32(posted)"),
    "the completion queue is half as long": (
        FRONT, "return (index & (cq_entries - 1)) * CQ_BYTES;",
        "return (index & (cq_entries / 2 - 1)) * CQ_BYTES;"),
    "the owner is inverted": (FRONT, "return (index & cq_entries) != 0;", "return (index & cq_entries) == 0;"),
    "the owner is not looked at": (FRONT, "#define CQ_TAIL_MASK 0xfd00ffffu", "#define CQ_TAIL_MASK 0xfc00ffffu"),
    "any order is believed": (FRONT, "#define CQ_TAIL_MASK 0xfd00ffffu", "#define CQ_TAIL_MASK 0xfd000000u"),
    "any length is believed": (FRONT, "return length - 1 < slot_bytes;", "return 1;"),
    "more than was posted is believed": (
        WORKER, "RTE_MIN(RTE_MIN(ring_room(ring), left), to_end)", "RTE_MIN(ring_room(ring), to_end)", "more_than_posted"),
    "the queue's end is passed over": (
        WORKER, "RTE_MIN(RTE_MIN(ring_room(ring), left), to_end)", "RTE_MIN(ring_room(ring), left)", "stops_of_strides"),
    "slots are posted anew before all are back": (
        WORKER, "cq->posts_anew && ring->tail == ring->head", "cq->posts_anew",
        "reset_of_one_that_runs"),
    "old completions stay for the queue that was reset": (
        WORKER, "\tif (n)\n\t\treturn n;\n", "", "stops"),
    "work entries go on where the reset found them": (WORKER, "cq->base = worker->ring.head;\n\tcq->posts",
                                                      "cq->posts", "stops"),
    "a frame that control takes leaves its work entry behind": (WORKER, "\tcq->base--;\n", "", "taken_past_the_ring"),
    "a stopped front posts": (WORKER, " &&\n\t    !cq->stopped)", ")", "more_than_posted"),
    "strides: another work entry is believed": (
        FRONT, "if (!cq_entry_is(cq_load32(cqe + CQ_ENTRY_AT), next, slots, shift))", "if (0)"),
    "strides: several of them, and fillers, are frames": (
        FRONT, "return byte_cnt - (stride_shift ? CQ_STRIDE : 0);",
        "return stride_shift ? byte_cnt & 0xffff : byte_cnt;"),
    "strides: a work entry goes back with its first slot": (
        FRONT, "return back >> stride_shift << stride_shift;",
        "return (back + (1u << stride_shift) - 1) >> stride_shift << stride_shift;"),
    "strides: the record counts slots": (
        WORKER, "cq->posted >> cq->queue.stride_shift", "cq->posted"),
    "strides: a filler is a lost frame": (FRONT, " && kind != CQ_FILLER;", ";", "stops_of_strides"),
    "a burst waits although the consumer has nothing": (
        WORKER, "return ring->burst == ring->reclaimed ||\n\t       (came == 0 &&",
        "return (came == 1 &&", "taken_past_the_ring"),
}


def flags_of(build):
    """How the library's own file is compiled, but for what it is compiled to."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"].endswith(WORKER) and "core" in entry["output"]:
            break
    else:
        raise SystemExit("compile_commands.json has no " + WORKER)
    words, flags = shlex.split(entry["command"]), []
    at = pathlib.Path(entry["directory"])
    for i, word in enumerate(words):
        if word in ("-isystem", "-include"):
            flags += [word, words[i + 1]]
        elif word.startswith("-I"):
            flags.append("-I" + str((at / word[2:]).resolve()))
        elif word.startswith(("-isystem", "-D", "-march")):
            flags.append(word)
    return flags


def build_and_run(root, compiler, flags, folder, mutant):
    thread_mutants.copy(root, FILES, folder, mutant and mutant[:3])
    status, told = 0, ""
    case = mutant[3] if mutant and len(mutant) > 3 else None
    # First the program that is about the file which is changed; a case is of the other one.
    first = "cq_front" if mutant and mutant[0] == FRONT else "cq_worker"
    for name, sources in [("cq_worker", PROGRAMS["cq_worker"])] if case else sorted(
            PROGRAMS.items(), key=lambda program: program[0] != first):
        program = folder / name
        subprocess.run([*compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-fsanitize=thread",
                        "-Wno-unused-parameter", "-I", folder / "lib", *flags,
                        *[folder / source for source in sources], "-lcmocka", "-pthread", "-o", program],
                       check=True)
        code, text = thread_mutants.run(program, "4000", mutant, case)
        status |= code
        told += text
        if status:
            break
    return status, told


def main(root, build, *compiler):
    return thread_mutants.main(compiler, MUTANTS, functools.partial(
        build_and_run, pathlib.Path(root), compiler, flags_of(pathlib.Path(build))))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
