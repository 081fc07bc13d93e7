# SPDX-License-Identifier: BSD-3-Clause
"""Files of gdrcap bench, changed at random, as gdrcap report reads them: tables, lines of a picture, parts of a page.

usage: fuzz_report.py PAGE CORPUS SECONDS [SEED]

PAGE is the folder of the report's helper. What is no bench is refused with a reason, and what is shown moves no cursor;
anything else ends it, with the file, and the seed that makes it again."""
import contextlib
import copy
import importlib.util
import io
import json
import os
import pathlib
import random
import sys
import tempfile
import time

STRANGE = (None, True, False, -1, 0, 1.5, 1e308, -0.0, 2**64, 10**400, "", "x", "\x1b[2J\u202e", "<script>", [], [[]], {}, {"a": None},
           float("nan"), float("inf"), ["x"] * 300)


def places(found, at=()):
    """Where something stands, as keys from the top."""
    yield at
    if isinstance(found, (dict, list)):
        for key in found if isinstance(found, dict) else range(len(found)):
            yield from places(found[key], (*at, key))


def change_value(chance, found):
    at = chance.choice(list(places(found)))
    strange = copy.deepcopy(chance.choice(STRANGE))
    if not at:
        return strange
    inside = found
    for key in at[:-1]:
        inside = inside[key]
    if isinstance(inside, list):
        chance.choice((lambda: inside.pop(at[-1]), lambda: inside.append(copy.deepcopy(inside[at[-1]])), lambda: inside.insert(0, strange)))()
    elif chance.random() < 0.2:
        del inside[at[-1]]
    else:
        inside[at[-1]] = strange
    return found


def change_bytes(chance, data):
    at = chance.randrange(len(data) + 1)
    return chance.choice((
        lambda: data[:at],
        lambda: data[:at] + bytes([chance.randrange(256)]) + data[at:],
        lambda: data[:at] + bytes([chance.randrange(256)]) + data[at + 1:],
        lambda: data[:at] + data[at + chance.randrange(40):],
        lambda: data + data[at:]))()


def changed(chance, data):
    """A seed with a few values or bytes of it changed."""
    found = json.loads(data)
    for _ in range(chance.randrange(4)):
        found = change_value(chance, found)
    data = json.dumps(found).encode()
    if chance.random() < 0.3:
        for _ in range(chance.randrange(1, 4)):
            data = change_bytes(chance, data)
    return data


def load(page):
    sys.path.insert(0, page)
    spec = importlib.util.spec_from_file_location("page_main", os.path.join(page, "__main__.py"))
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    import bench

    # It takes matplotlib a tenth of a second; which lines there are is asked for below.
    bench.picture_block = lambda _: []
    return helper, bench


def is_clean(text):
    assert all(each.isprintable() or each == "\n" for each in text), "a character that a terminal obeys: %r" % text


def show(helper, bench, path):
    """All that is made of a file; or a reason, and an exit status."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            files = helper.read_all([path])
            if any(file.kind != "gdrcap.bench/1" for file in files):
                return
            is_clean(helper.show_text(files).decode())
            helper.of_benches(files, lambda report, _: bench.picture_of([report]))
            json.dumps(helper.of_benches(files, lambda report, file: bench.section(report, file.name)))
    except SystemExit as ended:
        assert ended.code in (1, 2) and said.getvalue().startswith("gdrcap report: "), (ended.code, said.getvalue())
        is_clean(said.getvalue())


def main(page, corpus, seconds, seed=None):
    helper, bench = load(page)
    seeds = [path.read_bytes() for path in sorted(pathlib.Path(corpus).iterdir())]
    first = random.randrange(2**32) if seed is None else int(seed)
    end = time.monotonic() + float(seconds)
    runs = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bench.json")
        for data in seeds:
            path.write_bytes(data)
            show(helper, bench, path)
        while runs == 0 or (time.monotonic() < end and seed is None):
            chance = random.Random(first + runs)
            data = changed(chance, chance.choice(seeds))
            path.write_bytes(data)
            try:
                show(helper, bench, path)
            except BaseException:
                print("seed %d: %r" % (first + runs, data))
                raise
            runs += 1
    print("%d files" % runs)


if __name__ == "__main__":
    main(*sys.argv[1:])
