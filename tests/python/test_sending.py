# SPDX-License-Identifier: BSD-3-Clause
"""Frames of the program's own: every byte over a ring, a kernel's interface and a memif; back-pressure, refusals, send times,
what poll() and the event loop tell, memory of the caller's."""
import asyncio
import datetime
import gc
import select
import struct
import sys
import threading
import time

import harness
import gdrcap
import e2e
import processes

ETHERNET = {"dst_mac": "02:00:00:00:00:01", "src_mac": b"\2\0\0\0\0\2", "ethertype": 0x88b5}


def head(**options):
    return gdrcap.headers(b"", **{**ETHERNET, **options})


def frame(number, count=100):
    """So many bytes, headers too, that no other frame has."""
    return (head() + struct.pack(">Q", number) + bytes((number * 7 + i) & 255 for i in range(count)))[:count]


def loopback(**options):
    wire = harness.wire()
    return gdrcap.Session({"port": wire, "tx_port": wire, "gpu": "host", "consumer": "host", "sender": "host",
                           "match": ["ethertype=0x88b5"], "frame.size": 1518, **options})


def received(session, count):
    """Bytes of the next `count` frames."""
    frames = []
    for batch in session.batches(timeout=harness.TIMEOUT):
        with batch:
            frames += [bytes(memoryview(one)) for one in batch]
        assert len(frames) <= count, "too many came"
        if len(frames) == count:
            break
    return frames


def told(queue, count):
    done = []
    while len(done) < count:
        more = queue.wait(harness.TIMEOUT)
        assert more, "nothing is told"
        done += more
    return done


# ---- bytes ----

def test_every_byte():
    """All lengths, by send() and by slots, before and after the start, in the order in which they were submitted."""
    numpy = harness.need_numpy()
    lengths = [*range(60, 200), *range(1400, 1515)]
    with loopback() as session:
        queue, = session.senders
        assert session.senders[0] is queue and queue.bytes_max == 1514
        expected = [frame(number, count) for number, count in enumerate(lengths)]
        assert queue.send(expected) == len(expected)
        assert received(session, len(expected)) == expected
        # What is no bytes object, and one alone.
        for one in (bytearray(expected[0]), memoryview(expected[0]), numpy.frombuffer(expected[0], numpy.uint16)):
            assert queue.send(one) == 1 and queue.send((one, one)) == 2 and queue.send(iter([one])) == 1
        assert received(session, 12) == [expected[0]] * 12
        slots = queue.reserve(len(lengths))
        assert len(slots) == len(lengths)
        for index, (slot, data) in enumerate(zip(slots, expected)):
            assert len(slot) == 1514 and slot.bytes == 0 and slot.device == (1, 0) and not slot.submitted
            if index % 3 == 0:
                assert slot.write(data[:14]) == 14 and slot.write(data[14:], 14) == len(data)
                continue
            if index % 3 == 1:
                with memoryview(slot) as view:
                    assert not view.readonly and view.nbytes == 1514
                    view[:len(data)] = data
            else:
                array = numpy.from_dlpack(slot)
                assert array.ctypes.data == slot.address
                array[:len(data)] = numpy.frombuffer(data, numpy.uint8)
                del array
            slot.bytes = len(data)
        queue.submit(slots)
        assert all(slot.submitted for slot in slots)
        assert received(session, len(expected)) == expected
    counts = queue.counts if not session.closed else None
    assert counts is None
    early = loopback()
    assert early.senders[0].send([b"\0" * 12 + b"\x88\xb5" + b"early"], tag=7) == 1
    with early:
        assert received(early, 1) == [(b"\0" * 12 + b"\x88\xb5" + b"early").ljust(60, b"\0")], "a short one is padded"
        assert told(early.senders[0], 1) == [(7, True)]
        counts = early.senders[0].counts
        assert (counts["submitted"], counts["sent"], counts["bytes"], counts["unsent"]) == (1, 1, 60, 0), counts


