# SPDX-License-Identifier: BSD-3-Clause
"""What page.html shows: blocks of text, tables and drawings."""


def table(caption, heads, rows, more=0, note=None, numbers=True):
    """The first cell of a row is its head. numbers: the other cells stand right. more: rows that are left out."""
    left = "… and %s more" % "{:,}".format(more) if more else None
    return {"kind": "table", "caption": caption, "heads": heads, "rows": rows, "numbers": numbers, "wide": False,
            "note": " ".join(filter(None, (left, note)))}


def facts(caption, rows, note=None):
    """Name, value, and what it means."""
    return {"kind": "facts", "caption": caption, "rows": rows, "note": note, "numbers": False,
            "wide": not any(row[2] for row in rows)}


def listed(caption, lines):
    return {"kind": "list", "caption": caption, "lines": lines}


def sentence(text):
    return {"kind": "text", "text": text}


def figure(caption, svg):
    return {"kind": "figure", "caption": caption, "svg": svg}
