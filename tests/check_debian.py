# SPDX-License-Identifier: BSD-3-Clause
"""debian/: its version is the header's, and each test that it names is there.

usage: check_debian.py ROOT
"""
import pathlib
import re
import sys


def check_version(root):
    version = re.search(r'^#define GDRCAP_VERSION "(.*)"$', (root / "lib/include/gdrcap.h").read_text(), re.M).group(1)
    packaged = re.match(r"gdrcap \(([^)]*)-[^-)]*\)", (root / "debian/changelog").read_text()).group(1)
    assert packaged == version, "debian/changelog has %s, gdrcap.h %s" % (packaged, version)


def check_tests(root):
    named = set(re.findall(r"^Tests: (.*)$", (root / "debian/tests/control").read_text(), re.M))
    there = {path.name for path in (root / "debian/tests").iterdir()} - {"control"}
    assert named == there, named ^ there


def main(root):
    check_version(root)
    check_tests(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
