# SPDX-License-Identifier: BSD-3-Clause
"""gdrcap report's helper: one page of runs, benches and examinations. gdrcap starts it, and says what --facts is."""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import sys

NOT_RUN, USAGE = 1, 2  # exit statuses, as gdrcap's others
SYSTEM_PYTHON = "/usr/bin/python3"
PACKAGES = "sudo apt-get install python3-jinja2 python3-matplotlib"
FILES_MOST = 32
VERDICT_ORDER = ("fail", "unknown", "running", "pass")


def fail(status, words):
    print("gdrcap report: %s" % words, file=sys.stderr)
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
        import jinja2
        import matplotlib  # noqa: F401 - plots.py's
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
    import values

    return "%s %s" % (type(error).__name__, values.text(str(error), 120) or "")


def show_text(files):
    """Tables on a terminal: no library is needed."""
    import bench

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        of_benches(files, lambda report, _: bench.print_report(report))
    return out.getvalue().encode(errors="replace")


def plot(files, path):
    import bench

    of_benches(files, lambda report, _: bench.picture_of([report]))
    lines, title = bench.picture_of([report for _, report in benches_of(files)])
    if not lines:
        fail(NOT_RUN, "nothing to draw: measure frames of two sizes: gdrcap bench --stages path,consumer")
    libraries()
    import bench_plot

    try:
        bench_plot.save(lines, title, path)
    except OSError as error:
        fail(NOT_RUN, "%s: %s" % (path, error.strerror))
    except bench.ERRORS as error:
        fail(USAGE, "%s: %s" % (path, values_of(error)))


def sections_of(files, causes):
    import bench
    import doctor
    import inputs
    import summary

    found = []
    for file in files:
        others = of_benches([file], lambda report, file: bench.section(report, file.name))
        if file.kind == inputs.DOCTOR:
            others = [doctor.section(each, file.name) for each in file.objects]
        found += [{"run": False, "notes": file.notes, **each} for each in others]
        for i, run in enumerate(file.runs):
            name = file.name if len(file.runs) == 1 else "%s, run %d" % (file.name, i + 1)
            found.append({"run": True, "notes": file.notes if i == 0 else [], **summary.section(run, name, causes)})
    return found


def title_of(title, sections):
    if title:
        return title
    states = [section["state"] for section in sections if section["run"]]
    words = {"pass": "every run passed", "fail": "failed", "running": "not ended", "unknown": "verdict not known"}
    worst = next((state for state in VERDICT_ORDER if state in states), None)
    return "gdrcap report" if not worst else "gdrcap report: %s" % ("passed" if len(states) == 1 and worst == "pass" else words[worst])


def page_of(jinja2, files, title, facts):
    import markupsafe
    import values

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
        title=title_of(values.text(title, 200), sections), sections=sections, css=css, unknown=values.UNKNOWN,
        version=facts.get("version") or values.UNKNOWN,
        marks=("passed", "failed", "skipped", "ok", "warn", "fail", "unknown", "not applicable"))


def write(data, path):
    try:
        if path in (None, "-"):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            with open(path, "wb") as out:
                out.write(data)
    except OSError as error:
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
        plot(files, options.plot)
        return
    write(page_of(libraries(), files, options.title, json.loads(options.facts)).encode(), options.output)


if __name__ == "__main__":
    main()
