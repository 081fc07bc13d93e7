# SPDX-License-Identifier: BSD-3-Clause
"""``python3 -m gdrcap.live``."""
import sys

from .cli import main

sys.exit(main())
