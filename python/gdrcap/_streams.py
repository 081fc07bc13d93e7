# SPDX-License-Identifier: BSD-3-Clause
"""Stream-ordered control: what CUDA streams wait for, give back and send, while no thread of the CPU wakes up."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _native
from ._errors import Single

if TYPE_CHECKING:
    from ._session import Session

# As python/native/py_stream.c numbers them.
_BATCH, _IMAGE, _FRAMES = 0, 2, 4
_SECOND = 1


def _number(name: str, number: SupportsIndex, bits: int) -> int:
    value = operator.index(number)
    if not 0 <= value < 1 << bits:
        raise ValueError("%s: %d; allowed: 0 to 2^%d-1" % (name, value, bits))
    return value


class _Ordered(Single):
    def __init__(self, session: Session, native: _native.Session, what: int, index: int) -> None:
        self._session = session  # which stays as long as it is used
        self._native = native
        self._what = what
        self._index = _number("index", index, 32)
        self._view = native.stream_view(what, self._index)

    @property
    def view(self) -> bytes:
        """What a kernel is passed by value: the bytes of the struct that gdrcap_device.cuh and gdrcap_device_tx.cuh
        take. It is good until the session is closed."""
        return self._view

    def _call(self, second: int, seq: SupportsIndex, count: SupportsIndex, stream: Any) -> None:
        self._native.on_stream(self._what + second, self._index, _number("seq", seq, 64), _number("count", count, 32), stream)


class _Received(_Ordered):
    def wait(self, seq: SupportsIndex, stream: Any = None) -> None:
        """What is put into `stream` after this begins when number `seq`, from 0, is there, or the run is over. EOFError:
        the run is over, and it is none of it. Error with errno EAGAIN: it is too far ahead; later."""
        self._call(0, seq, 0, stream)

    def release(self, seq: SupportsIndex, stream: Any = None) -> None:
        """Number `seq` goes back when `stream` has come this far: once, in any order. EOFError, as for wait(). Error with
        errno EAGAIN: too far ahead, or, without a GPU, not there yet."""
        self._call(_SECOND, seq, 0, stream)


class StreamBatches(_Received):
    """Batches of a receive queue, by number, with consumer="gpu" and no image."""


class StreamImages(_Received):
    """Images of a description, by number, with consumer="gpu"."""


class StreamFrames(_Ordered):
    """Frames of a send queue, by number, with sender="gpu"."""

    def room(self, seq: SupportsIndex, count: SupportsIndex = 1, stream: Any = None) -> None:
        """What is put into `stream` after this begins when frames seq to seq + count - 1 have slots. `seq`: 0, then that
        of the call before plus its count. EOFError: the run is over."""
        self._call(0, seq, count, stream)

    def send(self, seq: SupportsIndex, count: SupportsIndex = 1, stream: Any = None) -> None:
        """Those frames are submitted when `stream` has come this far, behind room() and the kernels that write them and
        their lengths; those without a length are left out. EOFError: the run is over."""
        self._call(_SECOND, seq, count, stream)
