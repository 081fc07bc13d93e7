# SPDX-License-Identifier: BSD-3-Clause
"""Results of gdrcap bench (docs/bench.md): as a table for each stage, and which of them are drawn."""
import values
from blocks import facts, figure, listed, sentence, table

DRAWN = {"path": 8, "consumer": 4}  # more cannot be told apart
ROWS_MOST = 1000  # of a page
STAGES_MOST = 100
WORDS = (("burst", "burst %s"), ("blocks", "%s block"), ("queues", "%s queue"), ("pattern", "%s"),
         ("memory", "%s"), ("source", "%s"))
# What a file that only says it is a bench may raise.
ERRORS = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError)


def printable(found):
    """A stranger's file moves no cursor, and its texts have an end."""
    if isinstance(found, dict):
        return {values.text(key, 60): printable(each) for key, each in found.items()}
    if isinstance(found, list):
        return [printable(each) for each in found]
    return (values.text(found) or "") if isinstance(found, str) else found


# ---- the tables ----

def digits(value):
    """Four digits that count, with a unit from 100,000 on."""
    unit = 0
    while isinstance(value, (int, float)) and value >= 99999.5:
        value, unit = value / 1000, unit + 1
    if value is None or isinstance(value, str):
        return value[:60] if value else "-"
    shown = 0 if value == int(value) and not unit else max(0, 4 - len(str(int(value))))
    return "%.*f%s" % (shown, value, " kMGTPE"[unit].strip())


def cells_of(result, unit):
    """Heading -> text of a row."""
    cells = {key.replace("frame_bytes", "frame"): digits(result[key])
             for key in ("frame_bytes", "burst", "blocks", "queues", "pattern", "memory", "source")}
    if result["error"]:
        return cells
    median, runs = result["median"], result["runs"]
    far = max(result["most"] - median, median - result["least"])
    speeds = result.get("core_speed")
    latency = result["latency"] or {}
    cells.update({
        unit: digits(median),
        "spread": "+-%.1f%%" % (100 * far / median) if median and len(runs) > 1 else "-",
        "op/ns": digits(speeds[runs.index(median)] if speeds else None),
        "limit": digits(result["limit"]),
        "of limit": "%.1f%%" % (100 * result["of_limit"]) if result["of_limit"] else "-"})
    rates = {"Mpps": result["mpps"], "Gb/s": result["gbps"]}
    cells.update({head: digits(rate) for head, rate in rates.items() if head != unit})
    cells.update({key[:-3]: digits(latency.get(key))
                  for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns")})
    if result["frames"]:
        every = "all" if result["sequence_checked"] else "bytes"
        cells.update({"frames": digits(result["frames"]),
                      "validated": every if result["validated"] == result["frames"]
                      else str(result["validated"] or "none"),
                      "lost": str(result["lost"]), "damaged": str(result["damaged"])})
    return cells


def rows_of(stage, results):
    """Headings of columns in which something stands, rows, what each row has besides, and notes by number."""
    rows = [cells_of(result, stage["unit"]) for result in results]
    heads = [head for head in dict.fromkeys(head for row in rows for head in row)
             if head in (stage["unit"], "lost") or
             any(row.get(head, "-") not in ("-", "0") for row in rows)]
    notes, marks = [], []
    for result in results:
        said = [text for text in (result["error"], result["note"]) if text]
        notes += [text for text in said if text not in notes]
        marks.append(["[%u]" % (notes.index(text) + 1) for text in said])
    return heads, [[row.get(head, "-") for head in heads] for row in rows], marks, notes


def sentence_of(stage):
    return "in %s, %s is better%s" % (stage["unit"], "less" if stage["less_is_better"] else "more",
                                      "; limited by " + stage["limit"] if stage["limit"] else "")


def stages_of(report):
    """Stages that have results, with these."""
    for stage in report["stages"]:
        results = [result for result in report["results"] if result["stage"] == stage["id"]]
        if results:
            yield stage, results


def print_stage(stage, results):
    heads, rows, marks, notes = rows_of(stage, results)
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows)]
    print("\n%s  %s\n  %s" % (stage["id"], stage["what"], sentence_of(stage)))
    print(" ", *(head.rjust(width) for head, width in zip(heads, widths)))
    for row, said in zip(rows, marks):
        print(" ", *(cell.rjust(width) for cell, width in zip(row, widths)), *said)
    for i, text in enumerate(notes):
        print("  [%u] %s" % (i + 1, text))


def machine_of(report):
    return list(report["machine"].items()) + list(report["parameters"].items())


def print_report(report):
    print("%s bench%s" % (report["version"], "" if report["complete"] else ", not complete"))
    for key, value in machine_of(report):
        print("  %-14s%s" % (key, "-" if value is None else value))
    for stage, results in stages_of(report):
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


def picture_of(reports):
    """Lines of all of them, and what they are of."""
    lines, machines = [], []
    for report in reports:
        machine = report["machine"]["gpu"] or report["machine"]["cpu"]
        found = kinds_of(report)
        if len(reports) > 1:
            found = [(group, "%s: %s" % (machine, title), sizes) for group, title, sizes in found]
        lines += chosen(found)
        machines.append("%s, %s" % (report["version"], machine))
    return lines, "; ".join(dict.fromkeys(machines))


# ---- the page ----

def stage_blocks(stage, results, room):
    heads, rows, marks, notes = rows_of(stage, results[:room])
    heads += ["notes"] if notes else []
    cells = [(*row, " ".join(said)) if notes else row for row, said in zip(rows, marks)]
    found = [table("Stage %s" % stage["id"], heads, cells, len(results) - len(rows),
                   "%s. Figures are %s." % (stage["what"][:1].upper() + stage["what"][1:], sentence_of(stage)))]
    return found + ([listed("Notes of %s" % stage["id"], ["[%u] %s" % (i + 1, text) for i, text in enumerate(notes)])] if notes else [])


def picture_block(report):
    import bench_plot

    lines, title = picture_of([report])
    if not lines:
        return []
    words = "; ".join("%s: %s Mpps at %s bytes" % (name, digits(sizes[min(sizes)]["mpps"]), min(sizes)) for _, name, sizes in lines)
    return [figure("Whole paths (lines) and the consumer (dotted) by frame size, beside the line rates of Ethernet.",
                   bench_plot.inline(lines, title, words))]


def section(report, name):
    found = {"title": "%s, bench" % name, "state": "unknown", "verdict": "", "headline": ""}
    error = report.get("error")
    if error:
        return {**found, "blocks": [listed("Why nothing was measured", [values.say(error)])]}
    blocks = [] if report["complete"] else [sentence("Not complete: the bench was ended, or points were left out.")]
    blocks += picture_block(report)
    blocks.append(facts("Machine and parameters", [
        (key.replace("_", " "), values.UNKNOWN if value is None else values.words(value) if isinstance(value, list)
         else values.yes(value) if isinstance(value, bool) else "{:,}".format(value) if isinstance(value, (int, float)) else str(value), "")
        for key, value in machine_of(report)[:64]]))
    room = ROWS_MOST
    for stage, results in list(stages_of(report))[:STAGES_MOST]:
        if room > 0:
            blocks += stage_blocks(stage, results, room)
            room -= len(results)
    blocks.append(facts("Versions", [("written by", values.say(report["version"]), ""), ("schema", values.say(report["schema"], 60), "")]))
    return {**found, "blocks": blocks}
