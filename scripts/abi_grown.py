#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the dump NOW of the ABI without the members that structures may get at their end, as lib/include/gdrcap.h says
under "Sizes": those that results are put into, with the caller's size, and those that the library hands out by pointer.
abidiff's own suppressions let a member move, too.

usage: abi_grown.py KEPT NOW
"""
import pathlib
import re
import sys

GROWING = ("summary", "cause", "port", "rule", "damage", "event", "gap", "gpu_queue", "gpu_images", "image_counts",
           "incomplete", "tx_counts", "gpu_tx", "batch", "step", "option")


def definition(dump, name):
    found = re.search(r"^ *<class-decl name='gdrcap_%s' size-in-bits='\d+'.*?^ *</class-decl>\n" % name, dump, re.S | re.M)
    return found.group(0) if found else None


def members(text):
    return re.findall(r"<data-member .*?</data-member>", text, re.S)


def main(kept, now):
    for name in GROWING:
        old, new = definition(kept, name), definition(now, name)
        if old and new and len(members(new)) > len(members(old)) and members(new)[:len(members(old))] == members(old):
            now = now.replace(new, old)
            print("gdrcap_%s has more members at its end" % name)
    return now


if __name__ == "__main__":
    now = pathlib.Path(sys.argv[2])
    now.write_text(main(pathlib.Path(sys.argv[1]).read_text(), now.read_text()))
