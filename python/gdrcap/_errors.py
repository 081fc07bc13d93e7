# SPDX-License-Identifier: BSD-3-Clause
"""What the library says when it refuses something, and what is not to be copied."""
from typing import NoReturn


class Error(OSError):
    """What was asked for cannot be done here, or now. strerror: cause and remedy; errno: as of the C library."""

    def __str__(self) -> str:
        return str(self.strerror)


class ConfigError(Error, ValueError):
    """An option is wrong, or does not go with another."""


class Single:
    """One of a kind: a copy would be the same session once more, and know of neither its end nor the other."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("a %s cannot be copied or pickled" % type(self).__name__)
