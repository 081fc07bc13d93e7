# SPDX-License-Identifier: BSD-3-Clause
"""deploy/systemd: the unit is one, gives away no more than it should, and lets OnFailure= see lost data.

usage: check_systemd.py ROOT PROGRAM
"""
import configparser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EXPOSURE = 4.0  # at most, of 10
UNIT = "gdrcap-capture@.service"
# A right more is a decision of whoever writes it here too.
RIGHTS = {"CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_IPC_LOCK", "CAP_SYS_RAWIO"}


def check_text(text):
    unit = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    unit.optionxform = str
    unit.read_string(text)
    service = unit["Service"]
    assert service["Type"] == "notify" and int(service["WatchdogSec"]) > 0, service
    assert "SuccessExitStatus" not in service and set(service["RestartPreventExitStatus"].split()) == {"2", "3"}
    for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        assert set(service[key].split()) == RIGHTS, (key, service[key])
    assert service["LimitMEMLOCK"] == "infinity" and service["NoNewPrivileges"] == "yes"


def analyze(*arguments):
    done = subprocess.run(["systemd-analyze", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, check=False)
    assert done.returncode == 0, "systemd-analyze %s: %s" % (" ".join(arguments), done.stdout)
    return done.stdout


def main(root, program):
    folder = root / "deploy" / "systemd"
    text = (folder / (UNIT + ".in")).read_text()
    check_text(text)
    # Beside the program, the folder that the build fills in.
    assert "@" not in re.sub(r"@bindir@|capture@|@system-service", "", text.partition("[Unit]")[2]), text
    if not shutil.which("systemd-analyze"):
        print("the text was checked; systemd-analyze is not installed (Debian's package systemd)")
        return 77
    with tempfile.TemporaryDirectory() as made:
        path = str(pathlib.Path(made) / UNIT)
        pathlib.Path(path).write_text(text.replace("@bindir@/gdrcap", str(program.resolve())))
        said = analyze("verify", "--man=no", path)
        assert not said, said
        said = analyze("security", "--offline=true", "--no-pager", "--threshold=%d" % (EXPOSURE * 10), path)
    exposure = re.search(r"Overall exposure level for .*: ([\d.]+)", said).group(1)
    print("exposure %s, at most %s" % (exposure, EXPOSURE))
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
