# SPDX-License-Identifier: BSD-3-Clause
"""What a page shows of an examination, gdrcap.doctor/1 (docs/doctor.md): the machine, and what is to be done about it."""
import values
from blocks import facts, listed, table
from values import at, count, rows_of, say

ROWS_MOST = 64
CHECKS_MOST = 256
FINE = {"ok": "fine", "not applicable": "does not apply here"}
ORDER = ("fail", "warn", "unknown")


def machine_blocks(found):
    machine = lambda key: at(found, "machine." + key)
    blocks = [facts("Machine", [
        ("distribution", say(machine("distribution")), ""), ("kernel", say(machine("kernel")), ""),
        *((words, "none found" if machine(key) is None and isinstance(found.get("machine"), dict) else say(machine(key)), "")
          for words, key in (("container", "container"), ("virtual machine", "virtual_machine"))),
        ("examined as root", values.yes(machine("root")), "")])]
    gpus, more = rows_of(machine("gpus"), ROWS_MOST)
    if gpus:
        blocks.append(table("GPUs", ("GPU", "name", "CUDA's number", "NUMA node"), [
            (say(row.get("pci"), 40), say(row.get("name"), 80), count(row.get("cuda_ordinal")), count(row.get("numa_node")))
            for row in gpus], more, numbers=False))
    cards, more = rows_of(machine("cards"), ROWS_MOST)
    if cards:
        blocks.append(table("Cards", ("card", "model", "interface", "driver", "NUMA node"), [
            (say(row.get("pci"), 40), say(row.get("model"), 80), say(row.get("interface"), 40), say(row.get("driver"), 40),
             count(row.get("numa_node"))) for row in cards], more, numbers=False))
    pairs, more = rows_of(found.get("pairs"), ROWS_MOST)
    if pairs:
        blocks.append(table("GPU and card, best first", ("GPU", "card", "interface", "path", "CPUs near"), [
            tuple(say(row.get(key), 80) for key in ("gpu", "card", "interface", "path", "cores")) for row in pairs], more, numbers=False))
    return blocks


def verdict_of(check):
    return values.text(check.get("verdict"), 20) or "unknown"


def check_blocks(found):
    checks, more = rows_of(found.get("checks"), CHECKS_MOST)
    wrong = sorted((check for check in checks if verdict_of(check) not in FINE),
                   key=lambda check: ORDER.index(verdict_of(check)) if verdict_of(check) in ORDER else len(ORDER))
    fine = [(words, ", ".join(say(check.get("id"), 60) for check in checks if verdict_of(check) == verdict))
            for verdict, words in FINE.items()]
    blocks = []
    if wrong:
        blocks.append(table("What is not as it should be, and the remedies", ("check", "", "what was read", "why it matters", "remedy"), [
            (" ".join(filter(None, (say(check.get("id"), 60), values.text(check.get("subject"), 60)))), {"state": verdict_of(check)},
             say(check.get("read")), say(check.get("why")), {"lines": remedy_of(check)}) for check in wrong], more, numbers=False))
    blocks += [listed("Other checks", ["%s: %s" % each for each in fine if each[1]])] if checks else []
    return blocks


def remedy_of(check):
    remedy = check.get("remedy")
    lines = remedy.split("\n")[:16] if isinstance(remedy, str) else []
    return [values.text(line, 300) or "" for line in lines]


def section(found, name):
    able = found.get("able")
    state, verdict = {True: ("pass", "ABLE"), False: ("fail", "NOT ABLE")}.get(able, ("unknown", "VERDICT NOT KNOWN")) \
        if isinstance(able, bool) else ("unknown", "VERDICT NOT KNOWN")
    error = values.text(found.get("error"))
    blocks = [listed("Why", [error])] if error else []
    blocks += machine_blocks(found) + check_blocks(found)
    blocks.append(facts("Versions", [("written by", say(found.get("version")), ""), ("schema", say(found.get("schema"), 60), "")]))
    headline = {"pass": "to capture into GPU memory", "fail": "to capture into GPU memory, as it is"}.get(state, "")
    unknown = values.integer(found.get("unknown"))
    if unknown:
        headline += "; not known: %s" % values.many(unknown, "check")
    return {"title": "%s, doctor" % name, "state": state, "verdict": verdict, "headline": headline, "blocks": blocks}
