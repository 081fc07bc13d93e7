# SPDX-License-Identifier: BSD-3-Clause
"""Every C and CUDA file is as .clang-format has it; version 14, since another breaks lines elsewhere.

usage: check_format.py ROOT
"""
import pathlib
import shutil
import subprocess
import sys

FORMAT = "clang-format-14"


def main(root):
    if not shutil.which(FORMAT):
        print("%s is not installed: scripts/setup.sh check installs it where there is one" % FORMAT)
        return 77
    files = [path for top in ("app", "lib", "kernels", "python", "tests")
             for path in sorted((root / top).rglob("*")) if path.suffix in (".c", ".h", ".cu", ".cuh")]
    assert files, root
    done = subprocess.run([FORMAT, "--dry-run", "-Werror", *files], check=False)
    if done.returncode:
        print("%s -i FILE... mends the files above" % FORMAT)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
