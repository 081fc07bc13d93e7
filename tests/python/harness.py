# SPDX-License-Identifier: BSD-3-Clause
"""What the Python package's tests share; GDRCAP_PYTHONPATH names the folder of the package (tests/conftest.py)."""
import atexit
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# With sanitizers there is none, and another build's would be tested against this one's program.
PACKAGE = os.environ.get("GDRCAP_PYTHONPATH")
if not PACKAGE:
    pytest.skip("this build has no Python package", allow_module_level=True)
sys.path[:0] = [PACKAGE, str(ROOT / "tests" / "e2e")]

import e2e  # noqa: E402
from e2e import Folder, Skip  # noqa: E402, F401

try:
    import numpy
except ImportError:
    numpy = None
TIMEOUT = e2e.TIMEOUT

# config/'s layout, but a sender that has no core for 0.1 s cuts no image.
_layout, LAYOUT = tempfile.mkstemp(prefix="gdrcap-layout-", suffix=".yaml")
os.close(_layout)
pathlib.Path(LAYOUT).write_text(
    (ROOT / "config" / "image-gdrcap.yaml").read_text().replace("image:\n", "image:\n  timeout: 60\n", 1))
atexit.register(lambda pid=os.getpid(): pid == os.getpid() and os.unlink(LAYOUT))
FRAMES_AN_IMAGE, IMAGE_BYTES, PIECE = 1024, 1499136, 1464
_wires = iter(range(10**6))


def need_numpy():
    if numpy is None:
        raise Skip("numpy is not installed")
    return numpy


def wire():
    """A wire's name that no other session of this process has."""
    return "ring:python%d" % next(_wires)


def loopback(images=10, **options):
    """Options of a session that plays so many images into itself, slowly enough for a loaded machine: none is
    lost while a consumer takes them one by one."""
    name = wire()
    config = {"port": name, "tx_port": name, "gpu": "host", "frames": images * FRAMES_AN_IMAGE,
              "image": LAYOUT, "rate": "1gbit"}
    config.update(options)
    return {key: value for key, value in config.items() if value is not None}


def silence(**options):
    """A session whose frames are none of its images'."""
    return loopback(frames=None, frame={"ethertype": "0x88b6"}, rate="1mbit", **options)


def program(text, *arguments, status=0, env=None, flags=()):
    """Runs this text as a Python program with the package; what it printed on both."""
    done = subprocess.run([sys.executable, *flags, "-c", "import sys; sys.path[:0] = %r\n%s" % (
        [PACKAGE, str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "python")], text), *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False,
        env=dict(os.environ, **(env or {})))
    assert done.returncode == status, "status %s, not %s:\n%s\n%s" % (done.returncode, status, done.stdout, done.stderr)
    return done


def refused(kind, words, function, *arguments, **options):
    """The call raises this, and says these words."""
    try:
        function(*arguments, **options)
    except kind as error:
        assert words in str(error), "%r is not in: %s" % (words, error)
        return error
    raise AssertionError("nothing was raised: %r %r" % (arguments, options))
