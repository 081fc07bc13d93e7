# SPDX-License-Identifier: BSD-3-Clause
"""The package's types, checked with mypy; and that the stub says what the extension has."""
import ast
import importlib.util
import inspect
import os
import subprocess
import sys

import pytest

import harness
import gdrcap
from gdrcap import _native

USE = """
from typing import assert_type
import gdrcap
session = gdrcap.Session({"port": "ring:x"}, frame__size=64)
for image in session.images(timeout=1):
    assert_type(image, gdrcap.Image)
    assert_type(image.copy(), bytes)
    assert_type(image.missing(), list[tuple[int, int]])
    view = image.view("uint16", (-1, 640), pitch=2048)
    assert_type(view.shape, tuple[int, ...])
async def take() -> None:
    async for image in session.images():
        assert_type(image, gdrcap.Image)
for batch in session.batches():
    assert_type(batch, gdrcap.Batch)
    for frame in batch:
        assert_type(frame.vlan, int | None)
header = gdrcap.headers(b"data", dst_mac="02:00:00:00:00:01", src_mac=bytes(6), dst_ip="10.0.0.1")
assert_type(header, bytes)
for queue in session.senders:
    assert_type(queue, gdrcap.Sender)
    assert_type(queue.send([header, (header, memoryview(b""))], time=5, tag=7, timeout=None), int)
    for slot in queue.reserve(3):
        slot.bytes = slot.write(header)
        slot.tag, slot.payload = None, gdrcap.aligned(65536)
        assert_type(slot, gdrcap.Slot)
        queue.submit(slot, after=None)
    assert_type(queue.poll(), list[tuple[int, bool]])
async def hear(queue: gdrcap.Sender) -> None:
    await queue.room()
    assert_type(await queue.sent(), list[tuple[int, bool]])
with session.register(gdrcap.aligned(65536)) as memory:
    assert_type(memory, gdrcap.Memory)
"""
WRONG = "import gdrcap\ngdrcap.Session(7).images('a').wait().nothing\n"


def mypy(*arguments, text=None):
    with harness.Folder() as folder:
        if text:
            arguments += (os.path.join(folder, "use.py"),)
            with open(arguments[-1], "w") as file:
                file.write(text)
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, *arguments], check=False,
                              capture_output=True, text=True, env=dict(os.environ, MYPYPATH=harness.PACKAGE))


@pytest.mark.ci
def test_mypy():
    if importlib.util.find_spec("mypy") is None:
        raise harness.Skip("mypy is not installed")
    for arguments, text in ((("-p", "gdrcap"), None), ((), USE)):
        done = mypy(*arguments, text=text)
        assert done.returncode == 0, done.stdout + done.stderr
    done = mypy(text=WRONG)
    assert done.returncode == 1 and "arg-type" in done.stdout and "nothing" in done.stdout, done.stdout


def test_stub():
    """Every name of the extension's types is in the stub, and the other way round; what users see is described."""
    stub = ast.parse((harness.ROOT / "python" / "gdrcap" / "_native.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}

    def names(node):
        found = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in classes:
                found |= names(classes[base.id])
        return {name for name in found if not name.startswith("__") or "dlpack" in name or "cuda" in name}

    for name, node in classes.items():
        if name.startswith("_"):
            continue
        kind = getattr(_native, name)
        there = {key for base in kind.__mro__[:-1] for key in vars(base)
                 if not key.startswith("__") or "dlpack" in key or "cuda" in key}
        assert there == names(node), (name, there ^ names(node))
        if getattr(gdrcap, name, None) is kind:
            assert all(inspect.getdoc(kind.__dict__.get(key) or getattr(kind, key)) for key in there), name
            assert inspect.getdoc(kind), name
    for name in gdrcap.__all__:
        assert name == "__version__" or inspect.getdoc(getattr(gdrcap, name)), name
