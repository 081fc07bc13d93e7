# SPDX-License-Identifier: BSD-3-Clause
"""A minute of mixed load with faults, as tests/soak plays for hours: CONTRIBUTING.md."""
import subprocess
import sys

import pytest

import e2e

pytestmark = [pytest.mark.long, pytest.mark.alone]


def test_a_minute():
    done = subprocess.run([sys.executable, str(e2e.ROOT / "tests" / "soak" / "soak.py"), "--seconds", "40", "--seed", "21"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=2 * e2e.TIMEOUT, check=False)
    if done.returncode == 77:
        raise e2e.Skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout
