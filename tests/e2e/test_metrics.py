# SPDX-License-Identifier: BSD-3-Clause
"""Metrics of a run: as documented, whole at any moment, the same as the JSON, and no burden to the run."""
import os
import pathlib
import re
import socket
import stat

import pytest

import e2e
import metrics_text
from processes import FOREVER, stop, wait_for

pytestmark = pytest.mark.sanitized


def check_final(values, summary):
    """The counts of a run that has ended are those of its JSON."""
    frames, bits = summary["frames"], summary["bits"]
    assert values["gdrcap_running"] == 0
    assert values["gdrcap_run_failed"] == (summary["result"] != "pass")
    for verdict in ("valid", "damaged", "duplicate"):
        assert values["gdrcap_frames_total{%s}" % verdict] == frames[verdict], verdict
    assert values["gdrcap_frames_total{filtered}"] == summary["filtered"]
    assert values["gdrcap_received_frames_total"] == frames["received"] == sum(
        values["gdrcap_frames_total{%s}" % verdict] for verdict in ("valid", "damaged", "duplicate", "filtered"))
    assert values["gdrcap_received_bytes_total"] == summary["bytes"]
    assert values["gdrcap_frames_in_flight_or_lost"] == frames["lost"]
    assert values["gdrcap_reordered_frames_total"] == frames["reordered"]
    assert values["gdrcap_bits_checked_total"] == bits["checked"]
    assert values["gdrcap_bits_wrong_total"] == bits["wrong"]
    for cause in ("nic_missed", "nic_error", "unexplained"):
        assert values.get("gdrcap_lost_total{%s}" % cause) == summary["lost_by"][cause], cause


def test_textfile():
    with e2e.Folder() as folder:
        path = pathlib.Path(folder) / "gdrcap.prom"
        path.write_text("of a run before\n")
        process = e2e.start(*FOREVER, "--json", "--metrics-textfile", str(path))
        seen = []

        def grown():
            values = metrics_text.flat(path.read_text()) if not path.read_text().startswith("of") else {}
            if values.get("gdrcap_running") == 1 and (not seen or values != seen[-1]):
                seen.append(values)
            return len(seen) == 3
        wait_for(grown, process, "the file is not written anew")
        result = stop(process)
        seen.append(metrics_text.flat(path.read_text()))
        for before, after in zip(seen, seen[1:]):
            metrics_text.check_grow(before, after)
        assert "gdrcap_lost_total{unexplained}" not in seen[0], seen[0]
        assert "gdrcap_run_failed" not in seen[0], seen[0]
        check_final(seen[-1], result.summary)
        assert os.listdir(folder) == ["gdrcap.prom"], os.listdir(folder)
        assert not re.search(r" \d+ \d+$", path.read_text(), re.M)  # no time stamps


def test_faults():
    """Loss and damage that are planted come out exactly, each where it belongs."""
    program = os.environ.get("GDRCAP_FAULTY")
    if not program:
        raise e2e.Skip("GDRCAP_FAULTY does not name the program of tests/faults")
    with e2e.Folder() as folder:
        path = pathlib.Path(folder) / "gdrcap.prom"
        kept, e2e.PROGRAM = e2e.PROGRAM, program
        try:
            result = e2e.run("loopback", "--gpu", "host", "--quiet", "--json", "--frames", "20000", "--watchdog", "60",
                             "--metrics-textfile", str(path), expect=3,
                             env=dict(os.environ, GDRCAP_FAULTS="drop=5:100,counted=40,dup=500:3,flip=900:1000"))
        finally:
            e2e.PROGRAM = kept
        values = metrics_text.flat(path.read_text())
        check_final(values, result.summary)
        for key, value in (("gdrcap_lost_total{nic_missed}", 40), ("gdrcap_lost_total{unexplained}", 60),
                           ("gdrcap_frames_in_flight_or_lost", 100), ("gdrcap_bits_wrong_total", 1),
                           ("gdrcap_frames_total{damaged}", 1), ("gdrcap_frames_total{duplicate}", 3)):
            assert values[key] == value, (key, value, values)


def test_cannot_run():
    with e2e.Folder() as folder:
        path = pathlib.Path(folder) / "gdrcap.prom"
        result = e2e.run("capture", "--port", "net_af_packet0,iface=none0", "--metrics-textfile", str(path),
                         expect=None)
        assert result.status in (1, 2), result
        values = metrics_text.flat(path.read_text())
        assert values["gdrcap_running"] == 0 and values["gdrcap_run_failed"] == 1, values
        assert "gdrcap_received_frames_total" not in values, values


