# SPDX-License-Identifier: BSD-3-Clause
"""A run's verdict as far as its summary bears it out: a "pass" beside counts that contradict it is none."""
from values import UNKNOWN, at, count, integer, many, rows_of, texts

STATES = {"pass": "PASS", "fail": "FAIL", "running": "STILL RUNNING"}
NOT_KNOWN = "VERDICT NOT KNOWN"
NOT_ENDED = "NOT ENDED"
ALL = 1 << 30  # rows: of what is judged none is left out
REASONS_MOST = 4
FRAMES = ("damaged", "lost", "duplicate", "reordered")
# Not 0: no run passes (docs/json.md). Path and words.
WRONG = (*(("frames." + key, "frames " + key) for key in FRAMES), ("bits.wrong", "bits wrong"), ("stale", "stale frames"),
         ("lock_lost", "lock lost"), ("untracked", "untracked frames"), ("conflicts", "conflicts of streams"),
         ("sender.errors", "frames the port could not send"), ("sending.unsent", "frames unsent"), ("sending.refused", "frames refused"),
         ("sending.failed", "frames the port could not send"), ("saved.missed", "frames not saved"),
         ("saved.damaged_missed", "damaged frames not saved"))
IMAGES_WRONG = (("incomplete", "images incomplete"), ("dropped", "images dropped"), ("skipped", "images skipped"), ("open", "images open"),
                ("saved.missed", "images not saved"))
# Sums that hold at the end of a run.
IDENTITIES = (("frames.sent", ("frames.valid", "frames.damaged", "frames.lost")),
              ("frames.received", ("frames.valid", "frames.damaged", "frames.duplicate", "filtered")))


def wrong_counts(found, paths, where=""):
    return ["%s%s: %s" % (words, where, count(at(found, path))) for path, words in paths if integer(at(found, path))]


def uncut(row):
    """Without the images in whose middle the run began or ended: with `incomplete: drop` they are among the dropped."""
    cut = (integer(at(row, "cut.by_start")) or 0) + (integer(at(row, "cut.by_stop")) or 0)
    key = "incomplete" if (integer(row.get("incomplete")) or 0) >= cut else "dropped"
    return {**row, key: (integer(row.get(key)) or 0) - cut} if cut else row


def sums(summary):
    for whole, parts in IDENTITIES:
        counts = [integer(at(summary, path)) for path in (whole, *parts)]
        if None not in counts and counts[0] != sum(counts[1:]):
            yield "%s: %s, but %s together: %s" % (whole, count(counts[0]), ", ".join(parts), "{:,}".format(sum(counts[1:])))


def contradictions(summary):
    """What stands in a summary and cannot where a run passed."""
    found = ["error: %s" % error for error in texts(summary.get("errors"), REASONS_MOST)]
    found += wrong_counts(summary, WRONG)
    for row in rows_of(summary.get("images"), ALL)[0]:
        found += wrong_counts(uncut(row), IMAGES_WRONG)
    for row in rows_of(summary.get("streams"), ALL)[0]:
        found += wrong_counts(row, WRONG[:len(FRAMES)], " in stream %s" % count(row.get("stream")))
    for row in rows_of(summary.get("queues"), ALL)[0]:
        found += wrong_counts(row, [(key, "frames " + key) for key in FRAMES], " in queue %s" % count(row.get("queue")))
    found += ["stage failed"] if any(row.get("state") == "failed" for row in rows_of(summary.get("stages"), ALL)[0]) else []
    found += ["damaged frames are listed"] if summary.get("damage") else []
    return found + list(sums(summary))


def receives(summary):
    """A replay receives nothing."""
    return integer(at(summary, "frames.received")) is not None or summary.get("command") in ("loopback", "capture")


def claim(summary):
    """What a run that passed did, and the names of what has to be known and be more than 0 for that, and of what has to be 0."""
    rows, _ = rows_of(summary.get("images"), ALL)
    if summary.get("images"):
        whole = isinstance(summary["images"], list) and len(rows) == len(summary["images"])
        complete = [integer(row.get("complete")) if whole else None for row in rows] or [None]
        total = None if None in complete else sum(complete)
        unknown = [key for key in ("incomplete", "dropped") if any(integer(row.get(key)) is None for row in rows)]
        said = "%s, every one complete" % many(total, "image")
        return said + lacking(rows, "skipped"), {"images complete": total}, ["images " + key for key in unknown]
    if receives(summary):
        saved = integer(at(summary, "saved.frames"))
        if saved and integer(at(summary, "frames.valid")) == 0:  # a recording: nothing said what frames should be
            return "%s saved" % many(saved, "frame"), {"saved.frames": saved}, []
        counts = {"frames." + key: integer(at(summary, "frames." + key)) for key in ("received", "valid")}
        unknown = ["frames.damaged"] if integer(at(summary, "frames.damaged")) is None else []
        return "%s received, every one valid%s" % (many(counts["frames.valid"], "frame"), lacking([summary.get("frames")], "lost")), counts, unknown
    sent = integer(at(summary, "frames.sent"))
    if not sent and integer(at(summary, "sending.sent")) is not None:
        sent = integer(at(summary, "sending.sent"))
    return "%s sent" % many(sent, "frame"), {"frames.sent": sent}, []


def lacking(rows, key):
    """No run has all counts: where frames or images have no numbers nobody knows which never came."""
    return "; %s: %s" % (key, UNKNOWN) if any(integer(at(row, key)) is None for row in rows) else ""


def doubts(summary):
    """Why "pass" is more than the summary bears out, and what it says otherwise."""
    said, counts, unknown = claim(summary)
    found = contradictions(summary)
    found += ["%s: 0" % name for name, value in counts.items() if value == 0]
    unknown += [name for name, value in counts.items() if value is None]
    unknown += [] if isinstance(summary.get("errors"), list) else ["errors"]
    return said, found + ["%s: %s" % (name, UNKNOWN) for name in unknown]


def of(summary, followed=False):
    """(state, what the page calls it, what stands beside it). followed: another run begins behind this one's last line."""
    state = summary.get("result")
    if not isinstance(state, str) or state not in STATES:
        return "unknown", NOT_KNOWN, ""
    if state == "running" and followed:
        return state, NOT_ENDED, "no final line of it is here, and another run follows"
    if state != "pass":
        return state, STATES[state], ""
    said, found = doubts(summary)
    if not found:
        return state, STATES[state], said
    more = len(found) - REASONS_MOST
    return "unknown", NOT_KNOWN, "it says “pass”, which this does not bear out: %s%s" % (
        "; ".join(found[:REASONS_MOST]), " and %d more" % more if more > 0 else "")
