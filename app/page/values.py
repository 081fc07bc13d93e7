# SPDX-License-Identifier: BSD-3-Clause
"""What a stranger's JSON holds, as text for people: of any type, of any size, and never trusted."""
import datetime
import math

UNKNOWN = "not known"
COUNT_MOST = 2**64 - 1
TEXT_MOST = 600  # characters of one text


def at(value, path):
    """"frames.sent" of an object in objects; None where it is not."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def rows_of(value, most):
    """The objects of a list, `most` at most, and how many more there are."""
    found = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return found[:most], len(found) - len(found[:most])


def integer(value):
    """A count: an integer of 64 bits, or its digits where it is beyond 2^63 (docs/json.md); else None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= COUNT_MOST:
        return None
    return value


def real(value):
    """A finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def text(value, most=TEXT_MOST):
    """Text that no terminal and no page obeys, None where it is none."""
    if not isinstance(value, str) or not value:
        return None
    shown = "".join(c if c.isprintable() else " " if c in "\n\t" else "?" for c in value[:most])
    return shown + " … (%d characters more)" % (len(value) - most) if len(value) > most else shown


def say(value, most=TEXT_MOST):
    return text(value, most) or UNKNOWN


def count(value):
    found = integer(value)
    return UNKNOWN if found is None else "{:,}".format(found)


def identifier(value):
    """A number that counts nothing."""
    found = integer(value)
    return UNKNOWN if found is None else "%d" % found


def moment(value):
    """Nanoseconds since the Unix epoch as a time, whole seconds."""
    found = integer(value)
    if found is None:
        return UNKNOWN
    return datetime.datetime.fromtimestamp(found // 10**9, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def many(value, noun):
    """"1 line", "2,000 lines"."""
    return "%s %s%s" % (count(value), noun, "" if integer(value) == 1 else "s")


def number(value, unit="", digits=6):
    """So many digits that count."""
    found = real(value)
    if found is None:
        return UNKNOWN
    if found and not 1e-4 <= abs(found) < 1e15:
        shown = "%.*e" % (digits - 1, found)
    else:
        whole = len("%d" % abs(found)) if abs(found) >= 1 else 0
        shown = "{:,.{}f}".format(found, max(0, digits - whole) if found != int(found) else 0)
    return shown + (" " + unit if unit else "")


def duration(value):
    found = real(value)
    if found is None or found < 0:
        return UNKNOWN
    if 0 < found < 0.1:
        return nanoseconds(found * 1e9)
    if found < 120:
        return number(found, "s", 5)
    whole = int(found)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    if days > 36500:
        return number(found, "s")
    return "%s%d:%02d:%02d h" % ("%d d " % days if days else "", hours, rest // 60, rest % 60)


def nanoseconds(value):
    found = real(value)
    if found is None:
        return UNKNOWN
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(found) >= scale:
            return number(found / scale, unit, 4)
    return number(found, "ns", 4)


def size(value):
    """Bytes, also in units of 1,024."""
    found = integer(value)
    if found is None:
        return UNKNOWN
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if found >= 1024**power:
            return "%s %s" % (number(found / 1024**power, digits=4), unit)
    return "%d bytes" % found


def ratio(wrong, checked):
    """As the program's own text has it: with none wrong the true ratio is likely below 1 / checked."""
    wrong, checked = integer(wrong), integer(checked)
    if wrong is None or not checked:
        return UNKNOWN
    return "%.3e" % (wrong / checked) if wrong else "< %.1e" % (1 / checked)


def yes(value):
    return {True: "yes", False: "no"}.get(value, UNKNOWN) if isinstance(value, bool) else UNKNOWN


def words(value, most=64):
    """Texts and numbers of a list, on one line."""
    if not isinstance(value, list):
        return UNKNOWN
    shown = [str(each) if integer(each) is not None else say(each, 120) for each in value[:most]]
    more = len(value) - len(shown)
    return (", ".join(shown) + (" and %d more" % more if more else "")) or "none"


def texts(value, most):
    """The texts of a list, one each, and a line that says how many more there are."""
    found = value if isinstance(value, list) else []
    shown = [say(each) for each in found[:most]]
    return shown + (["… and %d more" % (len(found) - most)] if len(found) > most else [])
