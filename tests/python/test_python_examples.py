# SPDX-License-Identifier: BSD-3-Clause
"""The examples, as their first lines say, with files in the place of windows."""
import importlib.util
import json
import os
import re
import signal
import struct
import subprocess
import sys

import harness
import gdrcap
import e2e


def example(name, *arguments, env=None):
    if importlib.util.find_spec("matplotlib") is None:
        raise harness.Skip("matplotlib is not installed in this environment")
    done = subprocess.run([sys.executable, str(harness.ROOT / "examples" / "python" / name), *arguments], check=False,
                          capture_output=True, text=True, timeout=harness.TIMEOUT,
                          env=dict(os.environ, PYTHONPATH=harness.PACKAGE, MPLBACKEND="Agg", **(env or {})))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pictures(block, pieces=4, piece=1000):
    """Frames of a GVSP image of which all bytes are its number."""
    packets = [struct.pack(">HHIHHQIIIIIHH", 0, block, 1 << 24, 0, 1, 5, 0x01080001, piece, pieces, 0, 0, 0, 0)]
    packets += [struct.pack(">HHI", 0, block, 3 << 24 | index + 1) + bytes([block]) * piece for index in range(pieces)]
    packets.append(struct.pack(">HHIHHI", 0, block, 2 << 24 | pieces + 1, 0, 1, pieces))
    ends = {"dst_mac": "02:00:00:00:00:99", "src_mac": "02:00:00:00:00:07", "dst_ip": "10.0.0.1", "src_ip": "10.0.0.2",
            "dst_port": 5000, "src_port": 5001}
    return [gdrcap.headers(packet, **ends) + packet for packet in packets]


def test_answer_camera():
    """A camera on the other end of a veth pair is told of each image."""
    harness.need_numpy()
    with e2e.VethPair() as pair, harness.Folder() as folder:
        path = os.path.join(folder, "config.yaml")
        port = "net_af_packet0,iface=%s"
        with open(path, "w") as file:
            json.dump({"port": port % pair.right, "tx_port": port % pair.right, "gpu": "host", "memory": "host",
                       "match": ["dst_port=5000"], "image": "gvsp,bytes=4000,piece=1000,ring=8,timeout=60"}, file)
        process = subprocess.Popen([sys.executable, str(harness.ROOT / "examples" / "python" / "answer_camera.py"), path],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, PYTHONPATH=harness.PACKAGE))
        camera = {"port": "net_af_packet1,iface=" + pair.left, "tx_port": "net_af_packet1,iface=" + pair.left, "gpu": "host",
                  "consumer": "host", "sender": "host", "match": ["dst_port=4001"]}
        answers = []
        with gdrcap.Session(camera) as session:
            batches = session.batches()
            for block in range(1, 256):
                session.senders[0].send(pictures(block), timeout=harness.TIMEOUT)
                # Until the first answer it may not run yet.
                if batch := batches.wait(harness.TIMEOUT if answers else 0.5):
                    with batch:
                        answers += [bytes(memoryview(one)[42:62]) for one in batch]
                if len(answers) > 10 or process.poll() is not None:
                    break
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=harness.TIMEOUT)
    assert process.returncode == 0 and not out, out + err
    assert len(answers) > 10, (answers, out, err)
    for answer in answers:
        name, number, mean = struct.unpack(">4sQd", answer)
        assert name == b"MEAN" and mean == number, (name, number, mean)


def is_png(path):
    with open(path, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_live_camera():
    harness.need_numpy()
    with harness.Folder() as folder:
        path = os.path.join(folder, "picture.png")
        said = example("live_camera.py", path, "--gpu", "host")
        # each fifth lacks a packet; one that waits for a core longer than `timeout` sees the next ones first
        assert re.search("picture 10, (timeout|newer)", said), said
        is_png(path)


def test_prbs_loss():
    with harness.Folder() as folder:
        path = os.path.join(folder, "loss.png")
        assert "pass: " in example("prbs_loss.py", "--file", path, "--seconds", "1", "--gpu", "host")
        is_png(path)
