#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Man pages, in mdoc: of the program and each command from what --help says, of the configuration from its tables.

usage: man.py PROGRAM CONFIGURATION.md FOLDER      --help and the tables are the option table's, which tests see to
"""
import datetime
import os
import pathlib
import re
import subprocess
import sys
import textwrap

CONFIG = "gdrcap.yaml"
OPTION = re.compile(r"  --(\[no-\])?([a-z0-9-]+)(?: ([^ ]+))?(?:  +|$)(.*)")
ENVIRONMENT = (("NO_COLOR", "not empty: text on a terminal has no colours."),
               ("NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID",
                "set by a service manager, which is told how a run goes, as sd_notify(3) describes."))


def escape(text):
    """Of roff; the dashes of options stay dashes, for who copies them."""
    text = text.replace("\\", "\\e").replace("--", "\\-\\-").replace("()", "(\\&)")
    text = re.sub(r"(?<![\w\\-])-(?=[\w.])", r"\\-", text)
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.M)


def prose(text):
    """A sentence a line, as roff wants it, and short ones."""
    sentences = re.split(r"(?<=[A-Za-z0-9)]{2}\.) +(?=[A-Z])", " ".join(text.split()))
    return escape("\n".join(textwrap.fill(sentence, 76, break_long_words=False, break_on_hyphens=False)
                            for sentence in sentences))


def arguments(text):
    """Of a macro: no word of it is one."""
    return " ".join("\\&" + escape(word).replace('"', "\\(dq") for word in text.split())


class Page:
    def __init__(self, name, section, about):
        when = datetime.datetime.fromtimestamp(
            int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp()), datetime.timezone.utc)
        self.name, self.section = name, section
        self.lines = [".\\\" SPDX-License-" "Identifier: BSD-3-Clause", ".\\\" Made by scripts/man.py.",
                      ".Dd %s %d, %d" % (when.strftime("%B"), when.day, when.year),
                      ".Dt %s %d" % (name.upper(), section), ".Os", ".Sh NAME", ".Nm %s" % name, ".Nd " + about]

    def add(self, *lines):
        self.lines += lines

    def heading(self, text):
        self.add(".Sh " + text)

    def paragraph(self, text):
        if not self.lines[-1].startswith((".Sh", ".Ss")):
            self.add(".Pp")
        self.add(prose(text))

    def literal(self, lines):
        self.add(".Bd -literal -offset indent", *(escape(line) for line in lines), ".Ed")

    def items(self, rows, tag="%s"):
        self.add(".Bl -tag -width Ds")
        for name, text in rows:
            self.add(".It " + tag % name, prose(text))
        self.add(".El")

    def also(self, *pages):
        self.heading("SEE ALSO")
        self.add(*(".Xr %s %d%s" % (name, section, " ," if (name, section) != pages[-1] else "")
                   for name, section in pages))

    def write(self, folder):
        (folder / ("%s.%d" % (self.name, self.section))).write_text("\n".join(self.lines) + "\n")


def help_of(program, *command):
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    return subprocess.run([program, *command, "--help"], check=True, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, env=environment).stdout


def blocks_of(text):
    """[(heading or None, lines)]."""
    for block in re.split(r"\n\n+", text.strip()):
        lines = block.split("\n")
        headed = len(lines) > 1 and lines[0].endswith(":") and all(line.startswith("  ") for line in lines[1:])
        yield (lines[0][:-1], lines[1:]) if headed else (None, lines)


def option_of(name, no=False, value=None):
    """As mdoc."""
    name, value = (name.lstrip("-").split(" ", 1) + [value])[:2]
    return "Fl \\-" + name + (" , Fl \\-no\\-" + name if no else "") + (" Ar " + arguments(value) if value else "")


def options_of(lines):
    """[(option as mdoc, text)]; a line that goes on is indented."""
    rows = []
    for line in lines:
        found = OPTION.match(line)
        if found:
            no, name, value, text = found.groups()
            rows.append([option_of(name, no, value), text])
        else:
            assert rows and line.startswith("   "), line
            rows[-1][1] += " " + line
    return rows


def examples(page, lines):
    page.heading("EXAMPLES")
    code = []
    for line in lines:
        caption = re.match(r"  (?:# (.*)|(\S.*):)$", line)
        if not caption:
            code.append(line.strip() if not code or not code[-1].endswith("\\") else "    " + line.strip())
            continue
        if code:
            page.literal(code)
        page.paragraph((caption.group(1) or caption.group(2)) + ":")
        code = []
    page.literal(code)


def exit_status(page, text):
    """Exit status: 0 this; 1 that."""
    page.heading("EXIT STATUS")
    page.items((part.split(" ", 1) for part in re.split(r"; (?=\d+ )", text.rstrip("."))))


def command_page(program, command, about, statuses, also):
    page = Page("gdrcap-" + command, 1, about)
    blocks = list(blocks_of(help_of(program, command)))
    usage = blocks[0][1].pop(0).split()[3:]
    page.heading("SYNOPSIS")
    page.add(".Nm gdrcap", ".Cm " + command)
    for word in usage:
        name = re.sub(r"[\[\].]", "", word)
        page.add((".Op Ar %s ..." if word.startswith("[") else ".Ar %s ...") % name)
    page.heading("DESCRIPTION")
    shown, groups = [], []
    for heading, lines in blocks:
        if heading == "Examples":
            shown = lines
        elif heading and lines[0].startswith("  --"):
            groups.append((heading, options_of(lines)))
        elif heading:
            page.paragraph(heading + ":")
            page.literal([line.strip() for line in lines])
        elif lines[0].startswith("Exit status: "):
            statuses = " ".join(" ".join(lines).split()[2:])
        else:
            page.paragraph(" ".join(lines))
    page.heading("OPTIONS")
    for heading, rows in groups:
        if len(groups) > 1:
            page.add(".Ss " + heading)
        page.items(rows)
    exit_status(page, statuses)
    examples(page, shown)
    page.also(*also)
    return page


def main_page(program):
    blocks = list(blocks_of(help_of(program)))
    page = Page("gdrcap", 1, "raw Ethernet frames into GPU memory, every byte accounted for")
    page.heading("SYNOPSIS")
    page.add(".Nm", ".Ar COMMAND", ".Op Ar OPTION ...", ".Nm", ".Fl \\-version")
    page.heading("DESCRIPTION")
    page.paragraph("Each command has a page of its own, such as gdrcap-capture(1); gdrcap COMMAND --help says the same.")
    commands = [line.split(maxsplit=1) for heading, lines in blocks if heading == "Commands" for line in lines]
    page.items(commands, "Cm %s")
    statuses = next(" ".join(" ".join(lines).split()[2:]) for _, lines in blocks if lines[0].startswith("Exit status: "))
    page.heading("ENVIRONMENT")
    page.items(ENVIRONMENT, "Ev %s")
    page.heading("FILES")
    page.items([("/etc/gdrcap/NAME.yaml", "of the service gdrcap-capture@NAME.")], "Pa %s")
    exit_status(page, statuses)
    page.also(*(("gdrcap-" + name, 1) for name, _ in sorted(commands)), (CONFIG, 5))
    return page, commands, statuses


# ---- the configuration ----

def plain(text):
    """Of Markdown."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def tables_of(text):
    """[(heading above it, rows)]."""
    heading, rows = None, []
    for line in [*text.split("\n"), "#"]:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|"):
            rows.append([plain(cell) for cell in cells])
        elif rows:
            yield heading, rows[2:]
            rows = []
        if line.startswith("#"):
            heading = line.strip("# ")


