# SPDX-License-Identifier: BSD-3-Clause
"""What the page shows of one image: a PNG with holes where pieces are missing, a histogram; or a plot of its samples."""
from __future__ import annotations

import dataclasses
import struct
import zlib
from typing import Any

import numpy as np

from .layout import SAMPLES, UYVY, YUYV, Geometry, Layout, Wanted, geometry
from .scale import Scaled, samples, scale, to_colours

HOLES_MAX = 4096  # that are marked; an image with more of them has lost more than anybody can look at
BINS = 64
COLUMNS = 400  # of a plot of samples
SPECTRUM = 512  # points


@dataclasses.dataclass(frozen=True)
class Picture:
    """What is sent to the browsers of one image."""

    facts: dict[str, Any]
    png: bytes


def png(pixels: np.ndarray, present: np.ndarray | None) -> bytes:
    """A PNG of gray or RGB bytes; where `present` is false the picture is transparent."""
    if pixels.ndim == 2:
        pixels = pixels[:, :, np.newaxis]
    if present is not None:
        alpha = np.where(present, np.uint8(255), np.uint8(0))[:, :, np.newaxis]
        pixels = np.concatenate([pixels, alpha], axis=2)
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, width * channels)
    # Filter 2, differences to the row above, is what numpy does at once and makes pictures smaller.
    lines = np.full((height, rows.shape[1] + 1), 2, np.uint8)
    lines[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=lines[1:, 1:])

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 1)) +
            chunk(b"IEND", b""))


def present_blocks(holes: list[tuple[int, int]], shown: Geometry, scaled: Scaled) -> np.ndarray:
    """False for each block of pixels of which a byte is missing."""
    height, width = scaled.averaged.shape[:2]
    present = np.ones((height, width), bool)
    across = shown.format.group_bytes * scaled.group_step

    def column(byte: int) -> int:
        return min(byte, shown.row_bytes - 1) // across

    for start, count in holes[:HOLES_MAX]:
        first, begin = divmod(start, shown.pitch)
        last, end = divmod(start + count - 1, shown.pitch)
        if first >= shown.height:
            break
        if last >= shown.height:
            last, end = shown.height - 1, shown.row_bytes - 1
        if begin >= shown.row_bytes:  # it begins in what lies between two rows
            first, begin = first + 1, 0
            if first > last:
                continue
        top, bottom = first // scaled.step, last // scaled.step
        if first == last:
            present[top, column(begin):column(end) + 1] = False
            continue
        present[top, column(begin):] = False
        present[bottom, :column(end) + 1] = False
        if last - first > 1:
            present[(first + 1) // scaled.step:(last - 1) // scaled.step + 1] = False
    return present


def _white(single: np.ndarray, top: int) -> int:
    """What is drawn white: the largest value there can be; of wide ones, of as many bits as are in use."""
    if top <= 255:
        return top
    largest = int(single.max(initial=0))
    return min(max((1 << largest.bit_length()) - 1, 255), top)


def _channels(single: np.ndarray, shown: Geometry) -> dict[str, np.ndarray]:
    kind = shown.format.kind
    if kind in (UYVY, YUYV):
        return {"luma": single[:, :, 1::2] if kind == UYVY else single[:, :, 0::2]}
    if shown.format.values == 1:
        return {"gray": single}
    names = ("red", "green", "blue") if kind == "rgb" else ("blue", "green", "red")
    return {name: single[:, :, i:i + 1] for i, name in enumerate(names)}


def histogram(single: np.ndarray, present: np.ndarray, shown: Geometry, white: int) -> dict[str, Any]:
    """Of one pixel of each block of which nothing is missing; 0 .. `white` in BINS."""
    bins = {}
    for name, values in _channels(single, shown).items():
        there = values[present].ravel().astype(np.int64)
        found = np.bincount(np.minimum(there * BINS // (white + 1), BINS - 1), minlength=BINS)
        bins[name] = [int(count) for count in found]
    return {"white": white, "bins": bins, "pixels": int(present.sum())}


def _numbers(values: np.ndarray) -> list[float | None]:
    return [round(float(value), 3) if np.isfinite(value) else None for value in values]


def plot(values: np.ndarray, present: np.ndarray) -> dict[str, Any]:
    """Samples as lowest and highest of each column, and their spectrum; missing ones are left out."""
    values = np.where(present, values, np.nan)
    columns = min(COLUMNS, max(len(values), 1))
    each = -(-len(values) // columns) or 1
    padded = np.full(each * -(-len(values) // each), np.nan)
    padded[:len(values)] = values
    blocks = padded.reshape(-1, each)
    some = np.isfinite(blocks)
    low = np.where(some, blocks, np.inf).min(axis=1, initial=np.inf)
    high = np.where(some, blocks, -np.inf).max(axis=1, initial=-np.inf)
    result: dict[str, Any] = {"samples": len(values), "low": _numbers(low), "high": _numbers(high), "spectrum": None}
    count = min(len(values), 2 * SPECTRUM)
    part = values[:count]
    if count >= 16 and np.isfinite(part).all():
        window = np.hanning(count)
        power = np.abs(np.fft.rfft((part - part.mean()) * window)) / window.sum() * 2
        largest = power.max()
        if largest > 0:
            result["spectrum"] = _numbers(20 * np.log10(np.maximum(power / largest, 1e-6)))
    return result


def _draw_samples(image: Any, shown: Geometry, holes: list[tuple[int, int]]) -> dict[str, Any]:
    values = samples(image, shown)
    present = np.ones(len(values), bool)
    width = shown.format.value_bytes
    for start, count in holes:
        if start // width >= len(values):
            break
        present[start // width:-(-(start + count) // width)] = False
    return {"format": shown.format.name, "why": shown.why, "plot": plot(values, present),
            "where": "samples on the CPU by numpy" if image.device[0] == 1 else "the first samples copied from the GPU"}


def draw(image: Any, layout: Layout, wanted: Wanted) -> Picture:
    """Of an image that the caller holds, and may give back afterwards."""
    shown = geometry(image, layout, wanted)
    holes = [] if image.complete else list(image.missing())
    facts: dict[str, Any] = {
        "stream": image.stream_id, "number": image.number, "end": image.end, "bytes": image.bytes,
        "pieces": image.pieces, "received": image.received, "timestamp": image.timestamp, "holes": len(holes),
        "holes_unmarked": max(len(holes) - HOLES_MAX, 0),
    }
    if shown.format.kind == SAMPLES:
        return Picture({**facts, **_draw_samples(image, shown, holes)}, b"")
    scaled = scale(image, shown)
    present = present_blocks(holes, shown, scaled)
    white = _white(scaled.single[present], shown.format.top)
    pixels = to_colours(scaled, shown, white)
    spread = pixels.shape[1] // present.shape[1]
    mask = None if present.all() else np.repeat(present, spread, axis=1) if spread > 1 else present
    facts.update(
        format=shown.format.name, width=shown.width, height=shown.height, step=scaled.step, where=scaled.where,
        shown_width=pixels.shape[1], shown_height=pixels.shape[0],
        histogram=histogram(scaled.single, present, shown, white))
    return Picture(facts, png(pixels, mask))
