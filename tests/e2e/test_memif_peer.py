# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap as memif's server, and clients that share memory which they could take away again."""
import contextlib
import os
import resource
import signal
import socket
import tempfile
import time

import pytest

import e2e
import memif_peer
import processes

pytestmark = pytest.mark.sanitized

FRAMES = 1000


def capture(path, *arguments):
    return processes.Running(
        "capture", "--port", "net_memif0,role=server,id=0,socket=%s,socket-abstract=no%s" % (
            path, "".join("," + argument for argument in arguments)))


def honest(receiver, path, options=""):
    """After whatever happened, DPDK's own client is served, and all is counted."""
    e2e.run_json("replay", "--quiet", "--tx-port",
                 "net_memif0,role=client,id=0,socket=%s,socket-abstract=no%s" % (path, options),
                 "--frames", str(FRAMES))
    summary = receiver.finish()
    processes.check_counts(summary, valid=FRAMES, lost=0, damaged=0)


def turned_away(file, why):
    """It would have done what DPDK's client does, with memory that ends the process of who reads."""
    with processes.folder() as folder:
        path = os.path.join(folder, "wire")
        with capture(path) as receiver:
            receiver.wait_until_running()
            peer = memif_peer.Peer(path, file)
            peer.make_rings()
            assert not peer.connect(), "a peer that can cut its memory short was connected"
            peer.close()
            honest(receiver, path)
        assert why in receiver.result().err, receiver.result()


def test_a_peer_as_it_should_be():
    """This client can do it: its frames are received."""
    frames = [bytes(12) + b"\x88\xb6" + bytes(100)] * 3
    with processes.folder() as folder:
        path = os.path.join(folder, "wire")
        with capture(path) as receiver:
            receiver.wait_until_running()
            peer = memif_peer.Peer(path, memif_peer.memory_file())
            peer.make_rings()
            assert peer.connect()
            peer.play(frames)
            receiver.wait_until(lambda: peer.played() == len(frames))
            receiver.wait_until(lambda: '"received":3' in receiver.out[-1])
            peer.close()
            honest(receiver, path)
        assert "turned away" not in receiver.result().err, receiver.result()


def test_a_receiver_without_a_core():
    """A sender that is through waits for longer than a busy machine may leave its receiver without a core."""
    with processes.folder() as folder:
        path = os.path.join(folder, "wire")
        with capture(path) as receiver:
            receiver.wait_until_running()
            with processes.Running("replay", "--tx-port", "net_memif0,role=client,id=0,socket=%s,socket-abstract=no" % path,
                                   "--frames", "500", "--rate", "500pps") as sender:
                sender.wait_for_frames("sent", 400)
                stopped = time.monotonic()
                receiver.signal(signal.SIGSTOP)
                time.sleep(1.7)  # to the last frame, and three times as long as one that is stopped in the middle waits
                receiver.signal(signal.SIGCONT)
                held = time.monotonic() - stopped
                given_up = [message for message in sender.finish()["messages"] if "are lost" in message]
            # A machine may be too busy to let the receiver go on before the sender gives up.
            assert not given_up or held > 3.5, given_up
            if not given_up:
                processes.check_counts(receiver.finish(), valid=500, lost=0, damaged=0)


def test_memory_without_a_seal():
    turned_away(memif_peer.memory_file(sealed=False), "can still be made shorter")


def test_a_file_of_a_file_system():
    with tempfile.NamedTemporaryFile() as named:
        named.truncate(memif_peer.REGION_BYTES)
        turned_away(os.dup(named.fileno()), "can still be made shorter")


def test_memory_that_is_shorter_than_said():
    """The rings are there, the frames' memory is not."""
    turned_away(memif_peer.memory_file(size=2 * memif_peer.RING_BYTES),
                "shorter than the peer says")


def test_a_socket_that_cannot_be_had():
    """Each cause has its words."""
    def refused(path, *texts):
        result = e2e.run("capture", "--port",
                         "net_memif0,role=server,socket=%s,socket-abstract=no" % path, expect=1)
        last = result.err.splitlines()[-1]
        assert all(text in last for text in texts), "not said: %s: %s" % (texts, result)

    with processes.folder() as folder:
        path = os.path.join(folder, "wire")
        with capture(path) as receiver:
            receiver.wait_until_running()
            refused(path, "another process has " + path)
            receiver.kill()
            receiver.process.wait()
            refused(path, "left over", "rm " + path)
        os.unlink(path)
        with open(path, "w", encoding="ascii"):
            refused(path, "no socket; give another path")
        refused(os.path.join(folder, "none", "wire"), "no socket can be made in", "No such file")


def left_open(process):
    return [len(os.listdir("/proc/%d/%s" % (process.pid, what))) for what in ("fd", "task")]


def test_peers_that_only_connect():
    """Thousands that leave at once, before the server has greeted them: it goes on, nothing of them is left, and the one that
    sends loses no frame."""
    with processes.folder() as folder:
        path = os.path.join(folder, "wire")
        with capture(path) as receiver:
            receiver.wait_until_running()
            with processes.Running("replay", "--tx-port", "net_memif0,role=client,id=0,socket=%s,socket-abstract=no" % path,
                                   "--rate", "2kpps") as sender:
                sender.wait_for_frames("sent", 1)
                receiver.wait_for_frames("received", 1)
                before = left_open(receiver.process)
                for _ in range(processes.scaled(10000, 3000)):
                    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                        peer.connect(path)
                receiver.wait_until(lambda: left_open(receiver.process) == before)
                sender.signal(signal.SIGINT)
                sent = sender.finish()["frames"]["sent"]
            processes.check_counts(receiver.finish(), valid=sent, lost=0, damaged=0)


def test_peers_that_take_all_descriptors():
    """They get none of the last ones, without which EAL ends the process."""
    with processes.folder() as folder, contextlib.ExitStack() as peers:
        path = os.path.join(folder, "wire")
        with capture(path) as receiver:
            receiver.wait_until_running()
            resource.prlimit(receiver.process.pid, resource.RLIMIT_NOFILE, (200, 200))
            before = left_open(receiver.process)
            for _ in range(300):
                peers.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)).connect(path)
            peers.close()
            receiver.wait_until(lambda: left_open(receiver.process) == before)
            honest(receiver, path)


def test_secret():
    """The README's way: a socket of a directory of ours, and a secret."""
    with processes.folder() as folder:
        path = os.path.join(folder, "wire")
        with capture(path, "secret=abc") as receiver:
            receiver.wait_until_running()
            for secret in (b"", b"abd", b"ab"):
                peer = memif_peer.Peer(path, memif_peer.memory_file())
                peer.make_rings()
                assert not peer.connect(secret), "connected with %r" % secret
                peer.close()
            honest(receiver, path, ",secret=abc")
