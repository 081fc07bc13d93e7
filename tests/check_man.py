# SPDX-License-Identifier: BSD-3-Clause
"""The man pages: each command has one with each of its options, the configuration's has each key, and mandoc likes them.

usage: check_man.py ROOT PROGRAM FOLDER
"""
import pathlib
import re
import shutil
import subprocess
import sys


def output(*command):
    return subprocess.run(command, text=True, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout


def check_options(program, folder):
    commands = [word for word in output(program, "--complete").split() if not word.startswith("-")]
    assert sorted(path.name for path in folder.glob("gdrcap*.[15]")) == sorted(
        ["gdrcap.1", "gdrcap.yaml.5", *("gdrcap-%s.1" % command for command in commands)])
    for command in commands:
        page = (folder / ("gdrcap-%s.1" % command)).read_text()
        shown = {"--" + name.replace("\\-", "-") for line in re.findall(r"^\.It (Fl .*)", page, re.M)
                 for name in re.findall(r"Fl \\-(\S+)", line)}
        options = {line.split()[0] for line in output(program, command, "--complete").splitlines()} - {"-"}
        assert shown == options, "gdrcap-%s.1: %s" % (command, sorted(shown ^ options))
        assert ".Sh EXIT STATUS" in page and page.count(".It 0\n") == 1, command


def check_keys(root, folder):
    """Its table is the option table's, says test_config."""
    keys = re.findall(r"^\| `([a-z0-9_.]+)` \| (?:`--|no flag)", (root / "docs" / "configuration.md").read_text(), re.M)
    page = (folder / "gdrcap.yaml.5").read_text()
    assert len(keys) > 60 and re.findall(r"^\.It Cm (\S+)", page, re.M) == keys, keys


def main(root, program, folder):
    check_options(program, folder)
    check_keys(root, folder)
    if not shutil.which("mandoc"):
        print("the pages have all options; mandoc is not installed, so how they are written was not checked")
        return 77
    said = subprocess.run(["mandoc", "-Tlint", *sorted(map(str, folder.glob("gdrcap*.[15]")))], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.splitlines()
    # Pages of ours, which are not installed yet.
    bad = [line for line in said if not (other := re.search(r"referenced manual not found: Xr (\S+) (\d)$", line))
           or not (folder / ("%s.%s" % other.groups())).exists()]
    assert not bad, "\n".join(bad)
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve()), pathlib.Path(sys.argv[3])))
