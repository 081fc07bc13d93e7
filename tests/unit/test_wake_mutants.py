# SPDX-License-Identifier: BSD-3-Clause
"""Each fence of base/wake.h is needed: without it a wake-up is lost.

usage: test_wake_mutants.py ROOT COMPILER...

Builds tests/unit/test_wake.c with base/wake.c: once as they are, which passes, and once with each of these
changes, which does not. The play needs two CPUs at the same moment: a change that is not found on a machine
that had none to give is no failure of the test, so each is played until it is found, for TRIES times.

On x86 the locked instruction of ARM is a fence itself, so without its own fence nothing is lost there: that
one is looked for on other CPUs only.
"""
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

FILES = ("lib/base/wake.h", "lib/base/wake.c", "lib/base/rest.h", "lib/base/rest.c", "lib/base/clock.h",
         "tests/unit/nap.h", "tests/unit/test_long.h", "tests/unit/test_wake.c")
WAKE = "\telse\n\t\tatomic_thread_fence(memory_order_seq_cst);"
ARM = "\tatomic_thread_fence(memory_order_seq_cst);\n\treturn true;"
BARRIER = "\t\treturn membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;"
MUTANTS = {  # file, what stands there, what shall, the play that finds it
    "WAKE does not fence": ("lib/base/wake.h", WAKE, "", "fences"),
    "ARM has nobody fence": ("lib/base/wake.c", BARRIER, "\t\treturn true;", "membarriers"),
}
ELSEWHERE = {"ARM does not fence": ("lib/base/wake.c", ARM, "\treturn true;", "fences")}
TRIES = 5
PLAY_SECONDS, RIGHT_SECONDS = 30, 2
SECONDS = 120  # until it hangs


def build(root, compiler, folder, mutant):
    for name in FILES:
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        text = (root / name).read_text()
        if mutant and mutant[0] == name:
            assert text.count(mutant[1]) == 1, "no longer there, or twice: " + mutant[1]
            text = text.replace(mutant[1], mutant[2])
        to.write_text(text)
    program = folder / "test_wake"
    subprocess.run([*compiler, "-std=gnu17", "-O2", "-pthread", "-I", folder / "lib", "-I", folder / "tests/unit",
                    *(folder / name for name in FILES if name.endswith(".c")), "-lcmocka", "-o", program],
                   check=True)
    return program


def found(program, play, seconds=PLAY_SECONDS):
    """A lost wake-up shows as a sleep of 10 s."""
    done = subprocess.run(["timeout", str(SECONDS), program, play, str(seconds)], capture_output=True, text=True, check=False)
    return done.returncode != 0, done.stdout + done.stderr


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if len(os.sched_getaffinity(0)) < 2:
        print("one CPU: no two threads at once")
        return 77
    mutants = dict(MUTANTS, **(ELSEWHERE if platform.machine() != "x86_64" else {}))
    missed = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for play in ("fences", "membarriers"):
            wrong, text = found(build(root, compiler, scratch / "right", None), play, RIGHT_SECONDS)
            if wrong:
                print("FAIL: the unchanged program fails:", text)
                return 1
            if play == "membarriers" and "membarrier," not in text:
                print("the kernel has no membarrier(2): its play is left out")
                mutants = {name: mutant for name, mutant in mutants.items() if mutant[3] != play}
        for name, mutant in mutants.items():
            program = build(root, compiler, scratch / "mutant", mutant)
            if not any(found(program, mutant[3])[0] for _ in range(TRIES)):
                missed.append(name)
            print("%s: %s" % ("NOT FOUND" if name in missed else "found", name), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
