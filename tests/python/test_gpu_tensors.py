# SPDX-License-Identifier: BSD-3-Clause
"""Images in GPU memory as tensors of PyTorch and CuPy, nothing copied; buffers that wait for the streams that read them."""
import time

import pytest

import gpu
import harness
import gdrcap

pytestmark = pytest.mark.alone

KERNEL_MS = 50
RING = 4


def test_torch():
    """Every byte of 50 images, by DLPack and by CUDA's array interface; copies to the host."""
    torch = gpu.need_torch()
    numpy = harness.need_numpy()
    with harness.Folder() as folder:
        options = gpu.loopback(folder, rate="5gbit")
        words = options and 1464 * 256 // 8
        count = torch.arange(words, dtype=torch.int64, device="cuda")
        wrong = torch.zeros((), dtype=torch.int64, device="cuda")
        (count + 1 != count).sum()  # kernels are loaded before the sender's runs
        torch.cuda.synchronize()
        with gdrcap.Session(options) as session:
            for taken, image in enumerate(session.images(timeout=harness.TIMEOUT)):
                assert image.device == (2, 0), image.device
                tensor = torch.from_dlpack(image)
                assert tensor.data_ptr() == image.address and tensor.is_cuda and tensor.dtype == torch.uint8
                typed = torch.from_dlpack(image.view("int64", (256, -1)))
                other = torch.as_tensor(image.view("int64"), device="cuda")  # by __cuda_array_interface__
                assert typed.shape == (256, 183) and other.data_ptr() == image.address
                wrong += (typed.reshape(-1) != count + gpu.first_word(image)).sum()
                wrong += (other != count + gpu.first_word(image)).sum()
                if taken == 49:
                    break
            expected = numpy.arange(words, dtype=numpy.int64) + gpu.first_word(image)
            assert image.copy() == expected.tobytes() and image.copy(8, 8) == expected[1:2].tobytes()
            assert numpy.from_dlpack(image, device="cpu").tobytes() == expected.tobytes()
            assert list(image.present) == [True] * 256
            harness.refused(BufferError, "GPU memory", memoryview, image)
            harness.refused(ValueError, "allowed", image.__dlpack__, stream=0)
            harness.refused(BufferError, "host memory only", image.__dlpack__, dl_device=(2, 0), copy=True)
            assert int(wrong) == 0, int(wrong)
            del typed, other, tensor, image


def test_cupy():
    torch, cupy = gpu.need_torch(), gpu.need_cupy()
    with harness.Folder() as folder:
        options = gpu.loopback(folder, rate="5gbit")
        words = 1464 * 256 // 8
        count = cupy.arange(words, dtype=cupy.int64)
        int((count + 1 != count).sum())
        del torch
        with gdrcap.Session(options) as session:
            images = session.images(timeout=harness.TIMEOUT)
            for _ in range(20):
                image = next(images)
                for array in (cupy.from_dlpack(image.view("int64")), cupy.asarray(image.view("int64"))):
                    assert array.data.ptr == image.address
                    assert int((array != count + gpu.first_word(image)).sum()) == 0
            del array, image


