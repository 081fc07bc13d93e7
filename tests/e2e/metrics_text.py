# SPDX-License-Identifier: BSD-3-Clause
"""A strict reader of Prometheus' text format, as far as gdrcap writes it."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? ([0-9]+(?:\.[0-9]+)?)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def documented():
    """Name -> type, of docs/metrics.md."""
    text = (ROOT / "docs" / "metrics.md").read_text()
    return dict(re.findall(r"^\| `(gdrcap_\w+)` \| (counter|gauge) \|", text, re.M))


def parse(text):
    """Name -> type, and (name, labels) -> value; anything that is not exactly so fails."""
    types, values, helped, family = {}, {}, None, None
    assert text.endswith("\n") and text.isascii(), text[-200:]
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped = line.split(" ")[2]
            assert helped not in types and len(line.split(" ", 3)[3]) > 5, line
        elif line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family == helped and kind in ("counter", "gauge"), line
            types[family] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match and match[1] == family, line
            labels = tuple(LABEL.findall(match[2] or ""))
            assert len(dict(labels)) == len(labels) and (family, labels) not in values, line
            values[family, labels] = float(match[3])
    return types, values


def flat(text):
    """'name{value,...}' -> value, of one text that also is what the documentation says."""
    types, values = parse(text)
    known = documented()
    for name, kind in types.items():
        assert known.get(name) == kind, "%s %s: docs/metrics.md says %s" % (name, kind, known.get(name))
    return {name + "".join("{%s}" % ",".join(value for _, value in labels) if labels else ""): value
            for (name, labels), value in values.items()}


def check_grow(before, after):
    """Counters never fall, and none goes away."""
    for key, value in before.items():
        if key.partition("{")[0].endswith("_total"):
            assert after.get(key, -1) >= value, (key, value, after.get(key))
