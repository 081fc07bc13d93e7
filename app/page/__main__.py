# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap report's helper: one page of runs, benches and examinations. gdrcap starts it, and says what --facts is."""
import argparse
import contextlib
import importlib
import importlib.util
import io
import json
import os
import stat
import sys
import tempfile

import values

NOT_RUN, USAGE = 1, 2  # exit statuses, as gdrcap's others
SYSTEM_PYTHON = "/usr/bin/python3"
PACKAGES = "sudo apt-get install python3-jinja2 python3-matplotlib"
FILES_MOST = 32
ERROR_MOST = 8192  # characters: a path, and what is wrong
VERDICT_ORDER = ("fail", "unknown", "running", "pass")


def fail(status, words):
    """words: names of files and texts of theirs too, which no terminal obeys."""
    print("gdrcap report: %s" % values.text(str(words), ERROR_MOST), file=sys.stderr)
    raise SystemExit(status)


def lacking(name):
    return fail(NOT_RUN, "%s lacks %s: %s" % (sys.executable, name, PACKAGES))


def look_for_libraries():
    """The distribution's libraries are its own Python's: that one goes on where this one lacks them. Before anything is read."""
    missing = [name for name in ("jinja2", "matplotlib") if not importlib.util.find_spec(name)]
    if not missing:
        return
    if os.access(SYSTEM_PYTHON, os.X_OK) and not os.environ.get("GDRCAP_REPORT_AGAIN") and \
            os.path.realpath(SYSTEM_PYTHON) != os.path.realpath(sys.executable):
        os.environ["GDRCAP_REPORT_AGAIN"] = "1"
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, "-B", *sys.argv])
    lacking(missing[0])


def libraries():
    """They take a second: files that are wrong are told before."""
    try:
        jinja2 = importlib.import_module("jinja2")
        importlib.import_module("matplotlib")  # whether it is there: plots.py uses it
        return jinja2
    except ImportError as error:
        return lacking(error.name)


def environment(jinja2):
    return jinja2.Environment(loader=jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__))), autoescape=True,
                              undefined=jinja2.StrictUndefined)


def read_all(paths):
    import inputs

    files = []
    for path in paths:
        try:
            files.append(inputs.read(path))
        except inputs.Wrong as error:
            fail(USAGE, error)
        except OSError as error:
            fail(NOT_RUN, "%s: %s" % (path, error.strerror))
        except MemoryError:
            fail(NOT_RUN, "%s: it needs more memory than there is" % path)
    return files


def benches_of(files):
    """(File, report) of each bench, its texts made harmless."""
    import bench
    import inputs

    return [(file, bench.printable(each)) for file in files if file.kind == inputs.BENCH for each in file.objects]


def of_benches(files, make):
    """make() of each, and its file; what only says it is a bench is refused by name."""
    import bench

    found = []
    for file, report in benches_of(files):
        try:
            found.append(make(report, file))
        except bench.ERRORS as error:
            fail(USAGE, "%s: no result of gdrcap bench: %s" % (file.name, values_of(error)))
    return found


def values_of(error):
    return "%s %s" % (type(error).__name__, values.text(str(error), 120) or "")


def show_text(files):
    """Tables on a terminal: no library is needed."""
    import bench

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        of_benches(files, lambda report, _: bench.print_report(report))
    return out.getvalue().encode(errors="replace")


def plot(files, path):
    """The picture, as bytes."""
    import bench

    of_benches(files, lambda report, _: bench.picture_of([report]))
    lines, title = bench.picture_of([report for _, report in benches_of(files)])
    if not lines:
        fail(NOT_RUN, "nothing to draw: measure frames of two sizes: gdrcap bench --stages path,consumer")
    libraries()
    import bench_plot

    try:
        return bench_plot.picture(lines, title, path)
    except bench.ERRORS as error:
        return fail(USAGE, "%s: %s" % (path, values_of(error)))


def sections_of(files, causes):
    import bench
    import doctor
    import inputs
    import summary

    found, seen = [], {}
    for file in files:
        others = of_benches([file], lambda report, file: bench.section(report, file.name))
        if file.kind == inputs.DOCTOR:
            others = [doctor.section(each, file.name) for each in file.objects]
        found += [{"run": False, "notes": file.notes, **each} for each in others]
        for i, run in enumerate(file.runs):
            name = file.name if len(file.runs) == 1 else "%s, run %d" % (file.name, file.first + i)
            notes = (file.notes if i == 0 else []) + twice(run, name, seen)
            found.append({"run": True, "notes": notes, **summary.section(run, name, causes)})
    return found


