# SPDX-License-Identifier: BSD-3-Clause
"""Images and frames as arrays: every byte against what was sent, holes, types and shapes, copies, refusals."""
import io

import harness
import gdrcap
import test_images as truth  # tests/e2e: a sender of images with known bytes



def capture(folder, sender, drop=(), **options):
    """A session that receives what `sender` sends, but for these packets."""
    sender.packets = [packet for packet in sender.packets if packet not in drop]
    path = truth.write_pcap(folder, "in%d.pcap" % id(sender), sender.frames())
    options.setdefault("image", truth.layout(folder))
    return gdrcap.Session({"port": "net_pcap0,rx_pcap=" + path, "gpu": "host",
                           "frames": len(sender.packets)}, **options)


def with_images(function):
    with harness.Folder() as folder:
        sender = truth.Sender(range(20), streams=(0, 1))
        drop = {(0, 3, 5), (0, 3, 6), (0, 3, 15), (1, 7, 0)}
        with capture(folder, sender, drop) as session:
            function(session, sender)
        return session


def test_every_byte():
    """What is in an image, what is missing, its numbers; the same by memoryview, numpy and copy()."""
    numpy = harness.need_numpy()

    def check(session, sender):
        seen, number = [], {0: [], 1: []}
        for image in session.images(timeout=harness.TIMEOUT):
            key = (image.stream_id, image.number)
            expected = sender.expected(*key)
            assert image.copy() == bytes(memoryview(image)) == expected, key
            array = numpy.from_dlpack(image)
            assert array.dtype == numpy.uint8 and array.shape == (truth.BYTES,), array
            assert array.ctypes.data == image.address, "it was copied"
            assert array.tobytes() == expected, key
            there = sender.there(*key)
            assert list(image.present) == [piece in there for piece in range(truth.PIECES)], key
            words = numpy.frombuffer(image.present, dtype=numpy.uint32)
            assert int(words[0]) == sum(1 << piece for piece in there), key
            assert image.missing() == [tuple(hole) for hole in sender.missing(*key)], key
            assert image.complete == (len(there) == truth.PIECES) == (image.end == "complete"), image.end
            assert (image.pieces, image.received) == (truth.PIECES, len(there)), key
            assert image.placed == truth.BYTES - sum(count for _, count in image.missing())
            assert image.seq == len(seen) and image.bytes == len(image) == truth.BYTES
            assert 0 < image.first_time <= image.last_time and image.device == (1, 0)
            seen.append(image.seq)
            number[image.stream_id].append(image.number)
        assert number == {0: list(range(20)), 1: list(range(20))}, number

    summary = with_images(check).summary()
    assert summary["result"] == "fail" and summary["errors"] == ["2 images incomplete"], summary["errors"]
    assert summary["images"][0]["complete"] == 38, summary["images"]


def test_types_and_shapes():
    """view(): what fits has the bytes, and says so by every protocol; what does not is refused."""
    numpy = harness.need_numpy()

    def check(session, sender):
        image = next(session.images(timeout=harness.TIMEOUT))
        data = sender.expected(image.stream_id, image.number)
        for dtype in (numpy.uint16, numpy.dtype("<u2"), "uint16", "<u2", "torch.uint16"):
            view = image.view(dtype, (-1, 157))
            assert (view.dtype, view.shape, view.strides, view.nbytes) == ("uint16", (50, 157), (314, 2), 15700)
            assert len(view) == 50 and view.address == image.address
            for array in (numpy.from_dlpack(view), numpy.asarray(memoryview(view))):
                assert array.dtype == numpy.uint16 and array.shape == (50, 157)
                assert array.tobytes() == data
        for dtype in "bool int8 uint8 int16 uint16 int32 uint32 float16 float32".split():
            array = numpy.from_dlpack(image.view(dtype))
            assert array.dtype == numpy.dtype(dtype) and array.tobytes() == data, dtype
        rows = image.view("uint8", (-1, 100), pitch=157)
        assert rows.shape == (100, 100) and rows.strides == (157, 1), rows.shape
        whole = numpy.frombuffer(data, numpy.uint8).reshape(100, 157)
        assert (numpy.from_dlpack(rows) == whole[:, :100]).all()
        assert (numpy.asarray(memoryview(rows)) == whole[:, :100]).all()
        harness.refused(BufferError, "strides", io.BytesIO().write, rows)
        planes = image.view("uint8", (2, 10, 100), pitch=7850)
        assert planes.strides == (7850, 100, 1)
        assert image.view("uint16", 7850).shape == (7850,) and image.view(shape=[157, 100]).shape == (157, 100)
        for kind, words, *arguments, options in (
                (TypeError, "none that an image can have", ">u2", {}),
                (TypeError, "none that an image can have", "object", {}),
                (TypeError, "none that an image can have", 7, {}),
                (ValueError, "they must be equal", "uint8", (3, 3), {}),
                (ValueError, "they must be equal", "uint64", None, {}),
                (ValueError, "they must be equal", "uint8", (1 << 62, 1 << 62), {}),
                (ValueError, "they must be equal", "uint8", (0, -1), {}),
                (ValueError, "they must be equal", "uint8", (), {}),
                (ValueError, "only one dimension", "uint8", (-1, -1), {}),
                (ValueError, "no length", "uint8", (-2,), {}),
                (ValueError, "at most 8", "uint8", (1,) * 9, {}),
                (OverflowError, "", "uint8", (1 << 70,), {}),
                (TypeError, "", "uint8", ("a",), {}),
                (ValueError, "do not fit", "uint8", (101, 100), {"pitch": 157}),
                (ValueError, "do not fit", "uint8", (2, 158), {"pitch": 157}),
                (ValueError, "do not fit", "uint8", (1 << 60, 1), {"pitch": 157}),
                (ValueError, "do not fit", "uint8", (-1, 1 << 62), {"pitch": 1 << 62}),
                (ValueError, "no multiple", "uint16", (2, 2), {"pitch": 157}),
                (ValueError, "no multiple", "uint8", (2, 2), {"pitch": -1}),
                (ValueError, "only the first", "uint8", (2, -1), {"pitch": 157}),
                (ValueError, "has rows", "uint8", 5, {"pitch": 157}),
                (TypeError, "", "uint8", (2, 2), {"pitch": "a"})):
            harness.refused(kind, words, image.view, *arguments, **options)

    with_images(check)


