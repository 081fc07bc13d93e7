# SPDX-License-Identifier: BSD-3-Clause
"""The shared library in a Python program, through ctypes, that ends by an exception nobody catches,
while a session runs and logs into Python. LIBGDRCAP names the library."""

import ctypes
import os
import subprocess
import sys

ERROR_BYTES = 512
COUNTS = 2  # sent, received: what the summary begins with, and all that is asked for

LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


def program(how):
    library = ctypes.CDLL(os.environ["LIBGDRCAP"])
    library.gdrcap_config_new.restype = ctypes.c_void_p
    config = ctypes.c_void_p(library.gdrcap_config_new())
    error = ctypes.create_string_buffer(ERROR_BYTES)
    lines = []
    log = LOG(lambda context, level, line: lines.append(line))

    def check(ret):
        assert ret == 0, (ret, error.raw[4:].split(b"\0")[0])

    for key, value in (("port", "ring:python"), ("tx-port", "ring:python"), ("gpu", "host")):
        check(library.gdrcap_config_set(config, key.encode(), value.encode(), error))
    library.gdrcap_config_set_log(config, log, None)
    session = ctypes.c_void_p()
    check(library.gdrcap_create(config, ctypes.byref(session), error))
    library.gdrcap_config_free(config)
    check(library.gdrcap_start(session, error))
    counts = (ctypes.c_uint64 * COUNTS)()
    while counts[1] < 1000:
        check(library.gdrcap_get_summary(session, counts, ctypes.c_size_t(8 * COUNTS)))
    assert lines, "nothing was logged"
    if how == "exception":
        raise RuntimeError("nobody catches this")
    if how == "exit":
        sys.exit(3)


def main():
    if "LIBGDRCAP_SANITIZED" in os.environ:
        print("the library is sanitized, the interpreter is not")
        sys.exit(77)
    for how, status in (("exception", 1), ("exit", 3), ("end", 0)):
        result = subprocess.run([sys.executable, __file__, how], capture_output=True, text=True,
                                timeout=300, check=False)
        assert result.returncode == status, (how, result)
        words = result.stderr.strip().splitlines()
        if how == "exception":
            assert words[-1] == "RuntimeError: nobody catches this", result
        else:
            assert not words, result


if __name__ == "__main__":
    if len(sys.argv) > 1:
        program(sys.argv[1])
    else:
        main()
