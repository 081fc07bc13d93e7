#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows files that `gdrcap bench --save` wrote: as a table for each stage; or, with --output, as a
picture of Mpps and Gb/s by frame size, of whole paths and of the consumer, against the line rates of
Ethernet, of one machine or of several beside each other.

Drawing needs matplotlib: sudo apt-get install python3-matplotlib
"""
import argparse
import json
import sys

LINE_GBPS = (100, 200, 400)
WIRE_EXTRA = 20  # preamble, delimiter and gap of a frame, bytes
DRAWN = {"path": 8, "consumer": 4}  # more cannot be told apart
# To be told apart with every kind of eye; the markers do it in grey, too.
COLOURS = ("#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #000000 #8c564b #7f7f00 #5e3c99 "
           "#b2182b #1b7837").split()
MARKERS = "osD^v<>pP*Xh"
WORDS = (("burst", "burst %s"), ("blocks", "%s block"), ("queues", "%s queue"), ("pattern", "%s"),
         ("memory", "%s"), ("source", "%s"))


# ---- the table ----

def figure(value):
    """Four digits that count, with a unit from 100,000 on."""
    unit = 0
    while isinstance(value, (int, float)) and value >= 99999.5:
        value, unit = value / 1000, unit + 1
    if value is None or isinstance(value, str):
        return value or "-"
    digits = 0 if value == int(value) and not unit else max(0, 4 - len(str(int(value))))
    return "%.*f%s" % (digits, value, " kMGTPE"[unit].strip())


def cells_of(result, unit):
    """Heading -> text of a row."""
    cells = {key.replace("frame_bytes", "frame"): figure(result[key])
             for key in ("frame_bytes", "burst", "blocks", "queues", "pattern", "memory", "source")}
    if result["error"]:
        return cells
    median, runs = result["median"], result["runs"]
    far = max(result["most"] - median, median - result["least"])
    speeds = result.get("core_speed")
    latency = result["latency"] or {}
    cells.update({
        unit: figure(median),
        "spread": "+-%.1f%%" % (100 * far / median) if median and len(runs) > 1 else "-",
        "op/ns": figure(speeds[runs.index(median)] if speeds else None),
        "limit": figure(result["limit"]),
        "of limit": "%.1f%%" % (100 * result["of_limit"]) if result["of_limit"] else "-"})
    rates = {"Mpps": result["mpps"], "Gb/s": result["gbps"]}
    cells.update({head: figure(rate) for head, rate in rates.items() if head != unit})
    cells.update({key[:-3]: figure(latency.get(key))
                  for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns")})
    if result["frames"]:
        every = "all" if result["sequence_checked"] else "bytes"
        cells.update({"frames": figure(result["frames"]),
                      "validated": every if result["validated"] == result["frames"]
                      else str(result["validated"] or "none"),
                      "lost": str(result["lost"]), "damaged": str(result["damaged"])})
    return cells


def print_stage(stage, results):
    """Columns in which something stands, and notes by number."""
    rows = [cells_of(result, stage["unit"]) for result in results]
    heads = [head for head in dict.fromkeys(head for row in rows for head in row)
             if head in (stage["unit"], "lost") or
             any(row.get(head, "-") not in ("-", "0") for row in rows)]
    widths = [max(len(head), *(len(row.get(head, "-")) for row in rows)) for head in heads]
    notes = []
    print("\n%s  %s\n  in %s, %s is better%s" % (
        stage["id"], stage["what"], stage["unit"], "less" if stage["less_is_better"] else "more",
        "; limited by " + stage["limit"] if stage["limit"] else ""))
    print(" ", *(head.rjust(width) for head, width in zip(heads, widths)))
    for row, result in zip(rows, results):
        said = [text for text in (result["error"], result["note"]) if text]
        notes += [text for text in said if text not in notes]
        print(" ", *(row.get(head, "-").rjust(width) for head, width in zip(heads, widths)),
              *("[%u]" % (notes.index(text) + 1) for text in said))
    for i, text in enumerate(notes):
        print("  [%u] %s" % (i + 1, text))


def printable(values):
    """A stranger's file moves no cursor."""
    return {key: "".join(c if c.isprintable() else "?" for c in value)
            if isinstance(value, str) else value for key, value in values.items()}


def print_report(report):
    machine = report["machine"]
    print("%s bench%s" % (report["version"], "" if report["complete"] else ", not complete"))
    for key, value in list(machine.items()) + list(report["parameters"].items()):
        print("  %-14s%s" % (key, "-" if value is None else value))
    for stage in report["stages"]:
        results = [result for result in report["results"] if result["stage"] == stage["id"]]
        if results:
            print_stage(stage, results)


# ---- the picture ----

