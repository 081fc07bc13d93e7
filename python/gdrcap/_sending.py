# SPDX-License-Identifier: BSD-3-Clause
"""Frames of the program's own on their way out: send queues, headers, memory that can be registered."""
from __future__ import annotations

import asyncio
import datetime
import ipaddress
import mmap
import numbers
import operator
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Optional, SupportsIndex, Union

from . import _native
from ._errors import Single

if TYPE_CHECKING:
    from ._session import Session

Time = Union[SupportsIndex, datetime.datetime, None]
Mac = Union[str, bytes]
Ip = Union[str, int, ipaddress.IPv4Address]

_ALIGN = 65536
_LOOK = 0.05
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def _time_ns(time: Time) -> int:
    if time is None:
        return 0
    if isinstance(time, datetime.datetime):
        number = (time.astimezone(datetime.timezone.utc) - _EPOCH) // datetime.timedelta(microseconds=1) * 1000
    else:
        number = operator.index(time)
    if not 0 <= number < 1 << 64:
        raise ValueError("time: %s; allowed: ns since the Unix epoch, 0 (at once) to 2^64-1, or a datetime" % (time,))
    return number


def _tag(tag: Optional[SupportsIndex]) -> Optional[int]:
    return None if tag is None else operator.index(tag)


def _is_buffer(thing: Any) -> bool:
    try:
        memoryview(thing).release()
    except TypeError:
        return False
    return True


