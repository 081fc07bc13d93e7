# SPDX-License-Identifier: BSD-3-Clause
"""A page that shows a run while it goes on: ``python3 -m gdrcap.live CONFIG``. docs/live.md explains it."""
