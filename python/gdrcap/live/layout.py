# SPDX-License-Identifier: BSD-3-Clause
"""What an image's bytes are: a picture of some pixel format, or samples; from options, the sender's leader, the layout."""
from __future__ import annotations

import dataclasses
import re
from typing import Any

# Of the formats' names to how a pixel lies in memory; docs/live.md lists them.
GRAY, COLOUR, COLOUR_TURNED, UYVY, YUYV, SAMPLES = "gray", "rgb", "bgr", "uyvy", "yuyv", "samples"
SIDE_MAX = 1 << 16  # of a picture whose size somebody sent


@dataclasses.dataclass(frozen=True)
class Format:
    """How values lie in an image."""

    name: str
    kind: str
    value: str  # numpy's name of a value's type
    top: int = 0  # the largest value; 0 for samples

    @property
    def value_bytes(self) -> int:
        """Of one value: a channel of a pixel, or a sample."""
        return int(self.value[-1])

    @property
    def pixels(self) -> int:
        """That lie together as one group."""
        return 2 if self.kind in (UYVY, YUYV) else 1

    @property
    def values(self) -> int:
        """Of one group."""
        return {COLOUR: 3, COLOUR_TURNED: 3, UYVY: 4, YUYV: 4}.get(self.kind, 1)

    @property
    def group_bytes(self) -> int:
        return self.values * self.value_bytes


def _formats() -> dict[str, Format]:
    found = []
    for bits in (8, 10, 12, 14, 16):
        value = "<u1" if bits == 8 else "<u2"
        top = (1 << bits) - 1
        found.append(Format(f"mono{bits}", GRAY, value, top))
        if bits != 14:
            found.append(Format(f"rgb{bits}", COLOUR, value, top))
            found.append(Format(f"uyvy{bits}" if bits > 8 else "uyvy", UYVY, value, top))
    found += [
        Format("mono16be", GRAY, ">u2", 65535),
        Format("rgb16be", COLOUR, ">u2", 65535),
        Format("uyvy16be", UYVY, ">u2", 65535),
        Format("bgr8", COLOUR_TURNED, "<u1", 255),
        Format("yuyv", YUYV, "<u1", 255),
    ]
    for name, value in (("u8", "<u1"), ("i8", "<i1"), ("u16", "<u2"), ("i16", "<i2"), ("i16be", ">i2"),
                        ("f16", "<f2"), ("f32", "<f4")):
        found.append(Format(name, SAMPLES, value))
    return {one.name: one for one in found}


FORMATS = _formats()

# Pixel formats of GenICam (PFNC) as a leader of GigE Vision names them. Bayer patterns are shown as they are, gray.
PIXEL_FORMATS = {
    0x01080001: "mono8", 0x01100003: "mono10", 0x01100005: "mono12", 0x01100025: "mono14", 0x01100007: "mono16",
    0x02180014: "rgb8", 0x02180015: "bgr8", 0x0210001F: "uyvy", 0x02100032: "yuyv",
    **{code: "mono8" for code in range(0x01080008, 0x0108000C)},
    **{code: "mono10" for code in range(0x0110000C, 0x01100010)},
    **{code: "mono12" for code in range(0x01100010, 0x01100014)},
    **{code: "mono16" for code in range(0x0110002E, 0x01100032)},
}
# Packed ones, which `convert` unpacks: Mono10p, Mono12p and their Bayer patterns.
PACKED_FORMATS = {
    "mono10p": {0x010A0046: "mono10", **{code: "mono10" for code in (0x010A0052, 0x010A0054, 0x010A0056, 0x010A0058)}},
    "mono12p": {0x010C0047: "mono12", **{code: "mono12" for code in (0x010C0053, 0x010C0055, 0x010C0057, 0x010C0059)}},
}
CONVERTED_SAMPLES = {"int8-float16": "f16", "int16-float16": "f16", "int16be-float16": "f16", "int8-float32": "f32",
                     "int16-float32": "f32", "int16be-float32": "f32"}
