# SPDX-License-Identifier: BSD-3-Clause
"""What a page shows of a run: blocks, of text, tables and drawings, from its summary (docs/json.md)."""
import plots
import values
from blocks import facts, figure, listed, sentence, table
from values import at, count, duration, identifier, moment, number, ratio, rows_of, say, words

ROWS_MOST = 64  # of queues, of streams, of rules, of images
ERRORS_MOST, MESSAGES_MOST, DAMAGE_MOST, INCOMPLETE_MOST = 32, 256, 16, 16


# ---- frames ----

def frames_facts(summary):
    frames = lambda key: count(at(summary, "frames." + key))
    rows = [("sent", frames("sent"), "frames handed to the wire"),
            ("received", frames("received"), "frames that arrived in memory, others' too"),
            ("", count(summary.get("bytes")), "bytes in memory, without FCS"),
            ("valid", frames("valid"), "frames of which every payload byte was right"),
            ("damaged", frames("damaged"), "frames with a wrong payload, header or length"),
            ("lost", frames("lost"), "frames sent and never seen"),
            ("duplicate", frames("duplicate"), "frames that came again"),
            ("reordered", frames("reordered"), "frames after a later one of their stream"),
            ("filtered", count(summary.get("filtered")), "frames that are not meant"),
            ("bits checked", count(at(summary, "bits.checked")), "payload bits"),
            ("bits wrong", count(at(summary, "bits.wrong")), "payload bits"),
            ("bit error ratio", ratio(at(summary, "bits.wrong"), at(summary, "bits.checked")), "wrong / checked payload bits")]
    rows += [(name, count(summary[key]), what) for name, key, what in (
        ("stale", "stale", "frames seen before their bytes were there"),
        ("lock lost", "lock_lost", "times that a payload did not go on where the one before ended"),
        ("cut", "cut", "frames that filled their room at the port: what was longer has lost its end"),
        ("queue restarts", "queue_restarts", "receive queues in error that were started again"),
        ("restarts", "restarts", "times that a sender began a stream again"),
        ("untracked", "untracked", "frames of more streams than there is room for"),
        ("conflicts", "conflicts", "stream ids that more than one source address used")) if summary.get(key)]
    return facts("Frames", rows)


def rate_facts(summary):
    rows = [("run", duration(summary.get("elapsed_seconds")), "from its start to its end")] if "elapsed_seconds" in summary else []
    rows += [("time", duration(summary.get("seconds")), "first frame to last"),
            ("rate", number(at(summary, "rate.gbps"), "Gb/s"), "received, on the wire: with FCS, preamble and gap"),
            ("", number(at(summary, "rate.mpps"), "Mpps"), "received")]
    return facts("Rate", rows)


def sender_facts(summary):
    sender = lambda path: at(summary, "sender." + path)
    rows = [("time", duration(sender("seconds")), "first hand-over to last"),
            ("rate", number(sender("gbps"), "Gb/s"), "sent, on the wire"),
            ("", number(sender("mpps"), "Mpps"), "sent")]
    rows += [("asked", number(sender("asked." + key), unit), "what was asked for")
             for key, unit in (("gbps", "Gb/s"), ("mpps", "Mpps"), ("seconds", "s")) if sender("asked." + key) is not None]
    rows += [("frames", count(sender("frames")), "handed to the port; asked for: %s" % (
                 count(sender("asked.frames")) if sender("asked.frames") is not None else "until it is ended")),
             ("stalled", count(summary.get("tx_stalled")), "polls in which the sender was held back: not lost"),
             ("starved", count(sender("starved")), "polls in which its next frames were not ready"),
             ("errors", count(sender("errors")), "frames that the port took and could not send")]
    gaps = sender("gap_error_ns")
    if isinstance(gaps, dict):
        rows += [("gap error, " + key, values.nanoseconds(gaps.get(key)), "of the gap between two hand-overs to the port, to the one "
                  "asked for") for key in ("p50", "p99", "max")]
    return facts("Sender", rows)


def sending_facts(summary):
    return facts("The caller's own frames", [
        (key, count(at(summary, "sending." + key)), what) for key, what in (
            ("submitted", "frames submitted"), ("sent", "frames that the ports took"), ("unsent", "frames that waited when the run ended"),
            ("refused", "frames of a length that none has"), ("failed", "frames that a port took and could not send"),
            ("stalled", "polls in which a port took nothing: not lost"), ("bytes", "bytes of those sent, in memory"))])


def saved_facts(summary):
    return facts("Saved", [(name, count(at(summary, "saved." + key)), what) for name, key, what in (
        ("frames", "frames", "in the file"), ("missed", "missed", "that the file did not take"),
        ("damaged", "damaged_frames", "in the file of damaged ones"), ("missed", "damaged_missed", "that this file did not take"))])


# ---- why frames were lost ----

def cause_rows(summary, path, known):
    """Counted causes with what helps; those that are 0 or that no card counts are told in a sentence."""
    found = at(summary, path)
    rows, zero, unknown = [], [], []
    for name, value in list(found.items())[:ROWS_MOST] if isinstance(found, dict) else ():
        counted = values.integer(value)
        shown = say(name, 60)
        if counted:
            rows.append((shown, count(value), known.get(name, "")))
        else:
            (unknown if counted is None else zero).append(shown)
    return rows, zero, unknown


