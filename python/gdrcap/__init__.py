# SPDX-License-Identifier: BSD-3-Clause
"""Raw Ethernet frames, and the images they carry, in GPU memory, without a copy.

    with gdrcap.Session("config.yaml") as session:
        for image in session.images():
            tensor = torch.from_dlpack(image)

See docs/python.md.
"""
from ._errors import ConfigError, Error
from ._native import VERSION as __version__
from ._native import Array, Batch, Frame, Image, Memory, Present, Slot, options, version
from ._sending import Sender, aligned, headers
from ._session import Batches, Images, Session
from ._streams import StreamBatches, StreamFrames, StreamImages

__all__ = ["Array", "Batch", "Batches", "ConfigError", "Error", "Frame", "Image", "Images", "Memory", "Present",
           "Sender", "Session", "Slot", "StreamBatches", "StreamFrames", "StreamImages", "__version__", "aligned", "headers",
           "options", "version"]
