# SPDX-License-Identifier: BSD-3-Clause
"""What clang-tidy or cppcheck say of the product: nothing. Which checks: .clang-tidy, and below.

usage: check_lint.py clang-tidy|cppcheck ROOT BUILD

Another version finds other things, so these are what Debian 12 has.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

TOPS = ("app", "lib", "kernels")
CPPCHECK = "Cppcheck 2.10"
# The one system header whose macros make no sense unread.
QUEUE = ("/usr/include/x86_64-linux-gnu/sys/queue.h", "/usr/include/sys/queue.h")
SUPPRESSED = ("missingInclude", "unknownMacro", "duplicateAssignExpression",
              "invalidPrintfArgType_uint",  # a uint16_t for %u
              "nullPointerRedundantCheck:lib/base/log.c")  # *at, not at, may be NULL


def run(command, root):
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout if done.stdout.strip() else done.stderr


def clang_tidy(root, build):
    files = {str(pathlib.Path(entry["directory"], entry["file"]).resolve())
             for entry in json.loads((build / "compile_commands.json").read_text())}
    ours = sorted(file for file in files if file.endswith(".c") and os.path.exists(file) and
                  pathlib.Path(file).relative_to(root).parts[0] in TOPS
                  if file.startswith(str(root) + "/"))
    assert ours, build
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda file: run(
            ["clang-tidy-14", "-p", str(build), "--quiet", file], root), ours))
    return [text for status, text in answers if status]


def cppcheck(root, _):
    status, text = run(["cppcheck", "-j%u" % os.cpu_count(), "--quiet", "--std=c11", "--error-exitcode=1",
                        "--enable=warning,portability,performance", "-D__x86_64__",
                        "-Iapp", "-Ilib", "-Ilib/include", "-I.", *("--include=" + path for path in QUEUE if os.path.exists(path)),
                        *("--suppress=" + name for name in SUPPRESSED), *TOPS], root)
    return [text] if status or "error:" in text else []


def main(tool, root, build):
    if tool == "clang-tidy" and not shutil.which("clang-tidy-14"):
        print("clang-tidy-14 is not installed: scripts/setup.sh check-sanitized")
        return 77
    if tool == "cppcheck" and (not shutil.which(tool) or
                               run([tool, "--version"], root)[1].strip() != CPPCHECK):
        print("%s is not installed: scripts/setup.sh check-sanitized" % CPPCHECK)
        return 77
    wrong = (clang_tidy if tool == "clang-tidy" else cppcheck)(root, build)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()))
