# SPDX-License-Identifier: BSD-3-Clause
"""matplotlib's drawings as SVG inside a page: its colours are the page's, light and dark, and its texts are text."""
import io
import itertools
import logging
import re
import warnings
import xml.etree.ElementTree as tree

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402 - after the choice of the backend

logging.getLogger("matplotlib").setLevel(logging.ERROR)
# Stand for variables of page.css: no drawing has them otherwise.
INK, FAINT, SOFT = "#010203", "#010204", "#010205"
SERIES = tuple("#0102%02x" % i for i in range(0x11, 0x1d))
VARIABLES = {INK: "var(--ink)", FAINT: "var(--line)", SOFT: "var(--soft)",
             **{colour: "var(--series-%d)" % (i + 1) for i, colour in enumerate(SERIES)}}
DASHES = ("-", "--", ":", "-.")
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
_numbers = itertools.count(1)


def style():
    """The same whatever the user's own matplotlibrc says; the names of a file are no formulas."""
    matplotlib.rcdefaults()
    pyplot.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "gdrcap", "text.parse_math": False, "font.size": 10,
        "font.family": ["sans-serif"], "font.sans-serif": ["DejaVu Sans"], "axes.spines.top": False, "axes.spines.right": False,
        "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
        "grid.color": FAINT, "axes.facecolor": "none", "figure.facecolor": "none", "axes.grid": True, "legend.frameon": False,
        "path.simplify": True})


def coloured(value):
    return re.sub("#0102[01][0-9a-f]", lambda found: VARIABLES.get(found.group(), found.group()), value)


def inline(figure, title, words):
    """The figure as an <svg> that stands in HTML beside others. title, words: for those who do not see it."""
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # characters that its font lacks
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    wide = figure.get_size_inches()[0]
    pyplot.close(figure)
    tree.register_namespace("", SVG[1:-1])
    tree.register_namespace("xlink", LINK[1:].split("}")[0])
    root = tree.fromstring(out.getvalue())
    prefix = "plot%d-" % next(_numbers)
    for node in root.iter():
        for key, value in node.attrib.items():
            if key == "id":
                node.set(key, prefix + value)
            elif key == LINK and value.startswith("#"):
                node.set(key, "#" + prefix + value[1:])
            elif key in ("style", "clip-path", "fill", "stroke"):
                node.set(key, coloured(value.replace("url(#", "url(#" + prefix).replace("'DejaVu Sans'", "var(--sans)")))
    for found in root.findall(SVG + "metadata"):
        root.remove(found)
    for key in ("width", "height"):
        root.attrib.pop(key, None)
    names = []
    for tag, text in (("desc", words), ("title", title)):
        node = tree.Element(SVG + tag, {"id": prefix + tag})
        node.text = text
        root.insert(0, node)
        names.insert(0, prefix + tag)
    # No smaller than its letters can be read; then its box scrolls.
    root.set("style", "min-width:%dpx" % (60 * wide))
    root.set("role", "img")
    root.set("aria-labelledby", " ".join(names))
    return tree.tostring(root, encoding="unicode")


def spread(values):
    """None, which is not drawn, as NaN."""
    return [float("nan") if value is None else value for value in values]


def time_unit(seconds):
    for unit, scale in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds > 3 * scale:
            return unit, scale
    return "seconds", 1


def draw_rates(panel, times, points):
    times, points = [0.0, *times], [points[0], *points]  # a rate is that of the time before its point
    received = spread(point.gbps for point in points)
    sent = spread(point.sent_gbps for point in points)
    least, most = (spread(getattr(point, key) for point in points) for key in ("least", "most"))
    panel.fill_between(times, least, most, color=SERIES[0], alpha=0.25, linewidth=0, step="pre")
    if any(point.sent_gbps is not None for point in points):
        panel.plot(times, sent, color=SERIES[1], linewidth=1.2, drawstyle="steps-pre", linestyle="--", label="sent")
    if any(point.gbps is not None for point in points):
        panel.plot(times, received, color=SERIES[0], linewidth=1.5, drawstyle="steps-pre", label="received")
    panel.set_ylabel("Gb/s on the wire")


def draw_losses(panel, times, points):
    """Counts so far; those that stay 0 are named, and lie on one line."""
    for i, name in enumerate(points[-1].losses):
        counts = [point.losses.get(name) for point in points]
        if all(count is None for count in counts):
            continue
        panel.plot(times, spread(counts), color=SERIES[(i + 1) % len(SERIES)], linestyle=DASHES[i % len(DASHES)], linewidth=1.5,
                   drawstyle="steps-post", label="%s: %s" % (name, "{:,}".format(counts[-1]) if counts[-1] is not None else "not known"))
    panel.set_ylabel("count so far")
    panel.yaxis.set_major_locator(ticker.MaxNLocator(integer=True, nbins=5))


def course(points, since, title, words):
    """Rates and, where some are counted, losses over time, one over the other."""
    style()
    unit, scale = time_unit(points[-1].time)
    times = [point.time / scale for point in points]
    counted = any(count is not None for point in points for count in point.losses.values())
    figure, panels = pyplot.subplots(1 + counted, 1, sharex=True, squeeze=False, figsize=(10, 5.4 if counted else 3.4),
                                     height_ratios=(3, 2)[:1 + counted])
    panels = panels[:, 0]
    draw_rates(panels[0], times, points)
    if counted:
        draw_losses(panels[1], times, points)
    panels[-1].set_xlabel("%s since %s" % (unit, since))
    for panel in panels:
        most = panel.dataLim.ymax
        panel.set_ylim(0, most * 1.06 if 0 < most < 1e300 else 1)
        panel.yaxis.set_major_formatter("{x:,.10g}")
        if panel.get_legend_handles_labels()[0]:
            panel.legend(loc="lower left", bbox_to_anchor=(0, 1), ncol=4, fontsize=9, borderaxespad=0.2, handlelength=2.5)
    figure.align_ylabels()
    figure.subplots_adjust(left=0.1, right=0.985, top=0.94, bottom=0.1 if counted else 0.15, hspace=0.3)
    return inline(figure, title, words)
