# SPDX-License-Identifier: BSD-3-Clause
"""The extension, by pkg-config; what else is to be said stands in pyproject.toml."""
import glob
import os
import subprocess
import sys

from setuptools import Extension, setup

# Where the loader looks anyway.
SYSTEM = ("/usr/lib", "/lib", "/usr/local/lib")


def pkg_config(*arguments):
    try:
        return subprocess.run(["pkg-config", *arguments, "gdrcap"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit("gdrcap: pkg-config does not find libgdrcap (%s): install it first (make install), and name a prefix of "
                 "its own by PKG_CONFIG_PATH=PREFIX/lib/.../pkgconfig" % error)


def run_path():
    """Where the library lies, if the loader would not find it; GDRCAP_RPATH has the last word."""
    said = os.environ.get("GDRCAP_RPATH")
    folder = said if said is not None else pkg_config("--variable=libdir")[0]
    known = said is None and any(folder == root or os.path.dirname(folder) == root for root in SYSTEM)
    return [] if known or not folder else ["-Wl,-rpath," + folder]


building = not {"sdist", "egg_info", "dist_info", "clean"} & set(sys.argv[1:2])
setup(
    ext_modules=[Extension(
        "gdrcap._native", sorted(glob.glob("native/*.c")), py_limited_api=True,
        define_macros=[("Py_LIMITED_API", "0x030B0000"), ("_GNU_SOURCE", None)],
        extra_compile_args=["-std=gnu17"] + (pkg_config("--cflags") if building else []),
        extra_link_args=(pkg_config("--libs") + run_path()) if building else [])],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