class Sender(Single):
    """A send queue: frames leave it in the order in which they were submitted. One that waits, for a stream or for its
    time, holds those behind it; another queue does not wait.

    A session with sender="host" has them in `session.senders`. Any thread may call; they take turns.
    """

    def __init__(self, session: Session, native: _native.Sender) -> None:
        self._session = session
        self._native = native
        self._waiting: dict[asyncio.AbstractEventLoop, set[asyncio.Future[None]]] = {}

    def __repr__(self) -> str:
        return "<gdrcap.Sender %d>" % self._native.index

    @property
    def bytes_max(self) -> int:
        """The most bytes that a frame can have: frame.size without FCS."""
        return self._native.bytes_max

    @property
    def counts(self) -> dict[str, Any]:
        """submitted (= sent + unsent + those that wait), sent, bytes, stalled, unsent, failed, at_port, seconds,
        failed_known, as docs/embedding.md tells them."""
        return self._native.counts()

    def send(self, frames: Any, *, after: Any = None, time: Time = None, tag: Optional[SupportsIndex] = None,
             timeout: Optional[float] = 0) -> int:
        """Copies frames into slots in host memory and submits them: how many. Fewer than there are is the queue's
        back-pressure.

        frames: one bytes-like object, or several; in a list a frame may also be a pair, headers and a payload in
        registered memory, which is not copied. Frames of less than 60 bytes are padded. after: a CUDA stream that may still
        write payloads, as for submit(). time: they are sent no
        earlier, an integer of ns since the Unix epoch or a datetime. tag: poll() tells each with this number. timeout:
        seconds to wait for free slots; None: for ever. EOFError: the run is over, and nothing is sent any more.
        """
        return self._native.send([frames] if _is_buffer(frames) else list(frames), after, _tag(tag), _time_ns(time), timeout)

    def reserve(self, count: SupportsIndex = 1, *, timeout: Optional[float] = 0) -> list[_native.Slot]:
        """Up to so many free slots, to fill and submit. Fewer, or none, is the queue's back-pressure. A slot that is
        dropped is free again. timeout: seconds to wait for one; None: for ever. EOFError: the run is over."""
        return self._native.reserve(operator.index(count), timeout)

    def submit(self, slots: Union[_native.Slot, Iterable[_native.Slot]], *, after: Any = None, time: Time = None,
               tag: Optional[SupportsIndex] = None) -> None:
        """Hands slots over, `bytes` of each set: all of them, or, with an exception, none. No view of them may be
        left; they cannot be used any more. EOFError: the run is over.

        They are not sent before the streams have come this far on which torch.from_dlpack(slot) or
        cupy.from_dlpack(slot) was called, and `after`: a handle, a torch.cuda.Stream or a cupy.cuda.Stream. time, tag:
        as for send(), of all these slots; else their own.
        """
        if isinstance(slots, _native.Slot):
            slots = [slots]
        self._native.submit(list(slots), after, _tag(tag), _time_ns(time))

    def poll(self) -> list[tuple[int, bool]]:
        """(tag, whether the port took it) of frames with a tag whose memory is free again, in their order; [] when
        there are none yet. Their slots are free when they were told: who gives a tag has to ask. EOFError: there will
        never be one again."""
        return self._native.poll(0)

    def wait(self, timeout: Optional[float] = None) -> list[tuple[int, bool]]:
        """The same, waited for; [] when none came for `timeout` seconds. Signals are handled within 0.05 s. EOFError
        after a stop, too, when the rest is not told: the port, or who received them, still has them."""
        return self._native.poll(timeout)

    def fileno(self) -> int:
        """A descriptor that is readable when slots came back. A poll() that returned [] arms it, and so does a
        reserve() that did."""
        return self._native.fileno()

    async def sent(self) -> list[tuple[int, bool]]:
        """poll(), waited for in the event loop. EOFError: there will never be one again."""
        while True:
            self._still_there()
            self._native.fileno()
            stopped = self._native.stopped()
            if done := self._native.poll(0):
                return done
            if stopped:
                raise EOFError("the run is over, and no frame will be told any more")
            await self._came_back()

    async def room(self) -> None:
        """Waits in the event loop until a slot is free. EOFError: the run is over."""
        while True:
            self._still_there()
            self._native.fileno()
            if self._native.has_room():
                return
            await self._came_back()

    def _still_there(self) -> None:
        if self._session.closed:
            raise EOFError("the session is closed")

    async def _came_back(self) -> None:
        """Until the descriptor is readable, or for 0.05 s: it says nothing of slots that were dropped, or that came back
        after a stop. All that wait in an event loop share it."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        # What the descriptor is of stays until nobody waits on it.
        held = self._native.hold()
        descriptor = self._native.fileno()
        waiting = self._waiting.setdefault(loop, set())
        if not waiting:
            loop.add_reader(descriptor, _wake, waiting)
        waiting.add(future)
        try:
            await asyncio.wait([future], timeout=_LOOK)
        finally:
            waiting.discard(future)
            if not waiting:
                loop.remove_reader(descriptor)
                self._waiting.pop(loop, None)
            held.close()


def _wake(waiting: set[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)


def aligned(count: SupportsIndex) -> memoryview:
    """Writable host memory of so many bytes, rounded up to a multiple of 64 KiB, that begins at one, as
    Session.register() wants it: numpy.asarray() makes an array of it."""
    size = -(-max(operator.index(count), 1) // _ALIGN) * _ALIGN
    whole = memoryview(mmap.mmap(-1, size + _ALIGN))
    start = -_native.address_of(whole) % _ALIGN
    return whole[start:start + size]


def _mac(name: str, mac: Mac) -> bytes:
    if isinstance(mac, str):
        if re.fullmatch(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}", mac):
            return bytes.fromhex(mac.replace(":", "").replace("-", ""))
    elif len(mac) == 6:
        return bytes(mac)
    raise ValueError("%s: %r; allowed: \"02:00:00:00:00:01\", or 6 bytes" % (name, mac))


def _number(name: str, value: SupportsIndex, most: int) -> int:
    number = operator.index(value)
    if not 0 <= number <= most:
        raise ValueError("%s: %d; allowed: 0 to %d" % (name, number, most))
    return number


def headers(data: Any, *, dst_mac: Mac, src_mac: Mac, dst_ip: Ip = 0, src_ip: Ip = 0, dst_port: SupportsIndex = 0,
            src_port: SupportsIndex = 0, vlan: Optional[SupportsIndex] = None, ttl: SupportsIndex = 64,
            tos: SupportsIndex = 0, ethertype: SupportsIndex = 0) -> bytes:
    """Ethernet, IPv4 and UDP headers of a frame with these data, which follow them, with right checksums; or Ethernet's
    alone, with `ethertype`.

    data: a bytes-like object; or how many bytes they are, where the CPU does not have them: then UDP's checksum is 0,
    none. vlan: priority, DEI and id of a tag.
    """
    counted = isinstance(data, numbers.Integral)
    try:
        src, dst = (int(ipaddress.IPv4Address(ip)) for ip in (src_ip, dst_ip))
    except ipaddress.AddressValueError as error:
        raise ValueError("src_ip, dst_ip: %s" % error) from None
    return _native.headers(
        _mac("dst_mac", dst_mac), _mac("src_mac", src_mac), _number("ethertype", ethertype, 0xffff),
        -1 if vlan is None else _number("vlan", vlan, 0xffff), _number("src_port", src_port, 0xffff),
        _number("dst_port", dst_port, 0xffff), _number("ttl", ttl, 255), _number("tos", tos, 255), src, dst,
        None if counted else data, _number("data", data, 0xffffffff) if counted else 0)