def title_of(result):
    parts = [result["stage"]]
    for key, words in WORDS:
        if result[key] is not None:
            plural = "s" if key in ("blocks", "queues") and result[key] != 1 else ""
            parts.append(words % result[key] + plural)
    return ", ".join(parts)


def kinds_of(report):
    """Lines of a report: (group, title, {frame size: result}), of all but the frame's size."""
    groups = {stage["id"]: stage["group"] for stage in report["stages"]}
    lines = {}
    for result in report["results"]:
        group = groups.get(result["stage"])
        if group in DRAWN and not result["error"] and result["frame_bytes"] and result["mpps"]:
            lines.setdefault((group, title_of(result)), {})[result["frame_bytes"]] = result
    return [(group, title, sizes) for (group, title), sizes in lines.items()]


def chosen(lines):
    """Of those that differ in bursts and blocks only the one with most sizes, then the fastest."""
    best = {}
    for group, title, sizes in lines:
        result = sizes[min(sizes)]
        kin = tuple(result[key] for key in ("stage", "queues", "pattern", "memory", "source"))
        rank = (len(sizes), result["mpps"])
        if len(sizes) > 1 and (kin not in best or rank > best[kin][0]):
            best[kin] = (rank, group, title, sizes)
    drawn = [line[1:] for line in best.values()]
    return [line for group, most in DRAWN.items()
            for line in [each for each in drawn if each[0] == group][:most]]


def line_rate(gbps, size):
    """Mpps of frames of that size."""
    return gbps * 1e3 / ((size + WIRE_EXTRA) * 8)


def draw(lines, title, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Text stays text, and texts of a file are no formulas.
    pyplot.rcParams.update({"svg.fonttype": "none", "text.parse_math": False, "font.size": 9})
    sizes = sorted({size for _, _, results in lines for size in results})
    legend = 0.7 + 0.2 * ((len(lines) + 1) // 2)  # inches, under the panels
    figure, panels = pyplot.subplots(1, 2, figsize=(14, 5 + legend))
    for panel, key, label in zip(panels, ("mpps", "gbps"), ("Mpps", "Gb/s (frames with FCS)")):
        for gbps in LINE_GBPS:
            rates = [line_rate(gbps, size) * (size * 8e-3 if key == "gbps" else 1)
                     for size in sizes]
            panel.plot(sizes, rates, "--", color="#808080", linewidth=1)
            panel.annotate("%u GbE" % gbps, (sizes[-1], rates[-1]), color="#606060",
                           xytext=(4, -3), textcoords="offset points")
        for i, (group, name, results) in enumerate(lines):
            at = sorted(results)
            panel.plot(at, [results[size][key] for size in at], marker=MARKERS[i % len(MARKERS)],
                       color=COLOURS[i % len(COLOURS)], markersize=4,
                       linestyle=":" if group == "consumer" else "-", label=name)
        panel.set(xscale="log", yscale="log", xlabel="frame size, bytes with FCS", ylabel=label,
                  xticks=sizes, xticklabels=sizes)
        panel.minorticks_off()
        panel.yaxis.set_major_formatter("{x:g}")
        panel.grid(color="#e0e0e0")
    figure.suptitle(title)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=2, frameon=False)
    figure.subplots_adjust(left=0.06, right=0.94, top=1 - 0.5 / (5 + legend), wspace=0.2,
                           bottom=(legend + 0.1) / (5 + legend))
    # The same picture of the same results.
    pyplot.rcParams["svg.hashsalt"] = "gdrcap"
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("file", nargs="+", help="of gdrcap bench --save")
    parser.add_argument("-o", "--output", help="draw a picture: .svg, .png or .pdf")
    options = parser.parse_args()
    lines, machines = [], []
    for path in options.file:
        try:
            with open(path, encoding="utf-8") as file:
                report = json.load(file, object_hook=printable)
            if report["schema"] != "gdrcap.bench/1":
                raise ValueError("its schema is not gdrcap.bench/1")
            machine = report["machine"]["gpu"] or report["machine"]["cpu"]
            found = kinds_of(report)
            if not options.output:
                print_report(report)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            sys.exit("%s: no result of gdrcap bench: %s" % (path, error))
        if len(options.file) > 1:
            found = [(group, "%s: %s" % (machine, title), sizes) for group, title, sizes in found]
        lines += chosen(found)
        machines.append("%s, %s" % (report["version"], machine))
    if not options.output:
        return
    if not lines:
        sys.exit("nothing to draw: measure frames of two sizes: gdrcap bench --stages path,consumer")
    try:
        draw(lines, "; ".join(dict.fromkeys(machines)), options.output)
    except ImportError:
        sys.exit("drawing needs matplotlib: sudo apt-get install python3-matplotlib")
    except (OSError, ValueError) as error:
        sys.exit("%s: %s" % (options.output, error))


if __name__ == "__main__":
    main()