def config_page(path, commands):
    page = Page(CONFIG, 5, "configuration of gdrcap")
    text = path.read_text()
    page.heading("DESCRIPTION")
    page.paragraph("A file in YAML that gdrcap reads with --config FILE, and the service gdrcap-capture@NAME from "
                   "/etc/gdrcap/NAME.yaml. The command line overrides it, whatever the order. A key with a dot below is a "
                   "map and its key. What is unknown, given twice, of the wrong kind or out of range is refused, with "
                   "file and line.")
    groups = []
    for heading, rows in tables_of(text):
        if heading == "Values":
            page.add(".Ss Values")
            page.items((arguments(kind), written) for kind, written in rows)
        elif len(rows[0]) == 3 and (rows[0][1].startswith("--") or rows[0][1] == "no flag"):
            groups.append((heading, rows))
    for heading, rows in groups:
        page.add(".Ss " + heading)
        page.items((("Cm " + key + (" , " + option_of(flag) if flag != "no flag" else ""), meaning)
                    for key, flag, meaning in rows))
    page.heading("EXAMPLES")
    example = re.search(r"```yaml\n(.*?)```", text, re.S).group(1)
    page.literal(example.rstrip().split("\n"))
    page.also(("gdrcap", 1), *(("gdrcap-" + name, 1) for name, _ in sorted(commands)))
    return page


def main(program, configuration, folder):
    folder.mkdir(parents=True, exist_ok=True)
    page, commands, statuses = main_page(program)
    page.write(folder)
    for command, about in commands:
        command_page(program, command, about, statuses, (("gdrcap", 1), (CONFIG, 5))).write(folder)
    config_page(configuration, commands).write(folder)


if __name__ == "__main__":
    main(sys.argv[1], *map(pathlib.Path, sys.argv[2:]))
