# SPDX-License-Identifier: BSD-3-Clause
"""A run's results as the JSON object of schema gdrcap.summary/1 (docs/json.md), as the program prints it."""
from __future__ import annotations

import math
import os
import socket
import time
from typing import Any, Callable, Optional, Union

SCHEMA = "gdrcap.summary/1"
_NIC_MISSED, _NIC_ERROR, _TX_STALLED, _LOSS, _LOCK, _PACE, _TX_ERROR, _STALE = 1, 2, 4, 16, 32, 64, 128, 256
_SENDING, _SENDING_FAILED, _START = 512, 1024, 2048
_MEMORY = ("auto", "device", "pinned", "host")
_STEPS = ("passed", "failed", "skipped")
ENDS = ("complete", "newer", "timeout", "stopped")
_MESSAGES = 256

Row = dict[str, Any]
Get = Callable[[str, int], Optional[str]]


def _count(number: int, known: Any = True) -> Union[int, str, None]:
    """Beyond 63 bits text, as in JSON, where many programs read no more."""
    if not known:
        return None
    return number if number < 1 << 63 else str(number)


def _number(value: float, known: Any = True) -> Optional[float]:
    """With JSON's twelve digits."""
    return float("%.12g" % value) if known and math.isfinite(value) else None


def _time(ns: int) -> str:
    """UTC, RFC 3339."""
    return "%s.%09dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)), ns % 10**9)


def _frames(counts: Row, received: bool, judged: bool, ordered: bool) -> Row:
    return {"sent": _count(counts["sent"]), "received": _count(counts["received"], received),
            "valid": _count(counts["valid"], judged), "damaged": _count(counts["damaged"], judged),
            "lost": _count(counts["lost"], ordered), "duplicate": _count(counts["duplicate"], ordered),
            "reordered": _count(counts["reordered"], ordered)}


def _bits(counts: Row) -> Row:
    checked, wrong = counts["bits_checked"], counts["bits_wrong"]
    return {"checked": _count(checked), "wrong": _count(wrong), "ratio": _number(wrong / checked) if checked else None}


def _causes(causes: list[Row], sender: bool) -> Row:
    return {cause["name"]: _count(cause["count"], cause["known"])
            for cause in causes if bool(cause["sender"]) == sender}


def _sender(summary: Row, causes: list[Row]) -> Row:
    known = summary["known"]
    return {
        "asked": {"gbps": _number(summary["asked_gbps"], summary["asked_gbps"] > 0),
                  "mpps": _number(summary["asked_mpps"], summary["asked_mpps"] > 0),
                  "seconds": _number(summary["asked_seconds"], summary["asked_seconds"] > 0),
                  "frames": _count(summary["tx_asked"], summary["tx_asked"])},
        "gbps": _number(summary["tx_gbps"]), "mpps": _number(summary["tx_mpps"]),
        "seconds": _number(summary["tx_seconds"]), "frames": _count(summary["total"]["sent"]),
        "bytes": _count(summary["tx_bytes"]),
        "gap_error_ns": {"p50": _count(summary["gap_p50_ns"]), "p99": _count(summary["gap_p99_ns"]),
                         "max": _count(summary["gap_max_ns"])} if known & _PACE else None,
        "starved": _count(summary["tx_starved"]), "errors": _count(summary["tx_error"], known & _TX_ERROR),
        "proxies": _count(summary["tx_proxies"], summary["tx_by"] == "gpu"),
        "start": {"asked": _time(summary["start_ns"]), "late_ns": _count(summary["start_late_ns"], known & _START)}
        if summary["start_ns"] else None, "causes": _causes(causes, True),
    }


def _sending(summary: Row) -> Row:
    row = {key: _count(summary["sending_" + key]) for key in ("submitted", "sent", "unsent", "refused", "bytes", "stalled")}
    return {**row, "failed": _count(summary["sending_failed"], summary["known"] & _SENDING_FAILED)}


def _all(get: Get, key: str) -> list[str]:
    values: list[str] = []
    while (value := get(key, len(values))) is not None:
        values.append(value)
    return values


def _match(get: Get, summary: Row) -> Row:
    rules = _all(get, "match")
    return {"rules": rules, "applied": "none" if not rules else "software" if summary["software_match"] else "card"}


def _steering(rules: list[Row]) -> Optional[Row]:
    return {"by": "card", "rules": [{"rule": rule["text"], "frames": _count(rule["frames"], rule["known"])}
                                    for rule in rules]} if rules else None


def _queue(index: int, counts: Row, judged: bool) -> Row:
    row: Row = {"queue": index, "received": _count(counts["received"])}
    row.update({key: _count(counts[key], judged) for key in ("valid", "damaged", "duplicate", "reordered", "filtered")})
    row.update({"bytes": _count(counts["bytes"]), "bits": _bits(counts) if judged else None})
    return row


def _damage(damage: Row) -> Row:
    compared = damage["wrong_bits"] != 0
    placed = compared or (damage["kind"] == "stale" and damage["expected"] != damage["got"])
    return {"kind": damage["kind"], "sequence": _count(damage["sequence"], damage["header_ok"]),
            "stream": _count(damage["stream"], damage["header_ok"]), "queue": damage["queue"],
            "wrong_bits": _count(damage["wrong_bits"], compared), "offset": _count(damage["offset"], placed),
            "expected": _count(damage["expected"], placed), "got": _count(damage["got"], placed)}