def test_dlpack():
    """Versions, devices, copies, streams: as the standard says; capsules that nobody takes."""
    numpy = harness.need_numpy()

    def check(session, sender):
        image = next(session.images(timeout=harness.TIMEOUT))
        data = sender.expected(image.stream_id, image.number)
        assert image.__dlpack_device__() == (1, 0)
        assert '"dltensor"' in repr(image.__dlpack__())
        assert '"dltensor"' in repr(image.__dlpack__(max_version=(0, 8)))
        assert '"dltensor_versioned"' in repr(image.__dlpack__(max_version=(1, 0)))
        assert '"dltensor_versioned"' in repr(image.__dlpack__(max_version=(2, 0), dl_device=(1, 0), copy=False))
        shared, copied = numpy.from_dlpack(image), numpy.from_dlpack(image, copy=True)
        assert copied.tobytes() == data and copied.ctypes.data != image.address
        shared[0] ^= 255
        assert memoryview(image)[0] == data[0] ^ 255 and copied[0] == data[0]
        assert not numpy.from_dlpack(image.view("uint8", (-1, 100), pitch=157), copy=True).flags.c_contiguous
        harness.refused(ValueError, "host memory", image.__dlpack__, stream=1)
        harness.refused(BufferError, "another device", image.__dlpack__, dl_device=(2, 0), copy=False)
        harness.refused(BufferError, "host memory only", image.__dlpack__, dl_device=(2, 0))
        for bad in ({"max_version": 3}, {"dl_device": (1,)}, {"dl_device": "xy"}, {"what": 1}):
            harness.refused(TypeError, "", image.__dlpack__, **bad)
        harness.refused(TypeError, "", image.__dlpack__, 1)
        assert not hasattr(image, "__cuda_array_interface__")
        assert not hasattr(image.view("uint16"), "__cuda_array_interface__")
        harness.refused(ValueError, "host memory", image.release, stream=7)
        assert not image.released
        harness.refused(TypeError, "", memoryview(image.present).__setitem__, 0, "x")
        assert memoryview(image.present).readonly
        for part in ((0, truth.BYTES + 1), (-1, 5), (truth.BYTES, 1), (5, -1)):
            harness.refused(ValueError, "the image has", image.copy, *part)
        assert image.copy(10, 7) == memoryview(image)[10:17] and image.copy(truth.BYTES) == b""
        harness.refused(IndexError, "the image has 16", image.present.__getitem__, 16)

    with_images(check)


def test_frames():
    """Batches: each frame's bytes, as an array, and what is known of it."""
    numpy = harness.need_numpy()
    with harness.Folder() as folder:
        sender = truth.Sender(range(3))
        sent = [sender.frame(packet, vlan=9 if packet[2] % 2 else None) for packet in sender.packets]
        path = truth.write_pcap(folder, "in.pcap", sent)
        got = []
        with gdrcap.Session(port="net_pcap0,rx_pcap=" + path, gpu="host", frames=len(sent), consumer="host",
                            consumer__batch_times=True) as session:
            for batch in session.batches(timeout=harness.TIMEOUT):
                for index, frame in enumerate(batch):
                    array = numpy.from_dlpack(frame)
                    assert array.ctypes.data == frame.address and isinstance(frame, gdrcap.Array)
                    slot, length, offset = numpy.frombuffer(
                        batch.descriptors, [("slot", "<u4"), ("len", "<u2"), ("offset", "<u2")])[index]
                    assert batch.address + int(slot) * batch.slot_bytes + int(offset) == frame.address
                    assert len(frame) == length == frame.wire_bytes - 4 and not frame.cut
                    assert frame.vlan == (9 if len(got) % truth.PIECES % 2 else None)
                    assert frame.time_ns > 10**18 and frame.head is None
                    got.append(array.tobytes())
                harness.refused(IndexError, "the batch has", batch.__getitem__, len(batch))
                harness.refused(BufferError, "only be read", batch.descriptors.__dlpack__)
        assert got == sent
        summary = session.summary()
        assert summary["result"] == "pass" and summary["frames"]["valid"] is None, summary["errors"]
        assert summary["frames"]["received"] == len(sent)


def test_gaps():
    """A batch says which sequence numbers are missing before and in it."""
    wire = harness.wire()
    numbers = 0
    with gdrcap.Session(port=wire, tx_port=wire, gpu="host", frames=3000, consumer="host") as session:
        for batch in session.batches(timeout=harness.TIMEOUT):
            assert batch.gaps() == [], batch.gaps()
            numbers += len(batch)
    assert numbers == 3000, numbers
