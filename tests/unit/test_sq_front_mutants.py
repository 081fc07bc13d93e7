# SPDX-License-Identifier: BSD-3-Clause
"""Each barrier and each check of a send queue without a driver is needed: without it a test fails.

usage: test_sq_front_mutants.py ROOT COMPILER...

Builds tests/unit/test_sq_front.c with the thread sanitizer: once as it is, which passes, and once with
each of these changes to port/sq_front.h, which does not: what stands there, what shall, and maybe the case that
finds it, where another hangs first.
"""
import functools
import pathlib
import subprocess
import sys

import thread_mutants

HEADER = "lib/port/sq_front.h"
FILES = (HEADER, "lib/base/device_order.h", "tests/unit/sq_card.h", "tests/unit/test_sq_front.c")
RECORD = """	__atomic_store_n(queue->record, sq_record(front), __ATOMIC_RELEASE);
	front->rings++;
	if (!queue->bell)
		return;
	/* RUNG: the record before the register. Partner: the card, which the register wakes. */
	device_order_register();
	__atomic_store_n(queue->bell, front->bell, __ATOMIC_RELAXED);
	device_order_register(); /* now, not when the buffer is full */
"""
SWAPPED = """	__atomic_store_n(queue->bell, front->bell, __ATOMIC_RELAXED);
	device_order_register();
	front->rings++;
	__atomic_store_n(queue->record, sq_record(front), __ATOMIC_RELEASE);
"""
MUTANTS = {
    "POSTED: the record is relaxed": ("sq_record(front), __ATOMIC_RELEASE", "sq_record(front), __ATOMIC_RELAXED"),
    "RUNG: the register before the record": (RECORD, SWAPPED),
    "RUNG: no register": ("	__atomic_store_n(queue->bell, front->bell, __ATOMIC_RELAXED);\n", ""),
    "SENT: the completion is relaxed": (
        "(sq_cqe_at(front) + SQ_CQE_LAST),\n					      __ATOMIC_ACQUIRE);",
        "(sq_cqe_at(front) + SQ_CQE_LAST),\n					      __ATOMIC_RELAXED);"),
    "the record is not big-endian": ("return sq_be32((uint32_t)(front->posted & 0xffff));",
                                     "return (uint32_t)(front->posted & 0xffff);"),
    "any counter is believed": (" && counter == mark->counter", ""),
    "any queue's completion": ("number == front->queue.number &&\n", "1 &&\n"),
    "any kind of completion": ("opcode == SQ_CQE_SENT &&", "1 &&"),
    "compressed completions": ("(owner & 0xc) == 0", "1"),
    "a completion without a mark": ("front->seen != front->marks && ", ""),
    "the owner bit is not looked at": ("(owner & 1) == (front->cqe & front->queue.cqes ? 1u : 0u)", "1"),
    "the owner bit is inverted": ("front->queue.cqes ? 1u : 0u", "front->queue.cqes ? 0u : 1u"),
    "an entry that is not there": ("owner >> 4 != SQ_CQE_INVALID &&\n", "1 &&\n"),
    "the completion queue may overrun": (" &&\n	       front->marks - front->seen < "
                                         "sq_marks_max(&front->queue);", ";"),
    "the ring may overrun": ("(front->posted - front->freed) >= sq_blocks(count, each)",
                             "(front->posted - front->freed) + 1 >= sq_blocks(count, each)"),
    "an entry does not wrap": ("((uint32_t)block * SQ_BLOCK + at) & (queue->blocks * SQ_BLOCK - 1)",
                               "(((uint32_t)block & (queue->blocks - 1)) * SQ_BLOCK + at)"),
    "the index has more than 16 bits": ("(uint32_t)(block & 0xffff) << 8", "(uint32_t)block << 8",
                                        "test_places"),
    "an entry too long": ("#define SQ_MULTI_MAX 60u", "#define SQ_MULTI_MAX 62u"),
    "nothing is marked for want of slots": (
        "front->frames_unmarked + count >= front->queue.mark_frames ||\n", "0 ||\n"),
    "the bell names the burst's start": (
        "const uint64_t last = front->posted + sq_entry_block(each, entries - 1);",
        "const uint64_t last = front->posted;"),
    "slots given up stay out": ("	front->sent = front->frames;\n	front->posted = 0;", "	front->posted = 0;"),
    "a mark of before the reset counts": ("	front->seen = front->marks;\n	front->bursts", "	front->bursts"),
    "a failed queue takes more": ("front->state == SQ_RUNS &&\n", "1 &&\n"),
}


def build_and_run(root, compiler, folder, mutant):
    thread_mutants.copy(root, FILES, folder, mutant and (HEADER, *mutant[:2]))
    program = folder / "program"
    subprocess.run([*compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-fsanitize=thread,undefined"
                    if not mutant else "-fsanitize=thread", "-I", folder / "lib",
                    folder / "tests/unit/test_sq_front.c", "-lcmocka", "-pthread", "-o", program],
                   check=True)
    return thread_mutants.run(program, "20000", mutant, mutant[2] if mutant and len(mutant) > 2 else None)


def main(root, *compiler):
    return thread_mutants.main(compiler, MUTANTS,
                               functools.partial(build_and_run, pathlib.Path(root), compiler))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