def ones_complement(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def test_headers():
    data = b"odd"
    written = gdrcap.headers(data, dst_mac="02-00-00-00-00-01", src_mac="02:00:00:00:00:AB", dst_ip="10.0.0.1",
                             src_ip=0x0a000002, dst_port=5004, src_port=4000, vlan=0x2005, ttl=3, tos=4)
    assert written[:18] == bytes.fromhex("020000000001" "0200000000ab" "8100" "2005" "0800") and len(written) == 46
    ip, datagram = written[18:38], written[38:] + data
    assert ip[:2] == b"\x45\x04" and ip[8:10] == b"\3\x11" and ip[12:] == bytes([10, 0, 0, 2, 10, 0, 0, 1])
    assert struct.unpack(">HHH", datagram[:6]) == (4000, 5004, 11) and ones_complement(ip) == 0xffff
    assert ones_complement(ip[12:] + struct.pack(">HH", 17, 11) + datagram) == 0xffff
    numpy = harness.need_numpy()
    options = dict(ETHERNET, ethertype=0, dst_ip="10.0.0.1")
    array = numpy.arange(50, dtype=numpy.uint16)
    assert gdrcap.headers(array, **options) == gdrcap.headers(array.tobytes(), **options)
    counted = gdrcap.headers(numpy.int64(100), **options)
    assert counted[40:42] == b"\0\0" and counted[:40] == gdrcap.headers(array, **options)[:40]
    assert head() == bytes.fromhex("020000000001" "020000000002" "88b5")
    for kind, words, data, more in (
            (ValueError, "dst_mac", b"", {"dst_mac": "02:00"}), (ValueError, "src_mac", b"", {"src_mac": b"12345"}),
            (ValueError, "src_ip", b"", {"src_ip": "10.0.0"}), (ValueError, "vlan: 65536", b"", {"vlan": 65536}),
            (ValueError, "ttl: -1", b"", {"ttl": -1}), (ValueError, "one datagram", 65508, {"ethertype": 0}),
            (ValueError, "0x600", b"", {"ethertype": 46}), (ValueError, "data: -1", -1, {}), (TypeError, "", "text", {}),
            (TypeError, "", b"", {"dst_port": "5"})):
        harness.refused(kind, words, gdrcap.headers, data, **{**ETHERNET, **more})


# ---- slots ----

def test_back_pressure():
    """All slots are out: that is what the calls return; one that is dropped is free again, once its views are gone."""
    with loopback() as session:
        queue, = session.senders
        slots = queue.reserve(1 << 20)
        many = len(slots)
        assert 1000 < many < 1 << 20
        assert queue.reserve() == [] and queue.send(frame(1)) == 0 and queue.reserve(1, timeout=0.01) == []
        view = memoryview(slots.pop())
        assert queue.reserve() == [], "a slot that is looked at was lent again"
        view.release()
        assert len(queue.reserve(5)) == 1
        slots.pop().release()
        assert queue.send([frame(number) for number in range(5)]) == 2, "two were free"
        assert received(session, 2) == [frame(0), frame(1)]
        while queue.reserve(1, timeout=harness.TIMEOUT):  # both are back
            slots += queue.reserve(1 << 20)
            if len(slots) == many:
                break
        assert queue.reserve() == []
        done = []
        thread = threading.Thread(target=lambda: done.append(queue.reserve(3, timeout=None)))
        thread.start()
        while not done and slots:
            slots.pop()
            threading.Event().wait(0.01)
        thread.join(harness.TIMEOUT)
        assert done and done[0], "who waits was not woken up"
        del done[:], slots
        assert len(queue.reserve(1 << 20)) == many, "slots are lost"
        assert queue.reserve(0) == [] and queue.send([]) == 0
        queue.submit([])


def test_views():
    """A slot with anything over it is not submitted; afterwards nothing can be made over it."""
    numpy = harness.need_numpy()
    with loopback() as session:
        queue, = session.senders
        slot, = queue.reserve()
        slot.write(frame(1))
        for make in (memoryview, numpy.from_dlpack, lambda slot: slot.view("uint16"), lambda slot: slot.__dlpack__(),
                     lambda slot: memoryview(slot)[3:5], lambda slot: numpy.asarray(memoryview(slot)),
                     lambda slot: memoryview(slot.view())):
            view = make(slot)
            harness.refused(BufferError, "slot 0: ", queue.submit, slot)
            assert not slot.submitted and slot.bytes == 100, "it is not the caller's any more"
            del view
        queue.submit(slot)
        for use in (lambda: memoryview(slot), slot.view, slot.__dlpack__, slot.__dlpack_device__, slot.release,
                    lambda: slot.write(b"x"), lambda: slot.bytes, lambda: slot.tag, lambda: slot.time_ns,
                    lambda: slot.payload, lambda: slot.address, lambda: slot.device, lambda: setattr(slot, "bytes", 60),
                    lambda: setattr(slot, "tag", 1), lambda: setattr(slot, "payload", b""),
                    lambda: setattr(slot, "time_ns", 1), lambda: queue.submit(slot)):
            harness.refused(ValueError, "submitted", use)
        assert "submitted" in repr(slot) and len(slot) == 1514
        assert received(session, 1) == [frame(1)]
        slot, = queue.reserve()
        harness.refused(ValueError, "no GPU", slot.release, 7)
        harness.refused(TypeError, "stream: ", slot.release, "7")
        slot.release()
        harness.refused(ValueError, "given back", slot.release)
        assert not slot.submitted


def test_refused():
    """What is wrong says so, and leaves slots as they were."""
    with loopback(queues=2) as session:
        queue, other = session.senders
        assert repr(other) == "<gdrcap.Sender 1>"
        long = harness.refused(gdrcap.Error, "frame 1: it has 1515 bytes", queue.send, [frame(1), frame(2, 1515)])
        assert long.errno == 90
        slots = queue.reserve(2)
        slots[0].write(frame(1))
        harness.refused(gdrcap.Error, "frame 1: it has 0 bytes; allowed: 60", queue.submit, slots)
        slots[1].bytes = 59
        harness.refused(gdrcap.Error, "frame 1: it has 59 bytes", queue.submit, slots)
        assert bytes(memoryview(slots[0]))[:100] == frame(1), "the first one is gone, too"
        harness.refused(ValueError, "another send queue", other.submit, slots)
        harness.refused(ValueError, "submitted", queue.submit, [slots[0], slots[0]])
        harness.refused(TypeError, "slot 1: <class 'bytes'>", queue.submit, [slots[0], b"x"])
        harness.refused(gdrcap.Error, "60 s ahead", queue.submit, slots[0], time=time.time_ns() + 500 * 10**9)
        for wrong in (-1, 1 << 64, (1 << 64) + time.time_ns()):
            harness.refused(ValueError, "time: ", queue.submit, slots[0], time=wrong)
        harness.refused(ValueError, "no GPU", queue.submit, slots[0], after=7)
        harness.refused(ValueError, "no GPU", queue.send, frame(1), after=7)
        harness.refused(ValueError, "no GPU", queue.send, [frame(1)] * 100, after=7)
        for bad in (-1, 1 << 64):
            harness.refused(OverflowError, "", queue.submit, slots[0], tag=bad)
            harness.refused(OverflowError, "", setattr, slots[0], "tag", bad)
            harness.refused(OverflowError, "", setattr, slots[0], "time_ns", bad)
            harness.refused(OverflowError if bad < 0 else OverflowError, "", queue.send, frame(1), tag=bad)
        for bad in (-1, 1515):
            harness.refused(ValueError, "allowed: 0 to 1514", setattr, slots[0], "bytes", bad)
        for at, data in ((-1, b""), (1515, b""), (1510, b"12345"), (1 << 40, b"")):
            harness.refused(ValueError, "room for 1514", slots[0].write, data, at)
        for attribute in ("bytes", "tag", "time_ns"):
            harness.refused(TypeError, "", setattr, slots[0], attribute, "1")
        harness.refused(TypeError, "", delattr, slots[0], "time_ns")
        harness.refused(TypeError, "", setattr, slots[0], "payload", "text")
        slots[0].payload = b"not registered"
        assert slots[0].payload[1] == 14
        harness.refused(gdrcap.Error, "", queue.submit, slots[0])
        slots[0].payload = None
        assert slots[0].payload is None
        for bad in (-1, float("nan")):
            harness.refused(ValueError, "0 or more", queue.reserve, 1, timeout=bad)
        harness.refused(ValueError, "0 and more", queue.reserve, -1)
        harness.refused(TypeError, "", queue.reserve, "1")
        harness.refused(TypeError, "", queue.send, [1])
        harness.refused(TypeError, "", queue.send, "text")
        harness.refused(TypeError, "", queue.send, 5)
        harness.refused(gdrcap.Error, "software wire", session.register, gdrcap.aligned(1))
        harness.refused(TypeError, "neither a buffer", session.register, 5)
        queue.submit(slots[0], tag=1)
        assert received(session, 1) == [frame(1)]
        session.stop()
        harness.refused(EOFError, "the run is over", queue.send, frame(1))
        harness.refused(EOFError, "the run is over", queue.reserve)
        slots[1].write(frame(2))
        harness.refused(EOFError, "the run is over", queue.submit, slots[1])
        slots[1].write(b"still the caller's")
        assert told(queue, 1) == [(1, True)]
        harness.refused(EOFError, "", queue.poll)
        harness.refused(EOFError, "", queue.wait)
    for use in (queue.poll, queue.reserve, queue.fileno, lambda: queue.send(frame(1)), lambda: queue.counts,
                lambda: queue.submit(slots[1])):
        harness.refused(ValueError, "the session is closed", use)
    with loopback() as session:
        session.stop()
        queue, = session.senders
        harness.refused(EOFError, "the run is over", queue.send, frame(1))
        harness.refused(EOFError, "the run is over", asyncio.run, queue.room())
        harness.refused(EOFError, "", queue.poll)
    with loopback(sender=None, rate="1mbit") as session:
        assert session.senders == []
        harness.refused(gdrcap.Error, "sender: host", session.register, gdrcap.aligned(1))
    for kind in (gdrcap.Slot, gdrcap.Memory):
        harness.refused(TypeError, "cannot create", kind)


# ---- times, and what is told ----

def test_times():
    """Frames leave no earlier than asked for, and hold those behind them."""
    with loopback() as session:
        queue, = session.senders
        now = time.time_ns()
        times = [now + 50_000_000, now + 80_000_000, now + 60_000_000, 0]
        utc = datetime.timezone.utc
        zones = [datetime.datetime.fromtimestamp(0, utc), datetime.datetime.fromtimestamp(0, datetime.timezone(
            datetime.timedelta(hours=5)))]
        for number, at in enumerate(times):
            if number == 1:
                slot, = queue.reserve()
                slot.write(frame(number))
                slot.time_ns, slot.tag = at, number
                assert (slot.time_ns, slot.tag) == (at, number)
                queue.submit(slot)
            elif number == 2:
                assert queue.send(frame(number), time=zones[1] + datetime.timedelta(microseconds=at // 1000), tag=number) == 1
            else:
                assert queue.send(frame(number), time=at or None, tag=number) == 1
        came = []
        for batch in session.batches(timeout=harness.TIMEOUT):
            with batch:
                came += [(bytes(memoryview(one)), time.time_ns()) for one in batch]
            if len(came) == 4:
                break
        assert [data for data, _ in came] == [frame(number) for number in range(4)]
        for (_, at), least in zip(came, (times[0], times[1], times[1], times[1])):
            assert at >= least, "%d ns too early" % (least - at)
        assert told(queue, 4) == [(number, True) for number in range(4)]
        # Naive ones are this machine's local time.
        assert queue.send(frame(9), time=datetime.datetime.now()) == 1 and received(session, 1) == [frame(9)]
        # By a descriptor: it may be readable with nothing there, and is once something is.
        descriptor = queue.fileno()
        assert queue.send(frame(4), tag=4) == 1 and received(session, 1) == [frame(4)]
        while not (done := queue.poll()):
            assert select.select([descriptor], [], [], harness.TIMEOUT)[0], "the descriptor says nothing"
        assert done == [(4, True)]
        # What waits for its time at the end is told as not sent.
        queue.send([frame(5), frame(6)], time=time.time_ns() + 50 * 10**9, tag=8)
        queue.send(frame(7))
        assert queue.poll() == [] and queue.wait(0.01) == []
        session.stop()
        assert told(queue, 2) == [(8, False)] * 2
        counts = queue.counts
        assert (counts["submitted"], counts["sent"], counts["unsent"]) == (9, 6, 3), counts
    assert any("not sent" in text for text in session.summary()["messages"]), session.summary()["messages"]


def test_async():
    """sent() and room() in an event loop, several at once beside another task; an end while they wait."""
    async def take(session, count):
        taken = 0
        async for batch in session.batches():
            with batch:
                taken += len(batch)
            if taken == count:
                return taken

    async def send(queue, count):
        for number in range(0, count, 50):
            while queue.send([frame(number)] * 50, tag=number) < 50:
                await queue.room()

    async def hear(queue, count):
        done = []
        while len(done) < count:
            done += await queue.sent()
        return done

    async def everything():
        with loopback() as session:
            queue, = session.senders
            hearing = asyncio.ensure_future(hear(queue, 3000))
            await asyncio.sleep(0)
            _, taken, done = await asyncio.wait_for(asyncio.gather(send(queue, 3000), take(session, 3000), hearing),
                                                    harness.TIMEOUT)
            assert taken == 3000 and len(done) == 3000 and all(ok for _, ok in done)
            # Room that comes by slots which are dropped.
            slots = queue.reserve(1 << 20)
            waiting = [asyncio.ensure_future(queue.room()) for _ in range(3)]
            await asyncio.sleep(0.01)
            assert not any(task.done() for task in waiting)
            del slots
            await asyncio.wait_for(asyncio.gather(*waiting), harness.TIMEOUT)
        for end in ("stop", "close"):
            with loopback() as session:
                queue, = session.senders
                task, cancelled = [asyncio.ensure_future(queue.sent()) for _ in range(2)]
                await asyncio.sleep(0.01)
                cancelled.cancel()
                await asyncio.sleep(0)
                assert cancelled.cancelled() and not task.done()
                getattr(session, end)()
                try:
                    await asyncio.wait_for(task, harness.TIMEOUT)
                    raise AssertionError("it was told of something")
                except EOFError:
                    pass

    asyncio.run(everything())


def test_threads():
    """Four threads on one queue, one that listens, one that takes: each frame comes once, those of a thread in order."""
    many, errors = 2000, []
    with loopback() as session:
        queue, = session.senders

        def send(first):
            try:
                for number in range(first, first + many):
                    if number % 2:
                        assert queue.send(frame(number), tag=number, timeout=harness.TIMEOUT) == 1
                        continue
                    slot, = queue.reserve(timeout=harness.TIMEOUT)
                    slot.write(frame(number))
                    queue.submit(slot, tag=number)
            except BaseException as error:
                errors.append(error)
                raise

        threads = [threading.Thread(target=send, args=(part * many,)) for part in range(4)]
        done = []
        threads.append(threading.Thread(target=lambda: done.extend(told(queue, 4 * many))))
        for thread in threads:
            thread.start()
        numbers = [int.from_bytes(data[14:22], "big") for data in received(session, 4 * many)]
        for thread in threads:
            thread.join(harness.TIMEOUT)
        assert not errors and sorted(numbers) == list(range(4 * many)) == sorted(tag for tag, _ in done)
        for part in range(4):
            own = [number for number in numbers if number // many == part]
            assert own == sorted(own)


# ---- the caller's memory ----

class Array:
    """As arrays on a GPU describe themselves, over memory that is where it is."""

    def __init__(self, **interface):
        self.__cuda_array_interface__ = {"version": 3, "typestr": "|u1", **interface}


def check_arrays(session, queue, memory):
    """Memory and payloads that say by CUDA's array interface where they lie."""
    address = memory.ctypes.data
    for kind, words, interface in (
            (BufferError, "side by side", {"shape": (512, 1024), "strides": (2048, 1), "data": (address, False)}),
            (BufferError, "side by side", {"shape": (1 << 20,), "typestr": "<f", "data": (address, False)}),
            (gdrcap.Error, "64 KiB", {"shape": (1 << 20,), "data": (address + 8, False)}),
            (gdrcap.Error, "64 KiB", {"shape": (1 << 62, 1 << 62), "data": (address, False)}),
            (gdrcap.Error, "64 KiB", {"shape": (0,), "data": (address, False)}),
            (OverflowError, "", {"shape": (-5,), "data": (address, False)}),
            (OverflowError, "", {"shape": (5,), "data": (-1, False)}),
            (IndexError, "", {"shape": (5, 5), "strides": (1,), "data": (address, False)}),
            (IndexError, "", {"shape": (5, 5), "data": ()}), (KeyError, "data", {"shape": (5, 5)}),
            (TypeError, "", {"shape": 5, "data": (address, False)}), (TypeError, "", {"shape": ("5",), "data": (address, False)})):
        harness.refused(kind, words, session.register, Array(**interface))
    whole = Array(shape=(256, 512, 2), strides=(4096, 8, 4), typestr="<f4", data=(address, False))
    with session.register(whole) as registered:
        assert (registered.address, registered.bytes, registered.kind) == (address, 1 << 20, "host")
        payload = Array(shape=(3, 1, 100), strides=(100, 7, 1), data=(address + 5000, True))
        assert queue.send([(head() + b"mine", payload)], tag=5) == 1
        assert received(session, 1) == [head() + b"mine" + memory.tobytes()[5000:5300]]
        assert told(queue, 1) == [(5, True)]


def registered(port, tx_port, count=300):
    """Headers in slots, the rest from memory of the caller's, by send() and by slots: every byte."""
    numpy = harness.need_numpy()
    memory = numpy.asarray(gdrcap.aligned(1 << 20)).reshape(-1, 2048)
    for row in range(len(memory)):
        memory[row] = numpy.random.default_rng(row).integers(0, 256, 2048, dtype=numpy.uint8)
    with gdrcap.Session({"port": port, "tx_port": tx_port, "gpu": "host", "consumer": "host", "sender": "host",
                         "match": ["ethertype=0x88b5"], "frame.size": 1518}) as session:
        queue, = session.senders
        one = session.register(memory)
        assert (one.kind, one.bytes, one.registered) == ("host", 1 << 20, True) and one.address == memory.ctypes.data
        harness.refused(gdrcap.Error, "registered already", session.register, memory)
        harness.refused(gdrcap.Error, "64 KiB", session.register, memory[1:])
        harness.refused(ValueError, "", session.register, memory[:, :5])
        harness.refused(gdrcap.Error, "not in registered memory", queue.send, [(head() + b"1234", b"x" * 50)])
        harness.refused(gdrcap.Error, "18 or more", queue.send, [(head(), memory[0, :100])])
        harness.refused(gdrcap.Error, "1515 bytes", queue.send, [(head() + b"1234", memory[0, :1497])])
        start, expected = head() + b"mine", []
        for number in range(count):
            data = memory[number % len(memory), number:number + 60 + number]
            expected.append(start + data.tobytes())
            if number % 2:
                assert queue.send([(start, data)], tag=number, timeout=harness.TIMEOUT) == 1
                continue
            slot, = queue.reserve(timeout=harness.TIMEOUT)
            slot.write(start)
            slot.payload = data
            assert slot.payload == (data.ctypes.data, data.nbytes)
            queue.submit(slot, tag=number)
        assert received(session, count) == expected
        assert [tag for tag, ok in told(queue, count) if ok] == list(range(count))
        one.unregister()
        one.unregister()
        assert not one.registered
        harness.refused(gdrcap.Error, "not in registered memory", queue.send, [(start, memory[0, :100])])
        with session.register(memory) as two:
            assert two.registered
        assert not two.registered
        check_arrays(session, queue, memory)
        # What is on its way keeps the memory, whoever drops what.
        three = session.register(memory)
        queue.send([(start, memory[0, :100])], time=time.time_ns() + 40 * 10**9)
        busy = harness.refused(gdrcap.Error, "not back", three.unregister)
        assert busy.errno == 16 and three.registered
        references = sys.getrefcount(memory)
        three.close()
        assert not three.registered and sys.getrefcount(memory) == references
        four = session.register(gdrcap.aligned(1))
    assert not four.registered
    del session, queue
    gc.collect()
    for _ in range(100):
        pass  # pending calls
    assert sys.getrefcount(memory) < references, "the session's end does not give the memory back"


def test_registered_af_packet():
    with e2e.VethPair() as pair:
        registered("net_af_packet0,iface=" + pair.right, "net_af_packet1,iface=" + pair.left)


def test_registered_memif():
    with processes.folder() as folder:
        end = "net_memif%d,role=%s,id=0,socket=" + folder + "/s,socket-abstract=no"
        registered(end % (0, "server"), end % (1, "client"))