# Of RFC 4175, by (pixels, bytes) of a group as sent, and what `convert` makes of it.
GROUPS = {
    ((1, 1), "none"): "mono8", ((1, 2), "swap16"): "mono16", ((1, 2), "none"): "mono16be",
    ((1, 3), "none"): "rgb8", ((1, 6), "swap16"): "rgb16", ((1, 6), "none"): "rgb16be",
    ((2, 4), "none"): "uyvy", ((2, 5), "unpack10-be"): "uyvy10", ((2, 6), "unpack12-be"): "uyvy12",
    ((2, 8), "swap16"): "uyvy16", ((2, 8), "none"): "uyvy16be",
    ((4, 15), "unpack10-be"): "rgb10", ((2, 9), "unpack12-be"): "rgb12",
}
# By how much `convert` makes bytes more.
GROWTH = {"unpack10-be": (8, 5), "mono10p": (8, 5), "unpack12-be": (4, 3), "mono12p": (4, 3), "int8-float16": (2, 1),
          "int8-float32": (4, 1), "int16-float32": (2, 1), "int16be-float32": (2, 1)}


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What the command line says of pictures; None: nothing."""

    width: int | None = None
    height: int | None = None
    format: Format | None = None


@dataclasses.dataclass(frozen=True)
class Layout:
    """What matters here of a layout, as the library writes it out."""

    parser: str = "fields"
    convert: str = "none"
    ring: int = 8
    row: int = 0
    pitch: int = 0
    width: int = 0
    height: int = 0
    group: tuple[int, int] | None = None

    def converted(self, count: int) -> int:
        """Bytes in the image that so many bytes as sent come to."""
        more, less = GROWTH.get(self.convert, (1, 1))
        return count * more // less


def read_layout(text: str | None) -> Layout:
    """Of the YAML in which the library keeps a layout: of its scalars at the top those that matter."""
    keys: dict[str, str] = {}
    for line in (text or "").splitlines():
        found = re.match(r"(\w+): (.+)$", line)
        if found:
            keys.setdefault(found[1], found[2].strip())

    def number(key: str, default: int) -> int:
        return int(keys[key]) if keys.get(key, "").isdecimal() else default

    group = re.fullmatch(r"\{pixels: (\d+), bytes: (\d+)\}", keys.get("group", ""))
    return Layout(
        parser=keys.get("parser", "fields"),
        convert=keys.get("convert", "none"),
        ring=number("ring", 8),
        row=number("row", 0),
        pitch=number("pitch", 0),
        width=number("width", 0),
        height=number("height", 0),
        group=(int(group[1]), int(group[2])) if group else None,
    )


@dataclasses.dataclass(frozen=True)
class Geometry:
    """Of a picture in an image: where its pixels are. `height` 0: the bytes are samples, and `why` says so."""

    format: Format
    width: int = 0
    height: int = 0
    pitch: int = 0
    why: str = ""

    @property
    def row_bytes(self) -> int:
        return self.width // self.format.pixels * self.format.group_bytes


def _sent_format(image: Any, layout: Layout) -> str | None:
    """Of the pixel format in the sender's leader, where there is one that is known."""
    code = image.fields[2]
    return PACKED_FORMATS.get(layout.convert, {}).get(code) or PIXEL_FORMATS.get(code)


def _format_of(image: Any, layout: Layout, wanted: Wanted) -> Format | None:
    if wanted.format:
        return wanted.format
    if layout.convert in CONVERTED_SAMPLES:
        return FORMATS[CONVERTED_SAMPLES[layout.convert]]
    named = GROUPS.get((layout.group, layout.convert)) if layout.group else _sent_format(image, layout)
    return FORMATS[named] if named else None


def geometry(image: Any, layout: Layout, wanted: Wanted) -> Geometry:
    """What an image shows. The sender's words are believed as far as the image's bytes go, and no further."""
    found = _format_of(image, layout, wanted)
    raw = found if found and found.kind == SAMPLES else FORMATS["u16" if layout.convert in PACKED_FORMATS else "u8"]
    if found is raw:
        return Geometry(raw)
    if not found:
        return Geometry(raw, why="nobody said what pixels these are: --format, --width and --height do")
    sent_width, sent_height = image.fields[:2] if _sent_format(image, layout) or layout.parser == "gvsp" else (0, 0)
    width = wanted.width or layout.width or sent_width
    row = layout.converted(layout.row)
    if not width:
        width = row // found.group_bytes * found.pixels
    if not 0 < width <= SIDE_MAX or width % found.pixels:
        return Geometry(raw, why=f"a width of {width} pixels of {found.name} makes no picture: --width says another")
    picture = Geometry(found, width)
    pitch = layout.converted(layout.pitch) or row or picture.row_bytes
    pitch = max(pitch, picture.row_bytes)
    there = (image.bytes - picture.row_bytes) // pitch + 1 if image.bytes >= picture.row_bytes else 0
    height = wanted.height or layout.height or sent_height or there
    if not 0 < height <= min(there, SIDE_MAX):
        return Geometry(raw, why=f"{width} x {height} pixels of {found.name} do not fit into {image.bytes} bytes")
    return Geometry(found, width, height, pitch)
