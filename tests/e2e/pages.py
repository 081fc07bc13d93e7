# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap report many times: its helper, the same file with the same arguments, in a copy of this process, which has
read matplotlib already. A new Python needs most of a second for that."""
import functools
import io
import os
import pathlib
import runpy
import sys
import tempfile
import traceback
import warnings

import e2e

HELPER = e2e.ROOT / "app" / "page"


@functools.lru_cache(maxsize=None)
def facts():
    """What the program tells its helper, which is a program that says so here."""
    with e2e.Folder() as folder:
        helper = pathlib.Path(folder, "python3")
        helper.write_text("#!/bin/sh\n[ \"$3\" = --facts ] && printf %s \"$4\"\n")
        helper.chmod(0o755)
        done = e2e.run("report", "none.json", env=dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"])))
        assert '"causes"' in done.out, done
        return done.out


def in_child(arguments):
    """Of the copy: its exit status."""
    warnings.simplefilter("ignore")  # of this Python's options (-X dev), which the helper's has not
    sys.argv = [str(HELPER), "--facts", facts(), *arguments]
    sys.stdout, sys.stderr = (io.TextIOWrapper(open(number, "wb", closefd=False)) for number in (1, 2))
    status = 0
    try:
        runpy.run_path(str(HELPER), run_name="__main__")
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status


def report(*arguments):
    """As e2e.run("report", ...), whatever the exit status."""
    import jinja2  # noqa: F401
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot  # noqa: F401
    facts()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            status = 99
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                status = in_child(arguments)
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return e2e.Result(["report", *arguments], status, *texts)
