# SPDX-License-Identifier: BSD-3-Clause
"""Receive queues polled by the GPU itself (--rx-by gpu), their completions in its memory, on software ConnectX cards
which write there through the CUDA driver: what tests/e2e/test_own_fronts.py shows with threads in the GPU's place.
77 without a GPU."""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

import pytest

import connectx  # noqa: E402
import e2e  # noqa: E402
import test_own_fronts as fronts  # noqa: E402
import test_own_rx as own  # noqa: E402

pytestmark = [pytest.mark.alone, pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="no GPU here")]
# Such a card writes a completion in two copies.
PATCHES = ((connectx, "DEVICE", ("--gpu", "0", "--memory", "device")), (own, "WHO", "gpu"), (own, "MANY", 50000),
           (own, "WRAPS", 70000), (own, "FEW", 10000), (fronts, "FEW", 10000))

test_many = own.test_million
test_queues = own.test_queues
test_sizes = own.test_sizes
test_few_slots = own.test_few_slots
test_stale_check = own.test_stale_check
test_saved = own.test_saved
test_cable = own.test_cable
test_lost_in_the_card = own.test_lost_in_the_card
test_wrong_owner = own.test_wrong_owner
test_receive_error = own.test_receive_error
test_broken_order = own.test_broken_order
test_error_in_one_of_several = fronts.test_error_in_one_of_several


def test_no_receiver_thread():
    """No thread of gdrcap's receives, and Ctrl-C ends kernels as everything else."""
    with fronts.running("--queues", "2") as run:
        run.wait_for_frames("received", own.FEW)
        names = fronts.threads_of(run.process)
        run.signal(signal.SIGINT)
        run.finish(0)
    assert not [name for name in names if name.startswith("gdrcap-rx")], names
    done = connectx.Run(run.result())
    e2e.check_perfect(done.summary)
    assert done.summary["rx_by"] == "gpu", done


def by_program(name, *arguments):
    """A program of the API's, on the cards."""
    program = os.environ.get(name)
    if not program:
        raise e2e.Skip("%s is not set" % name)
    done = subprocess.run([program, str(own.FEW), "port=" + connectx.port(connectx.RECEIVER),
                           "tx_port=" + connectx.port(connectx.SENDER), "rx_by=gpu", *arguments],
                          env=connectx.environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout.strip().endswith("PASS"), (done.returncode, done.stdout, done.stderr)


def test_kernel_of_the_caller():
    """A running kernel of the caller's takes the batches that the front publishes, and gives them back."""
    by_program("API_CUDA")
    by_program("API_CUDA", "rx_strides=64")


def test_streams_of_the_caller():
    """So do kernels in CUDA streams that wait for batches."""
    by_program("ON_STREAM_CUDA")
