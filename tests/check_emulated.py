# SPDX-License-Identifier: BSD-3-Clause
"""The program under an emulator (scripts/cross.sh): EMULATOR plays its CPU."""
import json
import os
import shlex
import subprocess
import sys

PROGRAM = shlex.split(os.environ["EMULATOR"]) + [os.environ["GDRCAP"]]
FRAMES = 3000


def run(*arguments):
    done = subprocess.run([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=240, check=False)
    assert done.stdout.startswith("{"), (arguments, done)
    return done.returncode, json.loads(done.stdout), done.stderr


def loopback(*arguments):
    status, summary, log = run("loopback", "--json", "--frames", str(FRAMES), *arguments)
    assert status == 0, (arguments, summary, log)
    assert summary["frames"]["valid"] == FRAMES, (arguments, summary)
    assert summary["bits"]["wrong"] == 0, (arguments, summary)


def main():
    for arguments in (["--frame-size", "64-1518", "--pattern", "prbs31"],
                      ["--frame-size", "64,9000", "--pattern", "counter32be", "--queues", "2"],
                      ["--format", "udp", "--frame-size", "82-1518", "--streams", "7"]):
        loopback(*arguments)
    status, verdict, log = run("doctor", "--json")
    assert verdict["schema"] == "gdrcap.doctor/1" and verdict["able"] == (status == 0), (verdict, log)
    assert verdict["checks"], verdict
    print(f"loopback: {3 * FRAMES} frames valid; doctor: {len(verdict['checks'])} checks")


if __name__ == "__main__":
    sys.exit(main())
