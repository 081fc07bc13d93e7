# SPDX-License-Identifier: BSD-3-Clause
"""Stream-ordered calls on the CPU backend, where the calling thread is the stream. On a GPU: tests/gpu/test_on_stream_cuda.cu
has the calls themselves."""
import ctypes
import errno
import struct
import threading

import harness
import gdrcap

FRAMES = 3000
AHEAD = 256  # GDRCAP_STREAM_AHEAD


def batches(**options):
    wire = harness.wire()
    return gdrcap.Session({"port": wire, "tx_port": wire, "gpu": "host", "consumer": "gpu", "frames": FRAMES, **options})


def errno_of(function, *arguments):
    return harness.refused(gdrcap.Error, "", function, *arguments).errno


def let_go(queue, seq):
    try:
        queue.wait(seq)
    except EOFError:  # it came after the stop
        pass


def test_batches():
    """Each comes and goes by its number; the end, and what is too far ahead, are told."""
    with batches() as session:
        queue = session.stream_batches()
        queue.wait(0)
        queue.release(0)
        session.wait()
        back = 1
        while True:
            try:
                queue.release(back)
            except gdrcap.Error as error:
                assert error.errno == errno.EAGAIN and "is not there" in str(error), error
                break
            back += 1
        queue.wait(back - 1)
        assert back > 10, back
        assert errno_of(queue.wait, back + AHEAD) == errno.EAGAIN
        waits = threading.Thread(target=let_go, args=(queue, back))
        waits.start()
        session.stop()
        waits.join(harness.TIMEOUT)
        assert not waits.is_alive(), "the stop lets each wait go"
        harness.refused(EOFError, "the run is over", queue.wait, back)
        harness.refused(EOFError, "the run is over", queue.release, back)
        assert session.summary()["frames"]["received"] == FRAMES, session.summary()
    harness.refused(ValueError, "closed", queue.wait, 0)


def test_images():
    with gdrcap.Session(harness.loopback(images=5, consumer="gpu")) as session:
        images = session.stream_images()
        assert len(images.view) > 0
        for number in range(5):
            images.wait(number)
            images.release(number)
        session.wait()
        images.wait(4)
        session.stop()
        harness.refused(EOFError, "the run is over", images.wait, 5)
        assert session.summary()["images"][0]["complete"] == 5, session.summary()["images"]


def frames_write(view, first, lengths):
    """As a kernel does: frames into their slots, and their lengths."""
    _, _, slots, bytes_at, mask, _, _, _ = struct.unpack("PPPPIIII", view)
    for seq, length in enumerate(lengths, first):
        data, = struct.unpack("P", ctypes.string_at(slots + 16 * (seq & mask), 8))
        ctypes.memset(data, 0x5A, length)
        ctypes.c_uint32.from_address(bytes_at + 4 * (seq & mask)).value = length


def test_frames():
    """Slots, lengths, and the number that were sent: those without a length are left out."""
    with gdrcap.Session(tx_port="net_null0", gpu="host", sender="gpu") as session:
        frames = session.stream_frames()
        frames.room(0, 10)
        frames_write(frames.view, 0, [60, 100, 1000])
        frames.send(0, 10)
        frames.room(10)
        frames_write(frames.view, 10, [64])
        frames.send(10)
        assert errno_of(frames.room, 11, 0) == errno.EINVAL
        session.stop()
        sending = session.summary()["sending"]
        assert (sending["sent"], sending["bytes"], sending["refused"]) == (4, 1224, 0), sending
        harness.refused(EOFError, "too late to send", frames.send, 11)


class Protocol:
    def __cuda_stream__(self):
        return 0, 64


class Broken:
    def __cuda_stream__(self):
        raise KeyError("of its own")


def streams():
    attribute = type("Stream", (), {})
    for name in ("cuda_stream", "ptr", "__cuda_stream__"):
        stream = attribute()
        setattr(stream, name, (0, 64) if name == "__cuda_stream__" else 64)
        yield stream
    yield Protocol()
    yield 64


def test_refused():
    """What is wrong says why, and what a stream may be."""
    with batches() as session:
        queue = session.stream_batches()
        queue.wait(0)
        for stream in streams():
            for call in (queue.wait, queue.release):
                error = harness.refused(gdrcap.Error, "pass no stream", call, 0, stream)
                assert error.errno == errno.ENOTSUP, error
        for stream in ("64", 1.5, object(), attribute_of("ptr", "64"), attribute_of("__cuda_stream__", 64)):
            harness.refused(TypeError, "__cuda_stream__ is expected", queue.wait, 0, stream)
        harness.refused(KeyError, "of its own", queue.wait, 0, Broken())
        harness.refused(ValueError, "seq: -1", queue.wait, -1)
        harness.refused(ValueError, "seq: %d" % (1 << 64), queue.release, 1 << 64)
        harness.refused(TypeError, "", queue.wait, 1.5)
        assert errno_of(queue.wait, 1 << 62) == errno.EINVAL
        harness.refused(gdrcap.Error, "sender: gpu", session.stream_frames)
        harness.refused(gdrcap.Error, "consumer: gpu", session.stream_batches, 1)
        harness.refused(ValueError, "index: -1", session.stream_batches, -1)
        harness.refused(gdrcap.Error, "consumer: gpu", session.stream_images)
    session = batches()
    harness.refused(gdrcap.Error, "gdrcap_start() before", session.stream_batches().wait, 0)
    session.close()
    with batches(consumer="host") as session:
        harness.refused(gdrcap.Error, "consumer: gpu", session.stream_batches)


def attribute_of(name, value):
    return type("Stream", (), {name: value})()
