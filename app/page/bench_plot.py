# SPDX-License-Identifier: BSD-3-Clause
"""Mpps and Gb/s by frame size, of whole paths and of the consumer, against the line rates of Ethernet: in a page, or as a file."""
import io
import os

import matplotlib
from matplotlib import pyplot

import plots

LINE_GBPS = (100, 200, 400)
WIRE_EXTRA = 20  # preamble, delimiter and gap of a frame, bytes
# To be told apart with every kind of eye; the markers do it in grey, too.
COLOURS = ("#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #000000 #8c564b #7f7f00 #5e3c99 "
           "#b2182b #1b7837").split()
MARKERS = "osD^v<>pP*Xh"
FILE = {"colours": COLOURS, "rates": "#808080", "words": "#606060", "grid": "#e0e0e0"}
PAGE = {"colours": plots.SERIES, "rates": plots.SOFT, "words": plots.SOFT, "grid": plots.FAINT}


def line_rate(gbps, size):
    """Mpps of frames of that size."""
    return gbps * 1e3 / ((size + WIRE_EXTRA) * 8)


def draw_panel(panel, lines, sizes, key, look):
    for gbps in LINE_GBPS:
        rates = [line_rate(gbps, size) * (size * 8e-3 if key == "gbps" else 1)
                 for size in sizes]
        panel.plot(sizes, rates, "--", color=look["rates"], linewidth=1)
        panel.annotate("%u GbE" % gbps, (sizes[-1], rates[-1]), color=look["words"],
                       xytext=(4, -3), textcoords="offset points")
    for i, (group, name, results) in enumerate(lines):
        at = sorted(results)
        panel.plot(at, [results[size][key] for size in at], marker=MARKERS[i % len(MARKERS)],
                   color=look["colours"][i % len(look["colours"])], markersize=4,
                   linestyle=":" if group == "consumer" else "-", label=name)


def draw(lines, title, look):
    sizes = sorted({size for _, _, results in lines for size in results})
    legend = 0.7 + 0.2 * ((len(lines) + 1) // 2)  # inches, under the panels
    figure, panels = pyplot.subplots(1, 2, figsize=(14, 5 + legend))
    for panel, key, label in zip(panels, ("mpps", "gbps"), ("Mpps", "Gb/s (frames with FCS)")):
        draw_panel(panel, lines, sizes, key, look)
        panel.set(xscale="log", yscale="log", xlabel="frame size, bytes with FCS", ylabel=label,
                  xticks=sizes, xticklabels=sizes)
        panel.minorticks_off()
        panel.yaxis.set_major_formatter("{x:g}")
        panel.grid(color=look["grid"])
    figure.suptitle(title)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=2, frameon=False)
    figure.subplots_adjust(left=0.06, right=0.94, top=1 - 0.5 / (5 + legend), wspace=0.2,
                           bottom=(legend + 0.1) / (5 + legend))
    return figure


def inline(lines, title, words):
    plots.style()
    return plots.inline(draw(lines, title, PAGE), title, words)


def picture(lines, title, path):
    """The bytes of a file of that name: .svg, .png or .pdf. ValueError: another one."""
    matplotlib.rcdefaults()
    # Text stays text, and texts of a file are no formulas.
    pyplot.rcParams.update({"svg.fonttype": "none", "text.parse_math": False, "font.size": 9})
    figure = draw(lines, title, FILE)
    # The same picture of the same results.
    pyplot.rcParams["svg.hashsalt"] = "gdrcap"
    out = io.BytesIO()
    kind = os.path.splitext(path)[1][1:].lower() or "png"
    figure.savefig(out, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()
