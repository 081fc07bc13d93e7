# SPDX-License-Identifier: BSD-3-Clause
"""Options as Python values: dictionaries, lists, numbers and switches, to the library's texts."""
from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Union

from . import _native
from ._errors import ConfigError

Config = Union[Mapping[str, Any], str, "os.PathLike[str]", None]


def _refuse(text: str) -> ConfigError:
    return ConfigError(errno.EINVAL, text)


def text_of(key: str, value: Any) -> str:
    """A value as it would be written in YAML or on the command line."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # a number of numpy's or PyTorch's
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else format(value, "f" if 1e-6 <= abs(value) < 1e15 else "g")
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise _refuse("%s: %r is no value; allowed: text, numbers, True, False, None, and lists of these" % (key, value))


def _flow(key: str, value: Any) -> str:
    """YAML on one line, for what is a map there."""
    if isinstance(value, Mapping):
        return "{%s}" % ", ".join("%s: %s" % (name, _flow("%s.%s" % (key, name), item)) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(_flow(key, item) for item in value)
    if isinstance(value, str):
        return json.dumps(value)
    return text_of(key, value)


def flatten(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Keys with dots, in order. A layout of images is a map itself."""
    for name, value in options.items():
        key = prefix + str(name)
        if isinstance(value, Mapping) and key != "image":
            yield from flatten(value, key + ".")
        else:
            yield key, value


def _set_list(native: _native.Session, key: str, values: list[Any]) -> None:
    native.set(key, None)
    if key == "image" and any(isinstance(value, Mapping) for value in values):
        if not all(isinstance(value, Mapping) for value in values):
            raise _refuse("image: maps and texts cannot be mixed in one list; give maps, or texts")
        layouts = _flow(key, values[0] if len(values) == 1 else values)
        native.parse("image", "image: %s\n" % layouts)
        return
    for value in values:
        native.add(key, text_of(key, value))


def apply(native: _native.Session, config: Config, options: Mapping[str, Any]) -> None:
    """Gives the configuration these options."""
    pairs: list[tuple[str, Any]] = []
    if isinstance(config, Mapping):
        pairs += flatten(config)
    elif config is not None:
        native.load(os.fspath(config))
    pairs += flatten({key.replace("__", "."): value for key, value in options.items()})
    for key, value in pairs:
        if value is None:
            native.set(key, None)
        elif isinstance(value, (list, tuple)):
            _set_list(native, key, list(value))
        elif isinstance(value, Mapping):
            _set_list(native, key, [value])
        else:
            native.set(key, text_of(key, value))
    # Images are the caller's; nothing else takes them in a Python program.
    if native.get("image") is not None and native.get("consumer") == "validate":
        native.set("consumer", "host")
