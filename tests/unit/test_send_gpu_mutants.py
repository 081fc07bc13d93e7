# SPDX-License-Identifier: BSD-3-Clause
"""Each barrier and each check between a running kernel, or a stream, and its send queue is needed: without it a test fails.

usage: test_send_gpu_mutants.py ROOT COMPILER...

Builds tests/unit/test_send_gpu.c, and test_stream_count.c for what is that file's, with the thread sanitizer: once as
they are, which passes, and once with each of these changes, which does not.
"""
import functools
import pathlib
import subprocess
import sys

import thread_mutants

DEVICE = "lib/include/gdrcap_device_tx.cuh"
RING = "lib/send/send_gpu.c"
COUNT = "lib/base/stream_count.h"
FILES = (DEVICE, RING, COUNT, "tests/unit/test_stream_count.c", "lib/send/send_gpu.h", "tests/unit/send_litmus.h", "tests/unit/test_send_gpu.c",
         "tests/unit/nap.h", "tests/unit/test_long.h", "lib/base/clock.h")
MUTANTS = {
    "ROOM: the kernel's load is relaxed": (DEVICE, "__atomic_load_n(tx.room, __ATOMIC_ACQUIRE)",
                                           "__atomic_load_n(tx.room, __ATOMIC_RELAXED)"),
    "ROOM: the worker's add is relaxed": (RING, "gpu->given - gpu->told, __ATOMIC_RELEASE",
                                          "gpu->given - gpu->told, __ATOMIC_RELAXED"),
    "SUBMIT: the kernel's store is relaxed": (DEVICE, "submitted, __ATOMIC_RELEASE",
                                              "submitted, __ATOMIC_RELAXED"),
    "SUBMIT: the worker's load is relaxed": (RING, "gpu->submitted, __ATOMIC_ACQUIRE",
                                             "gpu->submitted, __ATOMIC_RELAXED"),
    "STOP: a store of room takes it back": (
        RING, "__atomic_fetch_add(gpu->room, gpu->given - gpu->told, __ATOMIC_RELEASE)",
        "__atomic_store_n(gpu->room, gpu->given, __ATOMIC_RELEASE)"),
    "any count is believed": (RING, "if (*count <= gpu->told - gpu->accepted)", "if (*count != ~UINT64_C(0))"),
    "slots are room before they are told": (RING, "*count <= gpu->told - gpu->accepted",
                                            "*count <= gpu->given - gpu->accepted"),
    "an old length stays": (RING, "__atomic_store_n(&gpu->bytes[at], 0, __ATOMIC_RELAXED);", ""),
    "fewer entries than slots": (RING, "while (depth < slots)", "while (2 * depth < slots)"),
    "whom a slot had before": (RING, "gpu->last[slot] = ++gpu->accepted;",
                               "gpu->last[slot] = gpu->accepted++;"),
    "a number that is not the queue's": (DEVICE, "if (room > tx.count || max <= 0)",
                                         "if (max <= 0)"),
    "LATE: before the end, too": (
        RING, """ ||
	    !(__atomic_load_n(gpu->room, __ATOMIC_RELAXED) & SEND_GPU_STOP))""", ")"),
    "LATE: of a running kernel, too": (RING, "!send_gpu_is_by_stream(gpu) || ", ""),
    "LATE: fewer than before, too": (RING, " || *count >= SEND_GPU_STOP", ""),
    "LATE: all that it says": (RING, "*count = gpu->told - gpu->accepted;", ""),
    "COUNT: the add is relaxed": (COUNT, "n, __ATOMIC_RELEASE", "n, __ATOMIC_RELAXED"),
    "COUNT: a store takes the end back": (
        COUNT, "__atomic_fetch_add(word, n, __ATOMIC_RELEASE)",
        "__atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) + n, __ATOMIC_RELEASE)"),
    "ENOUGH: the bit is set before what it says": (COUNT, "STREAM_COUNT_ENOUGH, __ATOMIC_RELEASE",
                                                   "STREAM_COUNT_ENOUGH, __ATOMIC_RELAXED"),
    "ENOUGH: another bit": (COUNT, "(UINT64_C(1) << 62)", "(UINT64_C(1) << 63)"),
    "the comparison is not cyclic": (COUNT, "(int64_t)(word - least) >= 0", "word > least"),
}


def build_and_run(root, compiler, folder, mutant):
    thread_mutants.copy(root, FILES, folder, mutant)
    program = folder / "program"
    counts = mutant and mutant[0] == COUNT or folder.name == "count"
    subprocess.run([*compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-fsanitize=thread",
                    "-I", folder / "lib/include", "-I", folder / "lib", "-I", root / "lib/include",
                    *([folder / "tests/unit/test_stream_count.c"] if counts else
                      [folder / "tests/unit/test_send_gpu.c", folder / RING]), "-lcmocka", "-pthread",
                    "-o", program], check=True)
    return thread_mutants.run(program, "20000", mutant)


def main(root, *compiler):
    return thread_mutants.main(compiler, MUTANTS,
                               functools.partial(build_and_run, pathlib.Path(root), compiler),
                               ("right", "count"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