def causes_blocks(summary, known):
    lost = lambda key: at(summary, "lost_by." + key)
    own = summary.get("rx_by") in ("cpu", "gpu")
    rows = [("no buffer", count(lost("nic_missed")), "frames that the port missed: the consumer is slower than the wire, or the pool is "
             "small (--blocks, --pool)"),
            ("queue in error" if own else "bad on the wire", count(lost("nic_error")),
             "frames of queues in error, until they ran again" if own else "frames that the port refused as bad"),
            ("unexplained", count(lost("unexplained")), "frames lost, and no exact counter says where")]
    rows = rows if isinstance(summary.get("lost_by"), dict) else []
    pool = summary.get("pool_empty")
    if isinstance(pool, dict):
        rows.append(("pool empty", number(pool.get("seconds"), "s"), "without a free slot: the consumer had them all; times: %s" % count(
            pool.get("times"))))
    zero, unknown = [], []
    for path in ("lost_by.causes", "sender.causes"):
        more = cause_rows(summary, path, known)
        rows += more[0]
        zero += more[1]
        unknown += more[2]
    note = [] if not zero else ["Counted, and 0: %s." % ", ".join(zero)]
    note += [] if not unknown else ["Not known, as no card here counts them: %s." % ", ".join(unknown)]
    return [facts("Where frames were lost, and what helps", rows, " ".join(note) or None)] if rows else []


def bits_of(expected, got):
    """A byte as it came, its bits from the highest, and which of them are wrong."""
    expected, got = values.integer(expected), values.integer(got)
    if expected is None or got is None or expected > 255 or got > 255:
        return values.UNKNOWN
    return {"bits": [(got >> i & 1, (got ^ expected) >> i & 1) for i in range(7, -1, -1)]}


def byte(value):
    found = values.integer(value)
    return values.UNKNOWN if found is None or found > 255 else "0x%02x" % found


def damage_blocks(summary):
    damage, more = rows_of(summary.get("damage"), DAMAGE_MOST)
    if not damage:
        return []
    rows = [(say(row.get("kind"), 40), count(row.get("stream")), count(row.get("sequence")), count(row.get("queue")),
             count(row.get("wrong_bits")), count(row.get("offset")), byte(row.get("expected")), byte(row.get("got")),
             bits_of(row.get("expected"), row.get("got"))) for row in damage]
    return [table("The first damaged frames", ("kind", "stream", "sequence", "queue", "wrong bits", "offset", "expected", "got",
                                               "bits as they came"), rows, more,
                  "Offset: of the first wrong byte, from the frame's first. That byte is shown with its wrong bits marked; further wrong "
                  "bits of the frame are counted only.")]


# ---- parts of a run ----

COUNTS = ("sent", "received", "valid", "damaged", "lost", "duplicate", "reordered")


def queue_blocks(summary):
    queues, more = rows_of(summary.get("queues"), ROWS_MOST)
    keys = ("received", "valid", "damaged", "duplicate", "reordered", "filtered", "bytes")
    rows = [(count(row.get("queue")), *(count(row.get(key)) for key in keys)) for row in queues]
    return [table("Receive queues", ("queue", *keys), rows, more)] if len(rows) > 1 else []


def stream_blocks(summary):
    streams, more = rows_of(summary.get("streams"), ROWS_MOST)
    rows = [(count(row.get("stream")), *(count(at(row, "frames." + key)) for key in COUNTS)) for row in streams]
    return [table("Streams", ("stream", *COUNTS), rows, more)] if len(rows) > 1 else []


def stage_blocks(summary):
    stages, more = rows_of(summary.get("stages"), ROWS_MOST)
    if not stages:
        return []
    rows = [(say(row.get("name"), 80), {"state": say(row.get("state"), 20)}, values.text(row.get("detail")) or "") for row in stages]
    found = [table("The first frame, stage by stage", ("stage", "", "what was found"), rows, more, numbers=False)]
    for row in stages:
        if isinstance(row.get("causes"), list) and row["causes"]:
            found.append(listed("Likely causes of “%s”, the likeliest first" % say(row.get("name"), 80), values.texts(row["causes"], 16)))
    return found


def image_blocks(summary):
    images, more = rows_of(summary.get("images"), ROWS_MOST)
    if not images:
        return []
    keys = ("begun", "complete", "incomplete", "cut.by_start", "cut.by_stop", "dropped", "skipped", "restarts")
    frames = ("received", "placed", "duplicate", "second_leg", "conflict", "late", "no_room", "misfit", "filtered")
    name = lambda row: say(row.get("name"), 80)
    found = [table("Images", ("images", *(key.replace(".", " ").replace("_", " ") for key in keys), "pieces lost", "bytes"), [
                 (name(row), *(count(at(row, key)) for key in keys), count(at(row, "pieces.lost")), count(row.get("bytes")))
                 for row in images], more),
             table("Their frames", ("images", *(key.replace("_", " ") for key in frames)), [
                 (name(row), *(count(at(row, "frames." + key)) for key in frames)) for row in images], more)]
    for row in images:
        wrong, left = rows_of(row.get("first_incomplete"), INCOMPLETE_MOST)
        if wrong:
            found.append(table("The first incomplete images of %s" % name(row), (
                "number", "stream", "closed by", "pieces", "received", "missing ranges"), [
                    (count(each.get("number")), count(each.get("stream")), say(each.get("by"), 40), count(each.get("pieces")),
                     count(each.get("received")), count(each.get("ranges"))) for each in wrong], left))
    return found


