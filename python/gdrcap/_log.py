# SPDX-License-Identifier: BSD-3-Clause
"""The library's lines to the logging module, on Python's own threads.

The library's threads leave their lines in a queue. A daemon thread takes them out while nobody calls the
library; who calls it does so himself at the end of each call, so that lines and what he sees are in order.
"""
from __future__ import annotations

import atexit
import itertools
import logging
import os
import threading
import traceback
from typing import Union

from . import _native

_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.INFO, logging.DEBUG)
_WAIT_MS = 500

_numbers = itertools.count(1)
_loggers: dict[int, logging.Logger] = {}
_default = logging.getLogger("gdrcap")
_delivering = threading.Lock()
_starting = threading.Lock()
_thread: threading.Thread | None = None
_ends = False
_process = os.getpid()


def deliver() -> None:
    """Logs what waits. Where another thread is at it, it is his. In a child of the process the queue may be locked
    for good."""
    if os.getpid() != _process or not _delivering.acquire(blocking=False):
        return
    try:
        while (row := _native.log_take()) is not None:
            session, level, text, dropped = row
            logger = _loggers.get(session, _default)
            if dropped:
                logger.warning("%d lines are left out: they came faster than they were logged", dropped)
            try:
                logger.log(_LEVELS[level] if level < len(_LEVELS) else logging.DEBUG, "%s", text)
            except Exception:  # a handler's own: no reason to end whoever called the library
                if logging.raiseExceptions:
                    traceback.print_exc()
    finally:
        _delivering.release()


def _main() -> None:
    while not _ends:
        if _native.log_wait(_WAIT_MS):
            deliver()


def register(logger: Union[logging.Logger, str, None]) -> int:
    """A number for a session's lines."""
    global _thread
    if not (logger is None or isinstance(logger, (str, logging.Logger, logging.LoggerAdapter))):
        raise TypeError("log: %r; allowed: a logging.Logger, or its name" % (logger,))
    number = next(_numbers)
    _loggers[number] = logging.getLogger(logger) if isinstance(logger, str) else logger or _default
    with _starting:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_main, name="gdrcap-log", daemon=True)
            _thread.start()
    return number


def forget(number: int) -> None:
    """After a session's last line."""
    deliver()
    _loggers.pop(number, None)


@atexit.register
def _end() -> None:
    global _ends
    _ends = True
    deliver()