# ---- images ----

def _image_counts(counts: Row) -> Row:
    return {
        "frames": {"received": _count(counts["frames"]), **{key: _count(counts[key]) for key in (
            "placed", "duplicate", "late", "no_room", "misfit", "filtered")}},
        **{key: _count(counts[key]) for key in ("begun", "complete", "incomplete")},
        "incomplete_by": {key: _count(counts[key]) for key in ("newer", "timeout", "stopped")},
        "dropped": _count(counts["dropped"]), "open": _count(counts["open"]),
        "skipped": _count(counts["skipped"], counts["has_skipped"]), "restarts": _count(counts["restarts"]),
        "pieces": {key: _count(counts["pieces_" + key]) for key in ("expected", "placed", "lost")},
        "bytes": _count(counts["bytes"]),
    }


def _incomplete(image: Row) -> Row:
    return {"number": _count(image["number"]), "stream": _count(image["stream_id"]),
            "by": ENDS[min(image["end"], 3)], "pieces": _count(image["pieces"], image["pieces"]),
            "received": image["received"], "ranges": image["ranges"],
            "missing": [[_count(first), _count(count)] for first, count in image["missing"]]}


def _images(images: Row) -> Row:
    row = _image_counts(images)
    row.update({"name": images["name"],
                "streams": [{**_image_counts(counts), "id": _count(number)} for number, counts in images["streams"]],
                "first_incomplete": [_incomplete(image) for image in images["first_incomplete"]], "saved": None})
    return row


# ---- the verdict ----

class _Judge:
    """Reasons for a failure, in the program's words; none of them: it passed."""

    def __init__(self, errors: list[str]) -> None:
        self.errors = errors

    def count(self, count: int, what: str, of: str = "frame") -> None:
        if count:
            self.errors.append("%s %s%s %s" % (format(count, ","), of, "" if count == 1 else "s", what))

    def say(self, wrong: Any, text: str) -> None:
        if wrong:
            self.errors.append(text)

    def first(self, wrong: Any, text: str) -> None:
        self.say(wrong and not self.errors, text)

    def sending(self, summary: Row) -> None:
        if summary["tx_missing"]:
            self.errors.append("%s of %s frames not sent" % (format(summary["tx_missing"], ","),
                                                            format(summary["tx_asked"], ",")))
        self.count(summary["save_missed"] + summary["damaged_missed"], "not saved")
        self.count(summary["sending_failed"], "submitted and taken by the port, which then could not send them")
        self.count(summary["sending_unsent"], "submitted and not sent")
        self.count(summary["sending_refused"], "submitted with a length that no frame has, and not sent")

    def images(self, summary: Row, images: list[Row]) -> None:
        for key in ("incomplete", "dropped", "skipped"):
            self.count(sum(row[key] for row in images), key, "image")
        self.sending(summary)
        self.first(summary["failed"], "the run ended early; the messages say why")
        self.first(summary["total"]["received"] == 0, NOTHING_CAME)
        self.first(sum(row["complete"] for row in images) == 0,
                   "no frame received was of an image: does --image say what the sender sends (--explain-image), and "
                   "do the rules let it pass?")

    def frames(self, summary: Row, checked: bool) -> None:
        total = summary["total"]
        self.count(total["damaged"], "damaged")
        self.count(summary["stale"], "seen before their bytes were there: set --flush host, and report it where that "
                   "is set")
        for key, what in (("lost", "lost"), ("duplicate", "duplicated"), ("reordered", "reordered")):
            self.count(total[key], what)
        if not self.errors:
            self.count(summary["untracked"], "not judged: they are of more streams than there is room for")
        self.say(summary["senders_unheard"],
                 "senders that --senders waits for and of which nothing came: %d; are they running, with a source "
                 "address each (--src-mac)?" % summary["senders_unheard"])
        self.say(summary["streams_unheard"],
                 "streams whose end did not come: %d; what of them is lost is not known (of a sender that says no "
                 "ends: --end never)" % summary["streams_unheard"])
        self.say(summary["conflicts"],
                 "stream ids that more than one source address used: %d; give each sender streams of its own (gdrcap "
                 "replay --first-stream N), and one that is started again its old address (--src-mac)" %
                 summary["conflicts"])
        self.sending(summary)
        self.first(summary["lock_lost"],
                   "the payload did not go on where the frame before it ended; times: %d" % summary["lock_lost"])
        self.first(summary["failed"], "the run ended early; the messages say why")
        self.first(total["received"] == 0, NOTHING_CAME)
        self.first(checked and total["valid"] == 0,
                   "no frame received was ours: check EtherType, VLAN, UDP port, frame format and rules against the "
                   "sender's")

    def sender(self, summary: Row) -> None:
        if summary["known"] & _TX_ERROR:
            self.count(summary["tx_error"], "taken by the port, which then could not send them")
        self.sending(summary)
        self.first(summary["failed"], "the run ended early; the messages say why")
        self.first(summary["total"]["sent"] + summary["sending_sent"] == 0, "no frame was sent: is the link up, and does the other end take "
                   "frames?")