def configuration(summary):
    rows = [("host", say(at(summary, "run.host"))), ("process", identifier(at(summary, "run.pid"))),
            ("started", moment(at(summary, "run.started_ns"))),
            ("ports", words(summary.get("ports"))), ("sending ports", words(summary.get("tx_ports"))),
            ("pattern", say(summary.get("pattern"))), ("frame size", say(summary.get("frame_size"))),
            ("rules", words(at(summary, "match.rules"))), ("rules applied by", say(at(summary, "match.applied"))),
            ("taken from the port by", say(summary.get("rx_by"))), ("handed to the port by", say(summary.get("tx_by"))),
            ("frames land in", say(at(summary, "memory.kind"))),
            ("GPU", say(at(summary, "memory.gpu"))), ("its driver for DPDK", say(at(summary, "memory.driver"))),
            ("region", values.size(at(summary, "memory.region_bytes"))),
            ("slots", "%s of %s" % (count(at(summary, "memory.slots")), values.size(at(summary, "memory.slot_bytes")))),
            ("split after", values.size(at(summary, "memory.split"))),
            ("workers a queue", count(summary.get("blocks"))), ("CPUs", words(summary.get("cores"))),
            ("ended by the sender", values.yes(summary.get("ended_by_sender")))]
    # Null is known to be none here: no times are kept, no card reaches the memory.
    rows += [(name, say(at(summary, key))) for name, key in (("arrival times by", "clock"), ("registered as", "memory.registration"))
             if at(summary, key) is not None]
    rules, more = rows_of(at(summary, "steering.rules"), ROWS_MOST)
    found = [facts("Configuration", [(name, shown, "") for name, shown in rows])]
    if rules:
        found.append(table("Rules by which the card steers", ("rule", "frames"), [
            (say(row.get("rule"), 200), count(row.get("frames"))) for row in rules], more))
    return found


# ---- a run ----

def course_blocks(run, name):
    points = run.course.points()
    if not points:
        return [sentence("No frame came or left, so there is no course over time.")] if run.lines > 1 else []
    if run.lines < 2:
        return [sentence("One summary has no course over time: --json-lines SECONDS gives a line each interval.")]
    said = "%s of %s" % (values.many(run.lines, "line"), name)
    thinned = "" if run.course.lines_each == 1 else (
        " Each point stands for %s lines: the line is their mean, the band from their least to their most." % count(run.course.lines_each))
    stood = "" if not run.course.stood else (
        " At %s no frame had come since the line before; one usual interval each is taken to have passed." % values.many(
            run.course.stood, "line"))
    last = points[-1]
    shown = "At the end, after %s: %s." % (duration(last.time), ", ".join(
        "%s %s" % (key, count(value)) for key, value in last.losses.items()))
    time, since = ("", "the run's start") if run.course.exact else (" Time is that of the last frame, from the first.", "the first frame")
    return [figure("Rate and losses over time.%s%s%s Until the end, frames in flight are among those lost." % (time, thinned, stood),
                   plots.course(points, since, "Rate and losses over time", "%s. %s" % (said, shown)))]


def section(run, name, causes):
    """causes: name -> what it says, and what helps."""
    summary = run.last
    state, verdict, headline = run.verdict()
    errors = values.texts(summary.get("errors"), ERRORS_MOST)
    blocks = [listed("Why", errors)] if errors else []
    blocks += course_blocks(run, name)
    blocks += image_blocks(summary)
    if summary.get("frames") is not None and not rows_of(summary.get("images"), 1)[0]:
        blocks.append(frames_facts(summary))
    blocks += [rate_facts(summary)] if summary.get("rate") is not None else []
    blocks += causes_blocks(summary, causes)
    blocks += damage_blocks(summary)
    blocks += [make(summary) for key, make in (("sender", sender_facts), ("sending", sending_facts), ("saved", saved_facts))
               if isinstance(summary.get(key), dict)]
    blocks += stage_blocks(summary) + queue_blocks(summary) + stream_blocks(summary) + configuration(summary)
    messages = values.texts(summary.get("messages"), MESSAGES_MOST)
    blocks += [listed("Messages of the run, oldest first", messages)] if messages else []
    blocks.append(facts("Versions", [("written by", say(summary.get("version")), ""), ("schema", say(summary.get("schema"), 60), "")]))
    return {"title": "%s, %s" % (name, values.text(summary.get("command"), 40) or "run"), "state": state,
            "verdict": verdict, "headline": headline, "blocks": blocks}
