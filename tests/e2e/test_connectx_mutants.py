# SPDX-License-Identifier: BSD-3-Clause
"""The tests' own test: with a defect planted in the software cards, for each of its runs, a test
must fail. Defects of the product: tests/planted.py."""
import os

import pytest

import connectx
import test_connectx
import test_connectx_faults
import test_connectx_steering

pytestmark = pytest.mark.long


def caught(defect, test, *arguments):
    os.environ["CONNECTX_PLANT"] = defect
    try:
        test(*arguments)
    except AssertionError:
        return
    finally:
        del os.environ["CONNECTX_PLANT"]
    raise AssertionError("%s is not seen by %s" % (defect, test.__name__))


def test_flipped_bit():
    """One bit in one of its frames."""
    caught("1.flip=20", test_connectx.test_few_frames)


def test_wrong_owner_bit():
    caught("1.wrong_owner=20", test_connectx.test_few_frames)


def test_completion_before_data():
    caught("1.stale=20,1.stale_us=500000", test_connectx.test_few_frames)


def test_loosened_match():
    caught("1.loose_match=1", test_connectx_steering.test_capture_among_others, connectx.DEFAULT)


def test_no_key_check():
    caught("1.no_key_check=1", test_connectx_faults.test_revoked_key, connectx.DEFAULT)


def test_frame_lost_without_a_count():
    caught("0.drop=30", test_connectx.test_few_frames)


def test_no_flow_control():
    """Without it the sender is too fast for a million frames to arrive."""
    caught("pause=0", test_connectx_faults.test_flow_control)
