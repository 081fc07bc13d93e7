# SPDX-License-Identifier: BSD-3-Clause
"""Makes an image smaller where it lies: on the GPU by torch or cupy, on the CPU by numpy; little of it is copied."""
from __future__ import annotations

import dataclasses
import importlib
import os
from typing import Any

import numpy as np

from .layout import COLOUR, FORMATS, UYVY, YUYV, Geometry

WIDTH, HEIGHT = 640, 512  # of a picture on the page, at most
AVERAGED = 3  # of a block's pixels each way that are averaged, at most
SAMPLE_BYTES = 1 << 16  # of samples, that are looked at
CUDA = 2  # DLPack's number
RESERVED_BYTES, RESERVED_PIECES, RESERVED_PIECE_BYTES = 1 << 27, 64, 1 << 20  # of GPU memory, for making pictures


@dataclasses.dataclass(frozen=True)
class Scaled:
    """A picture made smaller: height x width x groups' values."""

    averaged: np.ndarray
    single: np.ndarray  # one pixel of each block: what a histogram counts
    step: int  # pixels of a block each way
    group_step: int  # groups of a block
    where: str  # who did it, for the page


def _steps(geometry: Geometry) -> tuple[int, int]:
    """So many pixels each way, and groups across, become one; a group of two pixels counts as two, or is one."""
    step = max(-(-geometry.width // WIDTH), -(-geometry.height // HEIGHT), 1)
    if geometry.format.pixels == 1:
        return step, step
    step += step % 2 if step > 1 else 0
    return step, max(step // 2, 1)


def _values(block: Any, geometry: Geometry) -> Any:
    """Numbers of bytes ... x groups x values x bytes: by arithmetic, which every library has for every width."""
    wide = block.astype("int32") if hasattr(block, "astype") else block.int()
    if geometry.format.value_bytes == 1:
        return wide[..., 0]
    low, high = (1, 0) if geometry.format.value[0] == ">" else (0, 1)
    return wide[..., low] + wide[..., high] * 256


def _reduced(rows: Any, geometry: Geometry, step: int, group_step: int, row_step: int) -> tuple[Any, Any]:
    """`rows`: bytes of every (step / row_step)-th row of the picture, on whatever device."""
    form = geometry.format
    groups = geometry.width // form.pixels

    def pick(down: int, across: int) -> Any:
        some = rows[down::row_step]
        some = some.reshape(some.shape[0], groups, form.values, form.value_bytes)
        return _values(some[:, across::group_step], geometry)

    single = pick(0, 0)
    downs = range(0, row_step, -(-row_step // AVERAGED))
    acrosses = range(0, group_step, -(-group_step // AVERAGED))
    # Blocks at the edges may be cut: they are averaged over what they have.
    total, count = single + 0, single * 0 + 1
    for down in downs:
        for across in acrosses:
            if down or across:
                other = pick(down, across)
                total[:other.shape[0], :other.shape[1]] += other
                count[:other.shape[0], :other.shape[1]] += 1
    return total // count, single


def _on_host(array: Any) -> np.ndarray:
    """From any library's device; waits until it is there."""
    if hasattr(array, "cpu"):
        array = array.cpu().numpy()
    elif hasattr(array, "get"):
        array = array.get()
    return np.ascontiguousarray(array)


def _gpu_library() -> Any:
    for name in ("torch", "cupy"):
        try:
            library = importlib.import_module(name)
            if library.cuda.is_available():
                return library
        except Exception:  # noqa: BLE001 - whatever a broken installation raises, there is another way
            continue
    return None


_library: list[Any] = []  # of the GPU's arrays, once it was looked for


def _reserve(library: Any) -> None:
    """Memory that the library keeps when it is given back, so that no picture asks the GPU for more: of torch in small
    pieces, too, which it takes from elsewhere."""
    pieces = [_zeros(library, (size,)) for size in [RESERVED_BYTES] + RESERVED_PIECES * [RESERVED_PIECE_BYTES]]
    del pieces


def _zeros(library: Any, shape: tuple[int, ...]) -> Any:
    """In GPU memory, which cupy's always are."""
    where = {"device": "cuda"} if library.__name__ == "torch" else {}
    return library.zeros(shape, dtype=library.uint8, **where)


def prepare() -> None:
    """Before a run with images in GPU memory: has kernels loaded and memory allocated by then.

    Either may wait for all that runs on the GPU, and a kernel of the session may run until its end.
    """
    if not _library:
        os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
        _library.append(_gpu_library())
    if _library[0]:
        _reserve(_library[0])
        for name in ("mono8", "mono16", "rgb8", "uyvy"):
            some = Geometry(FORMATS[name], 2048, 2048, 0)
            rows = _library[0].from_dlpack(_zeros(_library[0], (2048, some.row_bytes)))
            for part in _reduced(rows, some, *_steps(some), _steps(some)[0]):
                _on_host(part)


def _scale_on_gpu(image: Any, geometry: Geometry, step: int, group_step: int) -> Scaled | None:
    library = _library[0] if _library else None
    if not library:
        return None
    view = image.view("uint8", (geometry.height, geometry.row_bytes), pitch=geometry.pitch)
    averaged, single = _reduced(library.from_dlpack(view), geometry, step, group_step, step)
    where = f"scaled on the GPU by {library.__name__}" if step > 1 else f"read from the GPU by {library.__name__}"
    return Scaled(_on_host(averaged), _on_host(single), step, group_step, where)


def _scale_copied(image: Any, geometry: Geometry, step: int, group_step: int) -> Scaled:
    """Neither torch nor cupy: one row of a block is copied, the others stay where they are."""
    rows = np.empty((-(-geometry.height // step), geometry.row_bytes), np.uint8)
    for i in range(len(rows)):
        rows[i] = np.frombuffer(image.copy(i * step * geometry.pitch, geometry.row_bytes), np.uint8)
    averaged, single = _reduced(rows, geometry, step, group_step, 1)
    part = f"every {step}th row" if step > 3 else ("all rows", "all rows", "every 2nd row", "every 3rd row")[step]
    return Scaled(averaged, single, step, group_step, f"{part} copied from the GPU (it scales with torch or cupy)")


def scale(image: Any, geometry: Geometry) -> Scaled:
    """A picture as the page shows it. The image may be given back when this returns."""
    step, group_step = _steps(geometry)
    if image.device[0] == CUDA:
        return _scale_on_gpu(image, geometry, step, group_step) or _scale_copied(image, geometry, step, group_step)
    flat = np.frombuffer(memoryview(image), np.uint8)
    rows = np.lib.stride_tricks.as_strided(flat, (geometry.height, geometry.row_bytes), (geometry.pitch, 1),
                                           writeable=False)
    averaged, single = _reduced(rows, geometry, step, group_step, step)
    return Scaled(np.ascontiguousarray(averaged), np.ascontiguousarray(single), step, group_step,
                  "scaled on the CPU by numpy" if step > 1 else "in its full size, by numpy on the CPU")


def samples(image: Any, geometry: Geometry) -> np.ndarray:
    """The first of an image's samples."""
    count = min(image.bytes, SAMPLE_BYTES) // geometry.format.value_bytes * geometry.format.value_bytes
    return np.frombuffer(image.copy(0, count), geometry.format.value).astype(np.float64)


def to_colours(scaled: Scaled, geometry: Geometry, white: int) -> np.ndarray:
    """A picture's averaged values as bytes: height x width for gray, height x width x 3."""
    values = np.minimum(scaled.averaged * 255 // white, 255)
    if geometry.format.kind not in (UYVY, YUYV):
        pixels: np.ndarray = values.astype(np.uint8)
        if pixels.shape[2] == 1:
            return pixels[:, :, 0]
        return pixels if geometry.format.kind == COLOUR else pixels[:, :, ::-1]
    first, second, blue, red = _luma_and_chroma(values, geometry)
    if scaled.step > 1:
        return _rgb((first + second) // 2, blue, red)
    luma = np.stack([first, second], axis=2).reshape(first.shape[0], -1)
    return _rgb(luma, np.repeat(blue, 2, axis=1), np.repeat(red, 2, axis=1))


def _luma_and_chroma(groups: np.ndarray, geometry: Geometry) -> tuple[np.ndarray, ...]:
    order = (1, 3, 0, 2) if geometry.format.kind == UYVY else (0, 2, 1, 3)
    return tuple(groups[:, :, i].astype(np.int32) for i in order)


def _rgb(luma: np.ndarray, blue: np.ndarray, red: np.ndarray) -> np.ndarray:
    """By ITU-R BT.709 with its narrow range; factors are of 4096."""
    y, u, v = (luma - 16) * 4769, blue - 128, red - 128
    return np.stack([np.clip(part + 2048 >> 12, 0, 255) for part in (
        y + 7343 * v, y - 873 * u - 2183 * v, y + 8652 * u)], axis=2).astype(np.uint8)
