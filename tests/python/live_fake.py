# SPDX-License-Identifier: BSD-3-Clause
"""What stands in for a session and its images where a test of the page says itself what there is."""
import threading

COUNTS = {"frames": {"received": 5, "placed": 5, "duplicate": 0, "second_leg": 0, "conflict": 0, "late": 0, "no_room": 0, "misfit": 0, "filtered": 0},
          "begun": 0, "complete": 0, "incomplete": 0, "incomplete_by": {"newer": 0, "timeout": 0, "stopped": 0}, "dropped": 0,
          "open": 0, "skipped": 0, "restarts": 0, "pieces": {"expected": 0, "placed": 0, "lost": 0}, "bytes": 0}


def summary(**members):
    """One of frames that are checked, with what members say."""
    found = {"schema": "gdrcap.summary/1", "version": "gdrcap", "command": "capture", "result": "running", "ports": ["ring:a"],
             "tx_ports": None, "pattern": "prbs31", "frame_size": "64", "seconds": 1.0, "filtered": 0, "bytes": 300,
             "frames": {"sent": 5, "received": 5, "valid": 5, "damaged": 0, "lost": 0, "duplicate": 0, "reordered": 0},
             "lost_by": {"nic_missed": 0, "nic_error": 0, "unexplained": 0, "causes": {}}, "bits": {"checked": 8, "wrong": 0, "ratio": 0.0},
             "stale": None, "lock_lost": None, "cut": 0, "pool_empty": None, "restarts": 0, "ended_by_sender": None,
             "rate": {"gbps": 1.0, "mpps": 1.0}, "memory": {"kind": "host", "gpu": "2 CPUs", "driver": "gpu_host"}, "streams": [],
             "damage": [], "images": None, "errors": [], "messages": []}
    found.update(members)
    return found


class Session:
    """A run that the test ends."""

    def __init__(self, found, images=()):
        self.found = found
        self.image_names = tuple("images%d" % i for i in range(len(images)))
        self._images = images
        self._over = threading.Event()

    def start(self):
        pass

    def stop(self):
        self._over.set()

    def close(self):
        pass

    def wait(self, timeout=None):
        return self._over.wait(timeout)

    def images(self, index=0):
        return self._images[index]

    def option(self, key, index=0):
        return "ring: 8\n"

    def summary(self):
        return self.found


class Source:
    """Images of a list, then none until the end."""

    def __init__(self, images=()):
        self.left = list(images)
        self.over = threading.Event()
        self.empty = threading.Event()

    def wait(self, timeout=None):
        if self.left:
            return self.left.pop(0)
        self.empty.set()
        if self.over.wait(timeout):
            raise EOFError
        return None


class Image(bytes):
    """Bytes in host memory, with a buffer as a real one; or in what stands in for a GPU's."""

    def __new__(cls, data, **_):
        return super().__new__(cls, data)

    def __init__(self, data, fields=(0, 0, 0, 0), holes=(), on_gpu=False, stream=0, number=0):
        self.data, self.bytes, self.fields = data, len(data), tuple(fields)
        self.stream, self.stream_id, self.number = stream, stream, number
        self.holes, self.complete, self.end = list(holes), not holes, "timeout" if holes else "complete"
        self.pieces, self.received, self.timestamp, self.last_time = 10, 10 - len(self.holes), 0, 0
        self.device = (2, 0) if on_gpu else (1, 0)
        self.copied = self.released = 0

    def missing(self):
        return self.holes

    def view(self, kind, shape, pitch):
        """As a numpy array, which stands in for a GPU library's."""
        import numpy
        self.viewed = shape
        return numpy.lib.stride_tricks.as_strided(numpy.frombuffer(self.data, kind), shape, (pitch, 1))

    def copy(self, start=0, bytes=None):  # noqa: A002: as the real one has it
        self.copied += bytes
        return self.data[start:start + bytes]

    def release(self):
        self.released += 1
