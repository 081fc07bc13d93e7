# SPDX-License-Identifier: BSD-3-Clause
"""What the library says when it refuses something."""


class Error(OSError):
    """What was asked for cannot be done here, or now. strerror: cause and remedy; errno: as of the C library."""

    def __str__(self) -> str:
        return str(self.strerror)


class ConfigError(Error, ValueError):
    """An option is wrong, or does not go with another."""