def late_reader(torch, session, images, let_go):
    """Whether an image whose reader is a kernel that first waits 50 ms was still there. let_go(image, stream) gives a
    tensor, and what to do when the kernels that read it are launched."""
    stream = torch.cuda.Stream()
    cycles = int(KERNEL_MS * 1e-3 * 1.8e9)
    image = next(images)
    first = gpu.first_word(image)
    out = torch.empty(image.bytes // 8, dtype=torch.int64, device="cuda")
    done = torch.cuda.Event()
    with torch.cuda.stream(stream):
        tensor, launched = let_go(image, stream)
        torch.cuda._sleep(cycles)
        out.copy_(tensor)
        done.record()
    launched()
    del tensor, launched, image
    came = 0
    while not done.query():
        came += images.wait(0.005) is not None
    assert came > 2 * RING, "only %d images came meanwhile" % came
    stream.synchronize()
    words = out.cpu()
    return bool((words == torch.arange(len(words), dtype=torch.int64) + first).all()), came


class Raw:
    """A tensor without an owner: what it would be like without the streams."""

    def __init__(self, address, words):
        self.__cuda_array_interface__ = {"version": 3, "shape": (words,), "typestr": "<i8", "data": (address, False)}


def test_dropped_while_a_kernel_reads():
    """The tensor is dropped at once, a 50 ms kernel on its stream reads it afterwards, and images keep coming into a ring of
    four: what it read is right. And without that care it is not."""
    torch = gpu.need_torch()
    with harness.Folder() as folder:
        options = gpu.loopback(folder, ring=RING, rate="20gbit")
        warm = torch.zeros(1000, dtype=torch.int64, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1000)
            torch.empty_like(warm).copy_(warm)
            torch.cuda.Event().record()
        keep = [torch.empty(1464 * 256 // 8, dtype=torch.int64, device="cuda") for _ in range(8)]  # memory for later
        del keep
        torch.cuda.synchronize()
        with gdrcap.Session(options) as session:
            images = session.images(timeout=harness.TIMEOUT)

            def raw(image):
                return torch.as_tensor(Raw(image.address, image.bytes // 8), device="cuda")

            def by_dlpack(image, stream):
                return torch.from_dlpack(image.view("int64")), lambda: None

            def by_release(image, stream):
                return raw(image), lambda: image.release(stream=stream)

            def careless(image, stream):
                return raw(image), image.release

            for _ in range(3):
                for let_go in (by_dlpack, by_release):
                    right, came = late_reader(torch, session, images, let_go)
                    assert right, "%s: its buffer was used again (%d images came)" % (let_go.__name__, came)
            assert not late_reader(torch, session, images, careless)[0], "nothing is shown: the careless way was right, too"
            # The end of the session waits for what is read.
            image = next(images)
            with torch.cuda.stream(stream):
                tensor = torch.from_dlpack(image.view("int64"))
                torch.cuda._sleep(int(0.2 * 1.8e9))
                total = tensor.sum()
            first, words = gpu.first_word(image), len(tensor)
            del tensor, image
        stream.synchronize()
        assert int(total) == words * first + words * (words - 1) // 2


def test_batches():
    """Frames in GPU memory, as tensors: the payload's first word, until 20,000 came; given back behind their stream."""
    torch = gpu.need_torch()
    wire, frame = harness.wire(), 1518
    stream = torch.cuda.Stream()
    seen = torch.zeros(1 << 17, dtype=torch.int64, device="cuda")
    seen[:8].view(torch.uint8)[:8].copy_(seen.view(torch.uint8)[8:16])
    torch.cuda.synchronize()
    taken = 0
    with gdrcap.Session({"port": wire, "tx_port": wire, "consumer": "host", "frame.size": frame, "rate": "500mbit",
                         "pattern.name": "counter64le", "gpu": gpu.os.environ.get("GPU", "auto")}) as session:
        with torch.cuda.stream(stream):
            for batch in session.batches(timeout=harness.TIMEOUT):
                for index in range(len(batch)):
                    one = batch[index]
                    assert one.device == (2, 0) and len(one) == frame - 4, one.device
                    tensor = torch.from_dlpack(one)
                    seen.view(torch.uint8)[taken * 8:taken * 8 + 8].copy_(tensor[50:58])
                    taken += 1
                harness.refused(BufferError, "GPU memory", memoryview, one)
                harness.refused(BufferError, "split", lambda: one.vlan)
                batch.release(stream=stream)
                if taken > 20000:
                    break
        del one, tensor, batch
        stream.synchronize()
        words = seen[:taken].cpu()
    for number in range(taken):
        at = number * (frame - 54)
        word = b"".join(value.to_bytes(8, "little") for value in range(at // 8, at // 8 + 2))[at % 8:at % 8 + 8]
        assert int(words[number]) == int.from_bytes(word, "little"), (number, int(words[number]))


def test_overhead():
    """Microseconds of an image: taking and giving it back, and torch.from_dlpack()."""
    torch = gpu.need_torch()
    with harness.Folder() as folder:
        options = gpu.loopback(folder, frame=1518, pieces=64, ring=64, rate="10gbit")
        torch.zeros(1, device="cuda")
        with gdrcap.Session(options) as session:
            images = session.images(timeout=harness.TIMEOUT)
            image, times = next(images), {}
            count = 20000
            for name, use in (("image.__dlpack__()", lambda: image.__dlpack__(stream=1, max_version=(1, 0))),
                              ("torch.from_dlpack(image)", lambda: torch.from_dlpack(image)),
                              ("image.view()", lambda: image.view("int64", (64, 183)))):
                began = time.perf_counter()
                for _ in range(count):
                    use()
                times[name] = (time.perf_counter() - began) / count * 1e6
            began, taken, polls = time.perf_counter(), 0, 0.0
            while taken < 2000:
                one = images.wait(1)
                start = time.perf_counter()
                tensor = torch.from_dlpack(one)
                del tensor, one
                polls += time.perf_counter() - start
                taken += 1
            times["from_dlpack and back behind its stream"] = polls / taken * 1e6
            image.release()
    print(", ".join("%s: %.2f us" % pair for pair in times.items()))