def test_sender_only():
    with e2e.Folder() as folder:
        path = pathlib.Path(folder) / "gdrcap.prom"
        e2e.run("replay", "--tx-port", "net_null0", "--frames", "1000", "--metrics-textfile", str(path))
        values = metrics_text.flat(path.read_text())
        assert values["gdrcap_sent_frames_total"] >= 1000, values
        assert not [key for key in values if "received" in key or "lost" in key or "saved" in key], values


def need_http():
    result = e2e.run("loopback", "--metrics", "nowhere", expect=2)
    if "built without libmicrohttpd" in result.err:
        raise e2e.Skip("built without libmicrohttpd")


def url_of(process):
    """What the program says that it listens on."""
    for line in process.stderr:
        found = re.search(r"metrics: (?:http://127.0.0.1:([0-9]+)/metrics|unix:(.*))$", line)
        if found:
            return ("127.0.0.1", int(found[1])) if found[1] else found[2]
    raise AssertionError("no address: %s" % e2e.finish(process, FOREVER))


def connect(where):
    client = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
    client.settimeout(e2e.TIMEOUT)
    client.connect(where)
    return client


def ask(where, request="GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
    """Status, headers in lower case, and body."""
    with connect(where) as client:
        client.sendall(request.encode())
        answer = b""
        while part := client.recv(65536):
            answer += part
    head, _, body = answer.decode().partition("\r\n\r\n")
    return int(head.split(" ")[1]), head.lower(), body


def scrape(where):
    status, head, body = ask(where)
    assert status == 200 and "content-type: text/plain; version=0.0.4; charset=utf-8" in head, head
    return metrics_text.flat(body)


def wait_counted(process, where):
    """Until frames came: the counts then."""
    return wait_for(lambda: (values := scrape(where)).get("gdrcap_received_frames_total", 0) > 0 and values, process,
                    "nothing is counted")


def test_http():
    need_http()
    process = e2e.start(*FOREVER, "--json", "--metrics", "0")
    where = url_of(process)
    first = scrape(where)
    assert first["gdrcap_start_time_seconds"] > 1.6e9
    running = wait_counted(process, where)
    later = wait_for(lambda: (values := scrape(where)) != running and values, process, "the counts stay")
    metrics_text.check_grow(first, running)
    metrics_text.check_grow(running, later)
    assert ask(where, "GET / HTTP/1.0\r\n\r\n")[0] == 404
    assert ask(where, "HEAD /metrics HTTP/1.0\r\n\r\n")[::2] == (200, "")
    status, head, _ = ask(where, "DELETE /metrics HTTP/1.0\r\n\r\n")
    assert status == 405 and "allow: get, head" in head, head
    try:
        assert ask(where, "GET /%s HTTP/1.0\r\n\r\n" % ("x" * 100000))[0] in (400, 413, 414, 431)
    except ConnectionError:
        pass  # closed before all of it was sent
    assert scrape(where)["gdrcap_running"] == 1
    # The port is taken, which a second run says and ends with 2.
    result = e2e.run("loopback", "--metrics", "127.0.0.1:%d" % where[1], "--json", expect=2)
    assert "another process listens there" in result.summary["errors"][0], result
    summary = stop(process).summary
    e2e.check_perfect(summary)


def test_http_bad_scrapers():
    """Half requests, readers that do not read, and more of them than are served at once: no matter to the run."""
    need_http()
    process = e2e.start("loopback", "--seconds", "0", "--rate", "1000pps", "--frame-size", "64", "--json", "--metrics",
                        "0")
    where = url_of(process)
    scrape(where)
    bad = []
    for number in range(40):
        client = connect(where)
        client.sendall((b"", b"GET /met", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)[number % 3])
        bad.append(client)
    # Who is silent is let go, and then there is room for who is not.
    wait_counted(process, where)
    # While they still hang on, the run ends in order, with every frame.
    summary = stop(process).summary
    e2e.check_perfect(summary)
    for client in bad:
        client.close()


def test_unix():
    need_http()
    with e2e.Folder() as folder:
        path = os.path.join(folder, "metrics.sock")
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        process = e2e.start(*FOREVER, "--metrics", "unix:" + path)
        assert url_of(process) == path
        assert "gdrcap_running" in scrape(path)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o660, os.stat(path)
        result = e2e.run("loopback", "--metrics", "unix:" + path, expect=2)
        assert "a process listens there" in result.err, result
        wait_counted(process, path)
        stop(process)
        assert os.listdir(folder) == []
        # What is no socket stays.
        for make in (lambda: open(path, "w").close(), lambda: os.mkfifo(path), lambda: os.mkdir(path),
                     lambda: os.symlink("/nowhere", path)):
            make()
            result = e2e.run("loopback", "--metrics", "unix:" + path, expect=2)
            assert "is no socket" in result.err, result
            (os.rmdir if os.path.isdir(path) else os.unlink)(path)
        # Of another process now: that stays too.
        process = e2e.start(*FOREVER, "--metrics", "unix:" + path)
        wait_counted(process, url_of(process))
        os.unlink(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            stop(process)
        assert os.path.exists(path)


def test_addresses():
    need_http()
    for where in ("", "x", ":1", "1:", "65536", "-1", "localhost:1", "127.0.0.1:70000", "::1:9100", "[::1]", "1.2.3:x",
                  "127.0.0.1:9 ", "unix:", "unix:" + "x" * 108):
        result = e2e.run("loopback", "--json", "--metrics", where, expect=2)
        assert "--metrics: '%s': " % where in result.summary["errors"][0], result
    for where in ("192.0.2.1:0", "unix:/no/such/folder/x"):
        result = e2e.run("loopback", "--metrics", where, expect=2)
        assert re.search("annot assign|No such file", result.err), result


def test_documented():
    """Every metric of the table, in its order, with its type and meaning; and nothing else."""
    source = (metrics_text.ROOT / "app" / "metrics_table.c").read_text()
    rows = [("gdrcap_" + name, kind.lower(), "".join(re.findall(r'"([^"]*)"', help_text))) for kind, name, help_text
            in re.findall(r'^\t(COUNTER|GAUGE)\(\w+, "(\w+)",\s*((?:"[^"]*"\s*)+)\)', source, re.M)]
    page = (metrics_text.ROOT / "docs" / "metrics.md").read_text()
    told = re.findall(r"^\| `(gdrcap_\w+)` \| (counter|gauge) \| [^|]*\| ([^|]*) \|$", page, re.M)
    assert len(rows) > 40 and rows == told, set(rows) ^ set(told)


def test_refused():
    with e2e.Folder() as folder:
        for path, text in ((os.path.join(folder, "x.txt"), "does not end with .prom"),
                           (os.path.join(folder, "no", "x.prom"), "No such file"),
                           (folder + "/" + "x" * 300 + ".prom", "File name too long")):
            result = e2e.run("loopback", "--json", "--metrics-textfile", path, expect=2)
            assert text in result.err, result
        path = os.path.join(folder, "pipe.prom")
        os.mkfifo(path)
        assert "not a regular file" in e2e.run("loopback", "--metrics-textfile", path, expect=2).err
        assert stat.S_ISFIFO(os.stat(path).st_mode)
        os.unlink(path)
        path = os.path.join(folder, "x.prom")
        for other in (("--save", path), ("--json", "--json-file", path)):
            assert "are one file" in e2e.run("loopback", "--metrics-textfile", path, *other, expect=2).err
        assert os.listdir(folder) == []


def test_folder_gone():
    """It costs a warning, and the file is there again with its folder."""
    with e2e.Folder() as folder:
        inner = pathlib.Path(folder) / "textfile"
        inner.mkdir()
        path = inner / "gdrcap.prom"
        process = e2e.start(*FOREVER, "--metrics-textfile", str(path))
        wait_for(lambda: path.exists() and "gdrcap_running 1" in path.read_text(), process, "no metrics")
        inner.rename(inner.with_suffix(".away"))
        for line in process.stderr:
            if "cannot be written" in line:
                break
        assert "warning: --metrics-textfile" in line and "No such file" in line, line
        inner.mkdir()
        wait_for(path.exists, process, "no metrics in the new folder")
        stop(process)


def test_no_final_counts():
    """A file that goes on saying "running" fails the run, also with --quiet."""
    with e2e.Folder() as folder:
        inner = pathlib.Path(folder) / "textfile"
        inner.mkdir()
        path = inner / "gdrcap.prom"
        process = e2e.start(*FOREVER, "--quiet", "--json", "--metrics-textfile", str(path))
        wait_for(lambda: path.exists() and re.search(r"^gdrcap_received_frames_total [1-9]", path.read_text(), re.M), process,
                 "no frames")
        inner.rename(inner.with_suffix(".away"))
        result = stop(process, 1)
        assert result.summary["result"] == "fail", result
        for text in (result.err, result.summary["errors"][-1]):
            assert "it has not the final counts" in text and str(path) in text, result
