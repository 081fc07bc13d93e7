# SPDX-License-Identifier: BSD-3-Clause
"""The GPU front's kernel with one of its orderings taken out, as one file: its tests must fail.

usage: front_mutant.py ROOT MUTANT OUTPUT
"""
import pathlib
import sys

HEADERS = ("front.cuh", "front_poll.cuh", "front_keep.cuh")
# What is there once, and what stands there in the mutant.
MUTANTS = {
    # slots go back as soon as their frames are published
    "free": ("return cq_prefix(is);",
             "return min(32u, (uint32_t)(look(s.turn) >> 32) - freed + (is & 0));"),
    # and though the host still holds them
    "lease": ("front_through(k.freed, look(s.lease), look(s.leases))", "k.freed"),
    # bursts are published over verdicts that nobody has read
    "room": ("*(volatile uint32_t *)&s.room_turn = seen + s.ring.ring.burst_mask + 1;",
             "*(volatile uint32_t *)&s.room_turn = k.freed + s.ring.ring.burst_mask + 1;"),
    # the card is told of more slots than have come back
    "repost": ("cq_record((k.posted - front.first) >>", "cq_record((k.posted - front.first + 256) >>"),
    # without the fence, or the release; whether that is seen is the GPU's to say
    "arrived_fence": ("fence_acquire_system(); /* ARRIVED */", ""),
    "publish_release": ("store_release_gpu((uint64_t *)&ring.ready[slot].word, word); /* PUBLISH */",
                        "store_relaxed_system((uint64_t *)&ring.ready[slot].word, word);"),
    "repost_fence": ("fence_release_system(); /* REPOST */", ""),
}


def main(root, mutant, output):
    folder = pathlib.Path(root) / "kernels/cuda"
    names = ['#include "kernels/cuda/%s"\n' % name for name in HEADERS]
    text = "".join((folder / name).read_text() for name in HEADERS + ("front.cu",))
    for name in names:
        text = text.replace(name, "")
    old, new = MUTANTS[mutant]
    if text.count(old) != 1:
        return "front_mutant.py: \"%s\" stands %d times in the front" % (old, text.count(old))
    pathlib.Path(output).write_text(text.replace(old, new))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
