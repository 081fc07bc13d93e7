# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of mutants share: sources with one change each, built with the thread sanitizer and run."""
import concurrent.futures
import os
import pathlib
import subprocess
import tempfile

AGAIN = 3  # times that a mutant which no test found is run once more


def copy(root, files, folder, mutant):
    """`files` of `root` into `folder`; `mutant`: None, or (file, what stands there once, what shall)."""
    for name in files:
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        text = (root / name).read_text()
        if mutant and mutant[0] == name:
            assert text.count(mutant[1]) == 1, "no longer there, or twice: " + mutant[1]
            text = text.replace(mutant[1], mutant[2])
        to.write_text(text)


# Until a program is said to hang: all of its cases, or one of them, which takes a second at most.
SECONDS, CASE_SECONDS, RIGHT_SECONDS = 60, 10, 600
CASE_RUNS = 20  # of a mutant that passes: one of them shows in a third of the runs of its case


def run(program, argument, mutant, case=None):
    """Its exit status, 124 where it hangs (a mutant may wait for what never comes), and what it printed.

    It ends at the first failure: what a mutant did wrong once, later tests would wait for. `case`: the only one
    that is run, again and again until it fails; None: all, once."""
    seconds = (CASE_SECONDS if case else SECONDS) if mutant else RIGHT_SECONDS
    for _ in range(CASE_RUNS if case else 1):
        done = subprocess.run(["timeout", str(seconds), program, argument, *([case] if case else [])],
                              env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1", "CMOCKA_TEST_ABORT": "1",
                                   "TEST_LONG": "1"},
                              capture_output=True, text=True, check=False)
        if done.returncode:
            break
    return done.returncode, done.stdout + done.stderr


def has_sanitizer(compiler, scratch):
    probe = scratch / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    build = [*compiler, "-fsanitize=thread", probe, "-o", scratch / "probe"]
    return all(subprocess.run(command, capture_output=True, check=False).returncode == 0
               for command in (build, [scratch / "probe"]))


def main(compiler, mutants, build_and_run, rights=("right",)):
    """build_and_run(folder, mutant) returns what run() does: 0 without a mutant, in folders of each name of
    `rights`, and something else with each of `mutants` (a dictionary)."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        if not has_sanitizer(compiler, scratch):
            print("no thread sanitizer for", *compiler)
            return 77
        for right in rights:
            status, text = build_and_run(scratch / right, None)
            if status:
                print("FAIL: the unchanged program fails:", text)
                return 1
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda i: build_and_run(
                scratch / str(i), list(mutants.values())[i])[0], range(len(mutants))))
        # A core that other things kept busy may have shown no order but one: once more, one by one.
        for i, mutant in enumerate(mutants.values()):
            for again in range(AGAIN):
                found[i] = found[i] or build_and_run(scratch / ("%u-%u" % (i, again)), mutant)[0]
    for name, status in zip(mutants, found):
        print("%s: %s" % ("found" if status else "NOT FOUND", name))
    return 0 if all(found) else 1