NOTHING_CAME = ("no frame was received: is the sender running and the link up, and is this the right port?")
_VERDICT = 8


def _judge(results: Row, receives: bool, errors: list[str]) -> list[str]:
    judge, summary = _Judge(list(errors)), results["summary"]
    if results["images"]:
        judge.images(summary, results["images"])
    elif receives:
        judge.frames(summary, bool(summary["known"] & _VERDICT))
    else:
        judge.sender(summary)
    return judge.errors


# ---- the object ----

def identify() -> Row:
    """Which run it is, of all of a site's."""
    return {"host": socket.gethostname() or None, "pid": os.getpid(), "started_ns": time.time_ns()}


def summarize(results: Row, get: Get, version: str, run: Row, state: str, steps: list[Row], errors: list[str]) -> Row:
    """run: identify()'s. state: "idle" before the start, "running", "over". errors: of the self-test and the stop."""
    s, causes, images = results["summary"], results["causes"], results["images"]
    ran, known, total = state != "idle", results["summary"]["known"], results["summary"]["total"]
    ports, tx_ports = _all(get, "port"), _all(get, "tx_port")
    received, ordered = ran and bool(ports), bool(known & _LOSS)
    judged = received and not images and bool(known & _VERDICT)
    sent, numbered = ran and known & _TX_STALLED, received and ordered
    command = ("loopback" if tx_ports else "capture") if ports else "replay"
    reasons = (_judge(results, bool(ports), errors) if ran else errors or ["nothing ran"]) if state != "running" else errors
    saves = get("save", 0) is not None or get("save_damaged", 0) is not None
    return {
        "schema": SCHEMA, "version": version, "command": command, "run": run,
        "result": "running" if state == "running" and not reasons else "fail" if reasons else "pass",
        "ports": ports, "tx_ports": tx_ports, "pattern": get("pattern.name", 0), "frame_size": get("frame.size", 0),
        "elapsed_seconds": _number(s["elapsed_seconds"], ran), "seconds": _number(s["seconds"], received),
        "frames": _frames(total, received, judged, ordered) if ran else None,
        "filtered": _count(total["filtered"], received), "bytes": _count(total["bytes"], received),
        "lost_by": {"nic_missed": _count(s["nic_missed"], known & _NIC_MISSED),
                    "nic_error": _count(s["nic_error"], known & _NIC_ERROR),
                    "unexplained": _count(s["unexplained"], ordered),
                    "causes": _causes(causes, False)} if received else None,
        "tx_stalled": _count(s["tx_stalled"], sent), "bits": _bits(total) if judged else None,
        "lock_lost": _count(s["lock_lost"], ran and known & _LOCK), "stale": _count(s["stale"], ran and known & _STALE),
        "pool_empty": {"times": _count(s["pool_empty"]), "seconds": _number(s["pool_empty_seconds"])}
        if received else None,
        "cut": _count(s["cut"], received), "queue_restarts": _count(s["queue_restarts"], received),
        "restarts": _count(total["restarts"], numbered), "untracked": _count(s["untracked"], numbered),
        "conflicts": _count(s["conflicts"], numbered),
        "sender": _sender(s, causes) if sent else None,
        "sending": _sending(s) if ran and known & _SENDING else None,
        "saved": {"frames": _count(s["saved"]), "missed": _count(s["save_missed"]),
                  "damaged_frames": _count(s["damaged_saved"]), "damaged_missed": _count(s["damaged_missed"])}
        if ran and saves else None,
        "clock": s["clock"] or None, "rx_by": s["rx_by"] or None, "tx_by": s["tx_by"] or None, "match": _match(get, s), "steering": _steering(results["rules"]),
        "ended_by_sender": bool(s["ended_by_sender"]) if received else None,
        "rate": {"gbps": _number(s["gbps"]), "mpps": _number(s["mpps"])} if received else None,
        "memory": {"kind": _MEMORY[s["memory"]], "gpu": s["gpu"], "driver": s["driver"],
                   "region_bytes": _count(s["region_bytes"]), "slot_bytes": s["slot_bytes"], "slots": s["slots"],
                   "split": s["split"], "registration": s["registration"] or None},
        "blocks": s["blocks"], "cores": s["cores"],
        "images": [_images(row) for row in images] if images else None,
        "queues": [_queue(index, counts, not images and bool(known & _VERDICT))
                   for index, counts in enumerate(results["queues"])] if ran else [],
        "streams": [{"stream": stream, "frames": _frames(counts, bool(ports), bool(ports), bool(ports) and ordered),
                     "bits": _bits(counts) if ports else None,
                     "restarts": _count(counts["restarts"], ports and ordered)} for stream, counts in results["streams"]],
        "damage": [_damage(damage) for damage in results["damage"]],
        "stages": [{**step, "state": _STEPS[step["state"]]} for step in steps],
        "errors": reasons, "messages": results["messages"][:_MESSAGES],
    }
