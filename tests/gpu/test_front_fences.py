# SPDX-License-Identifier: BSD-3-Clause
"""Which of the GPU front's fences a GPU can do without, and nobody sees it: a report, not a verdict.

usage: test_front_fences.py NAME=PROGRAM...

Each program is test_front_cuda with a front without one fence, or with a relaxed store for a release
(front_mutant.py). On a CPU the thread sanitizer shows that each ordering is needed, of the front in C
(tests/unit/test_front_mutants.py); PTX has no such tool, and a GPU that happens to keep the order runs
the mutants without a fault. So this fails only where a program cannot be run. On a machine with a GPU:

    ninja -C build gpu-tests && meson test -C build --no-rebuild --verbose front_fences
"""
import subprocess
import sys

FRAMES = "3000000"  # ten times the test's own
SECONDS = 180       # of a mutant that waits for what never comes
SKIP = 77


def run(program):
    """Its exit status, and its last line; 124 when it did not end."""
    try:
        done = subprocess.run([program, FRAMES], timeout=SECONDS, capture_output=True, text=True,
                              check=False)
    except subprocess.TimeoutExpired:
        return 124, "did not end"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


def main(*arguments):
    for argument in arguments:
        name, program = argument.split("=", 1)
        status, line = run(program)
        if status == SKIP:
            print(line)
            return SKIP
        if status in (126, 127):
            print("FAIL: %s: %s" % (program, line))
            return 1
        print("%s: %s (%s)" % (name, "seen" if status else "NOT SEEN on this GPU", line))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
