# SPDX-License-Identifier: BSD-3-Clause
"""A memif client, written from the protocol (version 2.0), that may do what DPDK's never would."""
import fcntl
import mmap
import os
import socket
import struct

ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
VERSION, COOKIE, MESSAGE_BYTES = 0x0200, 0x3E31F20, 128
RING_LOG2, BUFFER_BYTES = 10, 2048
RING_BYTES = 128 + 16 * (1 << RING_LOG2)
REGION_BYTES = 2 * RING_BYTES + 2 * BUFFER_BYTES * (1 << RING_LOG2)
SEAL_SHRINK = 2  # F_SEAL_SHRINK


class Peer:
    """Connects to a server's socket; its one region is `file`, which it says is of full size."""

    def __init__(self, path, file):
        self.file = file
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.connect(path)
        assert self.receive()[0] == HELLO

    def receive(self):
        """A message's type and content; None when the server has hung up."""
        data = self.channel.recv(MESSAGE_BYTES)
        return (struct.unpack_from("=H", data)[0], data[2:]) if data else None

    def send(self, kind, content, descriptor=None):
        message = (struct.pack("=H", kind) + content).ljust(MESSAGE_BYTES, b"\0")
        rights = [] if descriptor is None else [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=i", descriptor))]
        self.channel.sendmsg([message], rights)

    def make_rings(self):
        """In the file, which has room for them: one each way, of empty descriptors."""
        self.memory = mmap.mmap(self.file, os.fstat(self.file).st_size)
        for ring in range(2):
            struct.pack_into("=IHH", self.memory, ring * RING_BYTES, COOKIE, 0, 0)

    def connect(self, secret=b""):
        """True when the server takes the connection, False when it hangs up, however early."""
        try:
            return self.shake_hands(secret)
        except (BrokenPipeError, ConnectionResetError):
            return False

    def shake_hands(self, secret):
        self.send(INIT, struct.pack("=HIB24s32s", VERSION, 0, 0, secret, b"test"))
        self.send(ADD_REGION, struct.pack("=HQ", 0, REGION_BYTES), self.file)
        for ring in range(2):
            interrupt = os.eventfd(0)
            self.send(ADD_RING, struct.pack("=HHHIBH", 1 - ring, 0, 0, ring * RING_BYTES,
                                            RING_LOG2, 0), interrupt)
            os.close(interrupt)
        self.send(CONNECT, struct.pack("=32s", b"test"))
        while True:
            message = self.receive()
            if message is None or message[0] == DISCONNECT:
                return False
            if message[0] == CONNECTED:
                return True

    def play(self, frames):
        for i, frame in enumerate(frames):
            at = 2 * RING_BYTES + i * BUFFER_BYTES
            self.memory[at:at + len(frame)] = frame
            struct.pack_into("=HHIII", self.memory, 128 + 16 * i, 0, 0, len(frame), at, 0)
        struct.pack_into("=H", self.memory, 6, len(frames))

    def played(self):
        """Frames that the server has taken."""
        return struct.unpack_from("=H", self.memory, 64)[0]

    def close(self):
        self.channel.close()
        os.close(self.file)


def memory_file(size=REGION_BYTES, sealed=True, flags=os.MFD_ALLOW_SEALING):
    file = os.memfd_create("memif region", flags)
    os.ftruncate(file, size)
    if sealed:
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEAL_SHRINK)
    return file
