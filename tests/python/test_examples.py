# SPDX-License-Identifier: BSD-3-Clause
"""The examples, as their first lines say, with files in the place of windows."""
import importlib.util
import os
import subprocess
import sys
import tempfile

import py


def example(name, *arguments, env=None):
    if importlib.util.find_spec("matplotlib") is None:
        raise py.Skip("matplotlib is not installed in this environment")
    done = subprocess.run([sys.executable, str(py.ROOT / "examples" / "python" / name), *arguments], check=False,
                          capture_output=True, text=True, timeout=py.TIMEOUT,
                          env=dict(os.environ, PYTHONPATH=py.PACKAGE, MPLBACKEND="Agg", **(env or {})))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_png(path):
    with open(path, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_live_camera():
    py.need_numpy()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "picture.png")
        assert "picture 10, timeout" in example("live_camera.py", path, "--gpu", "host"), "each fifth lacks a packet"
        is_png(path)


def test_prbs_loss():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "loss.png")
        assert "pass: " in example("prbs_loss.py", "--file", path, "--seconds", "1", "--gpu", "host")
        is_png(path)


if __name__ == "__main__":
    py.main(globals())
