#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tells which slow tests of orderings must run again: those whose inputs changed since they last passed.

usage: check_orderings.py names | changed | status NAME | renew NAME... | check TEST...

tests/orderings.sums lists the inputs of each name below "[NAME]", in the format of sha256sum.

names    print every name
changed  print each name whose inputs changed
status   print the inputs of NAME that changed; exit status 1 if there are any
renew    record the inputs of each NAME as they are now; do it after its test passed
check    fail unless the file is well-formed and each TEST, a test of Meson's suite "orderings", is a name
"""
import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMS = ROOT / "tests/orderings.sums"
THREAD_MUTANTS = ("tests/unit/thread_mutants.py",)
# Name -> the files that its test compiles or runs. The headers that they include are added, less those of the library
# that order nothing: an interface's comment is no reason to run for minutes.
TESTS = {
    "front_mutants": ("tests/unit/test_front_mutants.py", "tests/unit/test_cq_front.c", "tests/unit/test_cq_worker.c",
                      "tests/unit/front_stubs.c", "lib/capture/cq_worker.c", *THREAD_MUTANTS),
    "sq_front_mutants": ("tests/unit/test_sq_front_mutants.py", "tests/unit/test_sq_front.c", *THREAD_MUTANTS),
    "send_gpu_mutants": ("tests/unit/test_send_gpu_mutants.py", "tests/unit/test_send_gpu.c",
                         "tests/unit/test_stream_count.c", "lib/send/send_gpu.c", *THREAD_MUTANTS),
    "wake_mutants": ("tests/unit/test_wake_mutants.py", "tests/unit/test_wake.c", "lib/base/wake.c", "lib/base/rest.c"),
}
# Other parts of the checks, which are no tests of Meson's.
PARTS = {
    # On another CPU: what has a barrier, an atomic access or code for that CPU.
    "arm64": ("scripts/cross.sh", "scripts/sysroot.sh", "tests/check_emulated.py"),
    # Kernels for every architecture: what nvcc compiles.
    "cuda_archs": ("kernels/meson.build", "kernels/cuda/*.cu", "app/bench/*.cu"),
}
NAMES = {**TESTS, **PARTS}
# Relaxed accesses alone order nothing.
ORDERED = re.compile(rb"__ATOMIC_(ACQ|REL[^A]|SEQ)|memory_order_(acq|rel[^a]|seq)|atomic_thread_fence|device_order"
                     rb"|rte_(io_|smp_)?[rw]?mb\b|__ARM|__aarch64__|RTE_ARCH")
ORDERED_ROOTS = ("lib", "kernels", "app")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
INCLUDE_ROOTS = ("lib", "lib/include", "", "app")
LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


def with_headers(files):
    """`files` and every header of the project that they include, in turn."""
    left, found = list(files), set()
    while left:
        path = left.pop()
        if path in found:
            continue
        found.add(path)
        if path.suffix == ".py":
            continue
        for name in INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
            for folder in (path.parent, *(ROOT / root for root in INCLUDE_ROOTS)):
                if (folder / name).is_file():
                    left.append((folder / name).resolve())
                    break
    return found


def ordered_files():
    return (path for root in ORDERED_ROOTS for path in (ROOT / root).rglob("*.[ch]")
            if ORDERED.search(path.read_bytes()))


def inputs(name):
    """Path from the root -> sum, of each input of `name`."""
    files = set()
    for pattern in NAMES[name]:
        matches = list(ROOT.glob(pattern))
        if not matches:
            raise SystemExit("%s: no file %s" % (name, pattern))
        files.update(matches)
    if name == "arm64":
        files.update(ordered_files())
    elif name == "cuda_archs":
        files.update(path for path in with_headers(files) if path.parent != ROOT / "lib/include" or path.suffix == ".cuh")
    else:
        files.update(path for path in with_headers(files)
                     if ROOT / "lib" not in path.parents or ORDERED.search(path.read_bytes()))
    return {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


def recorded():
    """Name -> path -> sum, as the file has it."""
    sums, name = {}, None
    for number, line in enumerate(SUMS.read_text(encoding="utf-8").splitlines(), 1):
        heading, entry = re.fullmatch(r"\[(\w+)\]", line), LINE.fullmatch(line)
        if heading:
            name = heading.group(1)
            sums[name] = {}
        elif entry and name:
            sums[name][entry.group(2)] = entry.group(1)
        elif line and not line.startswith("#"):
            raise SystemExit("%s:%d: neither [NAME] nor a line of sha256sum: %s" % (SUMS, number, line))
    return sums


def differences(name):
    """The inputs of `name` that were added, removed or changed."""
    before, now = recorded().get(name, {}), inputs(name)
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def renew(names):
    sums = recorded() if SUMS.exists() else {}
    sums.update((name, inputs(name)) for name in names)
    lines = ["# SPDX-License-Identifier: BSD-3-Clause",
             "# Inputs that each slow test last passed with. Written by tests/check_orderings.py renew NAME."]
    for name in NAMES:
        lines += ["", "[%s]" % name, *("%s  %s" % (sums[name][path], path) for path in sorted(sums.get(name, {})))]
    SUMS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def check(tests):
    """What is wrong with the file."""
    sums = recorded()
    wrong = ["%s has no [%s]" % (SUMS.name, name) for name in NAMES.keys() - sums.keys()]
    wrong += ["%s has [%s], which no check knows" % (SUMS.name, name) for name in sums.keys() - NAMES.keys()]
    wrong += ["[%s] names no input" % name for name, files in sums.items() if not files]
    wrong += ["%s, of suite \"orderings\", is not in check_orderings.py" % name for name in set(tests) - TESTS.keys()]
    wrong += ["no test of suite \"orderings\" is %s" % name for name in TESTS.keys() - set(tests)]
    for name in NAMES:
        inputs(name)  # ends where a file of the table is missing
    return sorted(wrong)


def main(command="", *names):
    wanted = {"names": names == (), "changed": names == (), "status": len(names) == 1, "renew": len(names) > 0,
              "check": True}
    if not wanted.get(command) or (command in ("status", "renew") and set(names) - NAMES.keys()):
        raise SystemExit(__doc__)
    if command == "names":
        print(*NAMES, sep="\n")
    elif command == "changed":
        print("".join(name + "\n" for name in NAMES if differences(name)), end="")
    elif command == "renew":
        renew(names)
    else:
        lines = differences(names[0]) if command == "status" else check(names)
        print("".join(line + "\n" for line in lines), end="")
        return 1 if lines else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
