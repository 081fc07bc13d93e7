# SPDX-License-Identifier: BSD-3-Clause
"""Slots in GPU memory that kernels of PyTorch and CuPy fill: frames wait for the streams that write them, and so does a slot
that is dropped. What comes back on a ring is compared byte for byte."""

import pytest

import gpu
import harness
import gdrcap

pytestmark = pytest.mark.alone

HEAD = gdrcap.headers(b"", dst_mac="02:00:00:00:00:01", src_mac="02:00:00:00:00:02", ethertype=0x88b5)
BYTES, TOGETHER, FRAMES = 1000, 50, 2000
CYCLES_A_MS = 1_800_000


def loopback(**options):
    wire = harness.wire()
    return gdrcap.Session({"port": wire, "tx_port": wire, "gpu": gpu.os.environ.get("GPU", "auto"), "consumer": "host",
                           "sender": "host", "frame.size": 1518, **options})


class Raw:
    """Bytes without an owner: what it would be like if nobody knew of the stream."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"version": 3, "shape": (count,), "typestr": "|u1", "data": (address, False)}


def rows_of(torch, count=FRAMES):
    """Frames that are all different, on the GPU; all kernels of this test were launched once."""
    rows = torch.randint(0, 256, (count, len(HEAD) + BYTES), dtype=torch.uint8, device="cuda")
    rows[:, :len(HEAD)] = torch.frombuffer(bytearray(HEAD), dtype=torch.uint8).cuda()
    one, other = rows[0].clone(), torch.cuda.Stream()
    with torch.cuda.stream(other):
        torch.cuda._sleep(1000)
        one.copy_(rows[0])
        bool((one != rows[0]).any())
    one.cpu()
    torch.cuda.synchronize()
    return rows


def take(session, count, check):
    """check(index, frame) of so many frames."""
    taken = 0
    for batch in session.batches(timeout=harness.TIMEOUT):
        with batch:
            for index in range(len(batch)):
                one = batch[index]
                assert one.device == (2, 0) and len(one) == len(HEAD) + BYTES, (one.device, len(one))
                check(taken, one)
                taken += 1
            del one
        if taken >= count:
            assert taken == count
            return


def test_torch():
    """Tensors written by a stream's kernels that begin late: submit() does not wait, the frames do."""
    torch = gpu.need_torch()
    rows, stream, wrong = rows_of(torch), torch.cuda.Stream(), []
    with loopback() as session:
        queue, = session.senders
        harness.refused(BufferError, "GPU memory", queue.send, HEAD + b"x" * 60)
        for first in range(0, FRAMES, TOGETHER):
            slots = queue.reserve(TOGETHER, timeout=harness.TIMEOUT)
            assert len(slots) == TOGETHER and slots[0].device == (2, 0)
            harness.refused(BufferError, "GPU memory", memoryview, slots[0])
            harness.refused(BufferError, "GPU memory", slots[0].write, b"x")
            with torch.cuda.stream(stream):
                torch.cuda._sleep(20 * CYCLES_A_MS)
                for slot, row in zip(slots, rows[first:]):
                    tensor = torch.from_dlpack(slot)
                    assert tensor.data_ptr() == slot.address and tensor.is_cuda
                    tensor[:len(row)].copy_(row)
                    slot.bytes = len(row)
            harness.refused(BufferError, "views", queue.submit, slots)
            del tensor
            # By what from_dlpack() has told, and by what is said.
            queue.submit(slots, tag=first, **({"after": stream} if first // TOGETHER % 2 else {}))

            def check(index, one):
                if not torch.equal(torch.from_dlpack(one), rows[first + index]):
                    wrong.append(first + index)

            take(session, TOGETHER, check)
            done = []
            while len(done) < TOGETHER:
                done += queue.wait(harness.TIMEOUT)
            assert done == [(first, True)] * TOGETHER
        assert not wrong, "frames %s are not what the kernels wrote" % wrong[:10]


def test_raw_address():
    """By slot.address: right with after=, wrong without, so that the waiting is shown to matter."""
    torch = gpu.need_torch()
    rows, stream = rows_of(torch, 8), torch.cuda.Stream()
    other, seen = torch.cuda.Stream(), torch.zeros(len(HEAD) + BYTES, dtype=torch.uint8, device="cuda")
    with loopback() as session:
        queue, = session.senders

        def right(index, **options):
            slot, = queue.reserve(timeout=harness.TIMEOUT)
            slot.bytes = len(HEAD) + BYTES
            with torch.cuda.stream(stream):
                torch.cuda._sleep(100 * CYCLES_A_MS)
                torch.as_tensor(Raw(slot.address, slot.bytes), device="cuda").copy_(rows[index])
            queue.submit(slot, **options)

            def look(_, one):
                with torch.cuda.stream(other):
                    seen.copy_(torch.from_dlpack(one))
                other.synchronize()

            take(session, 1, look)
            same = bool(torch.equal(seen, rows[index]))
            stream.synchronize()
            return same

        for index in range(3):
            assert right(index, after=stream), "frame %d left before its kernel had written it" % index
            assert right(index + 3, after=stream.cuda_stream), "frame %d left before its kernel had written it" % index
        assert not right(7), "nothing is shown: the careless way was right, too"


def test_dropped():
    """A slot that is dropped unsent is not lent again while a kernel may write to it."""
    torch = gpu.need_torch()
    rows, stream = rows_of(torch, 2), torch.cuda.Stream()
    with loopback() as session:
        queue, = session.senders
        slots = queue.reserve(1 << 20)
        with torch.cuda.stream(stream):
            torch.cuda._sleep(300 * CYCLES_A_MS)
            torch.from_dlpack(slots.pop())[:len(rows[0])].copy_(rows[0])
        early = queue.reserve(1)
        assert not early or stream.query(), "a slot was lent again while a kernel writes to it"
        stream.synchronize()
        early = early or queue.reserve(1, timeout=harness.TIMEOUT)
        assert len(early) == 1
        # One that is written by its address says so itself.
        slot = slots.pop()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(300 * CYCLES_A_MS)
            torch.as_tensor(Raw(slot.address, len(rows[0])), device="cuda").copy_(rows[0])
        slot.release(stream=stream)
        second = queue.reserve(1)
        assert not second or stream.query(), "a slot was lent again while a kernel writes to it"
        second = second or queue.reserve(1, timeout=harness.TIMEOUT)
        assert len(second) == 1
        del slots, early, second
        # The end of the session waits for what is written.
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100 * CYCLES_A_MS)
            torch.from_dlpack(queue.reserve()[0])[:len(rows[1])].copy_(rows[1])
    stream.synchronize()


def test_cupy():
    torch, cupy = gpu.need_torch(), gpu.need_cupy()
    rows = cupy.from_dlpack(rows_of(torch, TOGETHER))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        int((rows[0].copy() != rows[0]).sum())
    with loopback() as session:
        queue, = session.senders
        slots = queue.reserve(TOGETHER)
        with stream:
            for index, slot in enumerate(slots):
                # DLPack says on which stream; CUDA's array interface does not.
                array = cupy.from_dlpack(slot) if index % 2 else cupy.asarray(slot.view())
                assert array.data.ptr == slot.address
                array[:rows.shape[1]] = rows[index]
                slot.bytes = rows.shape[1]
        harness.refused(BufferError, "views", queue.submit, slots, after=stream)
        del array
        queue.submit(slots, after=stream)
        wrong = []
        take(session, TOGETHER, lambda index, one: wrong.append(int((cupy.from_dlpack(one) != rows[index]).sum())))
        assert not any(wrong), wrong


def test_pinned():
    """Slots in pinned memory, which the CPU writes in a session with a GPU."""
    torch = gpu.need_torch()
    rows = rows_of(torch, TOGETHER).cpu()
    with loopback(memory="pinned") as session:
        queue, = session.senders
        slot, = queue.reserve()
        assert slot.device == (1, 0)
        slot.release()
        assert queue.send([row.numpy() for row in rows], after=torch.cuda.current_stream()) == TOGETHER
        taken = 0
        for batch in session.batches(timeout=harness.TIMEOUT):
            with batch:
                for one in batch:
                    assert bytes(memoryview(one)) == rows[taken].numpy().tobytes(), taken
                    taken += 1
                del one
            if taken == TOGETHER:
                break