def twice(run, name, seen):
    """seen: identity -> name of the runs before."""
    import inputs

    which = inputs.identity(run.last)
    if which is None or None in map(values.integer, which[1:]):
        return []
    which = json.dumps(which)
    if which in seen:
        return ["The same run as in %s: it is on this page more than once." % seen[which]]
    seen[which] = name
    return []


def title_of(title, sections, files):
    """Of all runs, those that are not shown included."""
    if title:
        return title
    states = [section["state"] for section in sections if section["run"]]
    states += [state for file in files for state in file.left_out.elements()]
    words = {"pass": "every run passed", "fail": "failed", "running": "not ended", "unknown": "verdict not known"}
    worst = next((state for state in VERDICT_ORDER if state in states), None)
    return "gdrcap report" if not worst else "gdrcap report: %s" % ("passed" if len(states) == 1 and worst == "pass" else words[worst])


def page_of(jinja2, files, title, facts):
    import markupsafe

    causes = {row["name"]: row["meaning"] for row in facts.get("causes", [])}
    found = environment(jinja2)
    sections = sections_of(files, causes)
    for section in sections:
        for block in section["blocks"]:
            if "svg" in block:
                # matplotlib's, which escapes texts; none of a file's stand in it unescaped.
                block["svg"] = markupsafe.Markup(block["svg"])
    css = markupsafe.Markup(found.loader.get_source(found, "page.css")[0])
    return found.get_template("page.html").render(
        title=title_of(values.text(title, 200), sections, files), sections=sections, css=css, unknown=values.UNKNOWN,
        version=facts.get("version") or values.UNKNOWN,
        marks=("passed", "failed", "skipped", "ok", "warn", "fail", "unknown", "not applicable"))


def refuse_input(output, inputs):
    """What was read is evidence: no page goes into it, under whatever name."""
    try:
        target = os.fstat(sys.stdout.fileno()) if output in (None, "-") else os.stat(output)
    except (OSError, ValueError):
        return
    for name in inputs if stat.S_ISREG(target.st_mode) else ():
        with contextlib.suppress(OSError, ValueError):
            found = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
            if os.path.samestat(found, target):
                fail(USAGE, "%s is what is read (%s), and would be replaced: give another file to write" % (
                    "standard output" if output in (None, "-") else output, "standard input" if name == "-" else name))


def replace(data, path):
    """The file at once: whoever looks, and whatever fails, it is the old one or the whole new one."""
    path = os.path.realpath(path)
    mask = os.umask(0)
    os.umask(mask)
    mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else 0o666 & ~mask
    handle, part = tempfile.mkstemp(prefix=".gdrcap-report-", dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as out:
            os.fchmod(handle, mode)
            out.write(data)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def write(data, path):
    try:
        if path in (None, "-"):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as out:  # a pipe, a device
                out.write(data)
        else:
            replace(data, path)
    except OSError as error:
        if path in (None, "-"):
            # What could not be flushed is not tried again at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(NOT_RUN, "%s could not be written: %s" % ("standard output" if path in (None, "-") else path, error.strerror))


def main():
    parser = argparse.ArgumentParser(prog="gdrcap report", allow_abbrev=False)
    parser.add_argument("--facts", default="{}", help="JSON of gdrcap: its version, and what causes of loss mean")
    parser.add_argument("--output")
    parser.add_argument("--title")
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--plot")
    parser.add_argument("file", nargs="+")
    options = parser.parse_args()
    if len(options.file) > FILES_MOST:
        fail(USAGE, "%d files: one page shows %d at most; make several" % (len(options.file), FILES_MOST))
    if options.file.count("-") > 1:
        fail(USAGE, "standard input (-) is given twice")
    refuse_input(options.plot or options.output, options.file)
    if not options.text:
        look_for_libraries()
    files = read_all(options.file)
    if (options.text or options.plot) and not all(file.kind == "gdrcap.bench/1" for file in files):
        fail(USAGE, "--text and --plot are of files of gdrcap bench: no result of gdrcap bench, but something else, is in %s" % next(
            file.name for file in files if file.kind != "gdrcap.bench/1"))
    if options.text:
        write(show_text(files), options.output)
        return
    if options.plot:
        write(plot(files, options.plot), options.plot)
        return
    write(page_of(libraries(), files, options.title, json.loads(options.facts)).encode(), options.output)


if __name__ == "__main__":
    main()
