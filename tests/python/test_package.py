# SPDX-License-Identifier: BSD-3-Clause
"""pip install of a fresh clone's python/ into a fresh environment, against an installed library; wheel and sdist."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import harness

BUILD = os.environ.get("GDRCAP_BUILD", str(harness.ROOT / "build"))
USE = """
import gdrcap, gdrcap._native as native
assert native.__file__.startswith(%r), native.__file__
assert native.__file__.endswith("_native.abi3.so")
with gdrcap.Session({"port": "ring:p", "tx_port": "ring:p", "gpu": "host", "frames": 2048, "image": %r}) as session:
    for image in session.images():
        assert image.copy()
print(session.summary()["images"][0]["begun"])
"""


def said(*arguments, **options):
    done = subprocess.run(arguments, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert done.returncode == 0, "%s\n%s" % (" ".join(map(str, arguments)), done.stdout[-4000:])
    return done.stdout


def install(folder):
    """The build into a prefix of its own; the environment in which pkg-config finds it."""
    said("meson", "install", "-C", BUILD, "--no-rebuild", "--skip-subprojects",
         env=dict(os.environ, DESTDIR=folder + "/root"))
    config = os.path.dirname(glob.glob(folder + "/root/**/gdrcap.pc", recursive=True)[0])
    for path in pathlib.Path(config).glob("*.pc"):
        path.write_text(re.sub("^prefix=", "prefix=%s/root" % folder, path.read_text(), flags=re.M))
    return dict(os.environ, PKG_CONFIG_PATH=os.pathsep.join(
        [config, *filter(None, [os.environ.get("PKG_CONFIG_PATH")])]), PIP_DISABLE_PIP_VERSION_CHECK="1",
        PYTHONPATH="")


def clone(folder):
    """What a clone has: tracked files, as they are."""
    if not (harness.ROOT / ".git").exists():
        shutil.copytree(harness.ROOT / "python", folder + "/clone/python")
        return folder + "/clone/python"
    for name in said("git", "-C", str(harness.ROOT), "ls-files", "--cached", "--others", "--exclude-standard",
                     "python").splitlines():
        target = os.path.join(folder, "clone", name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(harness.ROOT / name, target)
    return folder + "/clone/python"


@pytest.mark.ci
def test_pip_install():
    with harness.Folder() as folder:
        env, source = install(folder), clone(folder)
        said(sys.executable, "-m", "venv", folder + "/fresh")
        python = folder + "/fresh/bin/python3"
        # The build's requirements are this environment's, where it has them; else pip gets them.
        has = subprocess.run([sys.executable, "-c", "import setuptools, wheel"], capture_output=True, check=False).returncode == 0
        if has:
            said(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", folder + "/dist", source,
                 env=env)
            wheel, = glob.glob(folder + "/dist/*.whl")
            assert "-cp311-abi3-linux_" in wheel, wheel
            names = zipfile.ZipFile(wheel).namelist()
            assert {"gdrcap/py.typed", "gdrcap/_native.pyi", "gdrcap/_native.abi3.so", "gdrcap/__init__.py"} <= set(names)
            assert not [name for name in names if name.endswith((".c", ".h", ".build"))], names
            said(python, "-m", "pip", "install", "--no-index", wheel, env=env)
        else:
            try:
                said(python, "-m", "pip", "install", source, env=env)
            except AssertionError as error:
                if "No matching distribution" in str(error) or "Connection" in str(error):
                    raise harness.Skip("setuptools and wheel are neither here nor to be had") from None
                raise
        done = said(python, "-c", USE % (folder + "/fresh", harness.LAYOUT), cwd="/", env=env)
        assert done.splitlines()[-1] == "2", done
        needed = re.findall(r"NEEDED.*\[(.*)\]", said("readelf", "-d", glob.glob(
            folder + "/fresh/lib/python3*/site-packages/gdrcap/_native.abi3.so")[0]))
        assert {name.split(".")[0] for name in needed} <= {"libgdrcap", "libc", "libpthread", "libdl", "libm"}, needed


def test_without_the_library():
    """What pip says where libgdrcap is not installed."""
    if subprocess.run([sys.executable, "-c", "import setuptools, wheel"], capture_output=True, check=False).returncode:
        raise harness.Skip("setuptools or wheel is not installed")
    with harness.Folder() as folder:
        source = clone(folder)
        done = subprocess.run([sys.executable, "setup.py", "build_ext"], cwd=source, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, PKG_CONFIG_PATH="", PKG_CONFIG_LIBDIR="/nowhere"))
        assert done.returncode and "install it first (make install)" in done.stdout, done.stdout


def test_limited_api():
    """Only names of the stable ABI, of 3.11."""
    symbols = said("nm", "-D", "--undefined-only", os.path.join(harness.PACKAGE, "gdrcap", "_native.abi3.so"))
    names = set(re.findall(r"\b(_?Py\w+)", symbols))
    private = {name for name in names if name.startswith("_Py") and not name.endswith("_SizeT")}
    assert names and private <= {"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_Dealloc"}, private


def test_version():
    """One version, in three places."""
    text = (harness.ROOT / "python" / "pyproject.toml").read_text()
    header = (harness.ROOT / "lib" / "include" / "gdrcap.h").read_text()
    assert re.search('^version = "(.*)"', text, re.M)[1] == re.search('GDRCAP_VERSION "(.*)"', header)[1]
    assert 'license = { text = "BSD-3-Clause" }' in text


def test_make_python():
    """scripts/python-dist.sh, from a build folder that has its product."""
    said(str(harness.ROOT / "scripts" / "python-dist.sh"), BUILD)
    made = sorted(os.path.basename(path) for path in glob.glob(BUILD + "/dist/*"))
    assert len(made) == 2 and made[0].endswith(".whl") and made[1].endswith(".tar.gz"), made
    with tarfile.open(os.path.join(BUILD, "dist", made[1])) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"native/native.h", "native/py_module.c", "gdrcap/py.typed", "setup.py"} <= names, names
