# SPDX-License-Identifier: BSD-3-Clause
"""deploy/prometheus and deploy/grafana: rules that fire when they should, expressions that parse, metrics that exist.

usage: check_prometheus.py ROOT
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Functions, operators and labels are no metrics: those have one of these prefixes.
METRIC = re.compile(r"\b((?:gdrcap|node)_[a-z_]+)\b")
OTHERS = {"node_exporter", "node_textfile_mtime_seconds", "node_filesystem_avail_bytes"}  # not ours


def metrics_of(root):
    table = (root / "app" / "metrics_table.c").read_text()
    return {"gdrcap_" + name for name in re.findall(r'^\t(?:COUNTER|GAUGE)\(\w+, "(\w+)"', table, re.M)}


def expressions(value):
    """Of a dashboard: each "expr", wherever it is."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [inner] if key == "expr" else expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


def check_names(root, dashboards):
    known, counters = metrics_of(root), 0
    assert len(known) > 40, known
    texts = {str(path): path.read_text() for path in (root / "deploy" / "prometheus").glob("*.yml")}
    texts.update((path, "\n".join(found)) for path, found in dashboards.items())
    for path, text in texts.items():
        for name in METRIC.findall(text):
            counters += 1
            assert name in known | OTHERS, "%s: gdrcap has no metric %s" % (path, name)
    assert counters > 50, counters


def promtool(*arguments, **options):
    done = subprocess.run(["promtool", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, check=False, **options)
    assert done.returncode == 0, "promtool %s: %s" % (" ".join(map(str, arguments)), done.stdout)
    return done.stdout


def check_expressions(dashboards):
    """As rules, which promtool reads; a dashboard's variables are Grafana's to fill in."""
    for path, found in dashboards.items():
        rules = [{"record": "dashboard:expression%d" % number,
                  "expr": expr.replace("$__rate_interval", "5m").replace("$instance", "x")}
                 for number, expr in enumerate(found)]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
            file.flush()
            assert "%d rules found" % len(rules) in promtool("check", "rules", file.name), path


def main(root):
    dashboards = {str(path): list(expressions(json.loads(path.read_text())))
                  for path in (root / "deploy" / "grafana").glob("*.json")}
    assert all(dashboards.values()), dashboards
    check_names(root, dashboards)
    if not shutil.which("promtool"):
        print("names checked; promtool is not installed (Debian's package prometheus), so no rule was tested")
        return 77
    folder = root / "deploy" / "prometheus"
    alerts = set(re.findall(r"- alert: (\w+)", (folder / "gdrcap.rules.yml").read_text()))
    tested = set(re.findall(r"alertname: (\w+)", (folder / "gdrcap.rules.test.yml").read_text()))
    assert alerts == tested, "alerts without a test, or the other way round: %s" % (alerts ^ tested)
    promtool("check", "rules", "gdrcap.rules.yml", cwd=folder)
    promtool("test", "rules", "gdrcap.rules.test.yml", cwd=folder)
    promtool("check", "config", "scrape.yml", cwd=folder)
    check_expressions(dashboards)
    print("%d alerts, each tested; %d expressions of dashboards" % (
        len(alerts), sum(map(len, dashboards.values()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
