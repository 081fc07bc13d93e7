#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The keys of the JSON summary, from lib/summary/keys.def into the tables of docs/json.md.

usage: json_keys.py [--check]      without --check docs/json.md is written anew
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS, PAGE = ROOT / "lib/summary/keys.def", ROOT / "docs/json.md"
BEGIN, END = "<!-- keys: %s, written by scripts/json_keys.py -->", "<!-- end of keys -->"
# Sections of keys.def, by what stands before their keys, in the order of the tables.
TABLES = {"run": ("KEYS_RUN", "KEYS_FRAMES", "KEYS_BITS", "KEYS_MEMORY", "KEYS_IMAGE", "KEYS_IMAGES", "KEYS_QUEUE", "KEYS_STREAM", "KEYS_STAGE"),
          "damage": ("KEYS_DAMAGE",)}
STRING = r'"((?:[^"\\]|\\.)*)"'
ROW = re.compile(r"^(OBJECT|KEY|SETUP|PART|NOTE)\((.*?)\)$", re.M | re.S)


def strings(text):
    """The literals of C in a text, those that only spaces part as one."""
    found, end = [], None
    for match in re.finditer(STRING, text):
        piece = match[1].replace('\\"', '"').replace("\\\\", "\\")
        if end is not None and not text[end:match.start()].strip():
            found[-1] += piece
        else:
            found.append(piece)
        end = match.end()
    return found


def sections():
    """{section: [(path, type, meaning)]}, paths with what stands before them."""
    found = {}
    for name, prefix, body in re.findall(r"#ifdef (\w+) /\* (.*?) \*/\n(.*?)#endif", KEYS.read_text(encoding="utf-8"), re.S):
        before = "" if prefix == "the object" or name == "KEYS_DAMAGE" else prefix
        rows = found[name] = []
        for _, row in ROW.findall(body):
            texts = strings(row)
            rows.append((before + texts[0], texts[1], texts[-1]))
    return found


def table(found, names):
    lines = ["| key | type | meaning |", "|---|---|---|"]
    for name in names:
        lines += ["| `%s` | %s | %s |" % row for row in found[name]]
    return "\n".join(lines)


def main(arguments):
    found, text = sections(), PAGE.read_text(encoding="utf-8")
    written = text
    for name, names in TABLES.items():
        begin = BEGIN % name
        if begin not in text:
            sys.exit("json_keys: docs/json.md has no line \"%s\"" % begin)
        head, rest = written.split(begin, 1)
        written = head + begin + "\n" + table(found, names) + "\n" + END + rest.split(END, 1)[1]
    if arguments == ["--check"]:
        if written != text:
            sys.exit("json_keys: docs/json.md is not what lib/summary/keys.def says: run scripts/json_keys.py")
        print("%d keys" % sum(map(len, found.values())))
    elif arguments:
        sys.exit(__doc__)
    else:
        PAGE.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
