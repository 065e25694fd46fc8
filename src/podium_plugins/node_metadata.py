"""Scores nodes by the number or the time in one label or annotation (NodeMetadata).

    raw = number without its fraction (Highest), the same negated (Lowest);
          seconds since the epoch (Newest), the same negated (Oldest)
    score = (raw − lowest)·99 ÷ (highest − lowest) + 1 among the nodes that have a value, 1 where all have the same

A node without a value, or with one that cannot be read, scores 0: the lowest that a value gives is 1. Ages of nodes
differ by as much as their times do, so the clock is not asked, and the scores hold until a node changes.

Times are read the way a Go layout shows. A layout is the reference time Mon Jan 2 15:04:05 MST 2006, written as the
times to be read are: `2006-01-02 15:04` reads `2026-08-16 09:30`. Parts of it that stand for something are replaced,
the rest must be there word for word. Go's rules hold: a fraction of a second may follow the seconds though the layout
shows none; a time without a zone is UTC; where the layout shows no year it is 0.

Not the same: the abbreviation of a zone (MST) is read and counts as UTC, which Go does for all but the local zone's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np

from podium import (
    MAX_SCORE,
    Cycle,
    DependsOn,
    FieldError,
    FieldPath,
    Handle,
    NodePart,
    Plugin,
    RowNumbers,
    Scores,
    read_decimal,
)
from podium.cluster import Cluster, NodeInfo, Nodes

LABEL: Final = "Label"
ANNOTATION: Final = "Annotation"
NUMBER: Final = "Number"
TIMESTAMP: Final = "Timestamp"
HIGHEST, LOWEST = "Highest", "Lowest"
NEWEST, OLDEST = "Newest", "Oldest"

_ONLY_FOR: Final = {
    NUMBER: ((NEWEST, OLDEST), 'scoringStrategy "Newest" and "Oldest" are only valid for metadataType "Timestamp"'),
    TIMESTAMP: ((HIGHEST, LOWEST), 'scoringStrategy "Highest" and "Lowest" are only valid for metadataType "Number"'),
}
"""Strategies that do not go with a type, and how that is said."""


class NodeMetadataArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Where the value stands, how it is read, and which end is better."""

    metadata_key: str = ""
    metadata_source: str = ""
    metadata_type: str = ""
    scoring_strategy: str = ""
    timestamp_format: str = ""
    """How times are written, as a Go layout; RFC 3339 where it is empty."""

    def __post_init__(self) -> None:
        if self.metadata_type == TIMESTAMP and not self.timestamp_format:
            msgspec.structs.force_setattr(self, "timestamp_format", RFC3339)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.metadata_key:
            yield FieldError.required(path.child("metadataKey"), "metadataKey cannot be empty")
        strategy = self.scoring_strategy
        for name, value, allowed, detail in (
            ("metadataSource", self.metadata_source, (LABEL, ANNOTATION), 'must be either "Label" or "Annotation"'),
            ("metadataType", self.metadata_type, (NUMBER, TIMESTAMP), 'must be either "Number" or "Timestamp"'),
            (
                "scoringStrategy",
                strategy,
                (HIGHEST, LOWEST, NEWEST, OLDEST),
                'must be one of "Highest", "Lowest", "Newest", or "Oldest"',
            ),
        ):
            if value not in allowed:
                yield FieldError.invalid(path.child(name), value, f"{name} {detail}")
        wrong, detail = _ONLY_FOR.get(self.metadata_type, ((), ""))
        if strategy in wrong:
            yield FieldError.invalid(path.child("scoringStrategy"), strategy, detail)
        if self.metadata_type == TIMESTAMP:
            try:
                reader_of(self.timestamp_format)
            except LayoutError as error:
                yield FieldError.invalid(path.child("timestampFormat"), self.timestamp_format, str(error))


NAME: Final = "NodeMetadata"
NO_VALUE: Final = -(2**63)
"""The raw score of a node without a value: no value is so low."""
HIGHEST_NUMBER: Final = 2**62
"""Numbers from here on are not read: differences must fit into 64 bits."""
_ROOM: Final = (2**63 - 1) // MAX_SCORE


class NodeMetadata(Plugin):
    name = NAME
    trusted = True
    Args = NodeMetadataArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def __init__(self, args: NodeMetadataArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args: NodeMetadataArgs = args
        self._sign = -1 if args.scoring_strategy in (LOWEST, OLDEST) else 1
        self._read = read_number if args.metadata_type == NUMBER else reader_of(args.timestamp_format)
        self._raw = RowNumbers(1, self._of_row)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        scores: Scores = nodes.pick(self._raw.over_rows(cycle.cluster)[0])
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return int(self._raw.on(cycle.cluster, node.row)[0])

    def _of_row(self, cluster: Cluster, row: int) -> tuple[int]:
        node = cluster.nodes[row]
        if node is None:
            return (NO_VALUE,)
        written = node.labels if self.args.metadata_source == LABEL else node.annotations
        text = written.get(self.args.metadata_key)
        value = None if text is None else self._read(text)
        return (NO_VALUE if value is None else self._sign * value,)

    def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
        valid = scores != NO_VALUE
        values = scores[valid]
        if not len(values):
            return np.zeros_like(scores)
        lowest = int(values.min())
        span = int(values.max()) - lowest
        points = np.zeros_like(scores)
        if not span:
            points[valid] = 1
        elif span <= _ROOM:
            points[valid] = (values - lowest) * (MAX_SCORE - 1) // span + 1
        else:
            points[valid] = [(each - lowest) * (MAX_SCORE - 1) // span + 1 for each in values.tolist()]
        return points


def read_number(text: str) -> int | None:
    """A number without its fraction; None where it is none.

    >>> read_number("2.9"), read_number("-2.9"), read_number("1e3"), read_number("NaN"), read_number("fast")
    (2, -2, 1000, None, None)
    """
    number = read_decimal(text)
    return int(number) if number is not None and abs(number) < HIGHEST_NUMBER else None


# Times by a Go layout

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
_MONTHS: Final = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_DAYS: Final = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_DAY: Final = 86_400


def _names(name: str, words: list[str]) -> str:
    return f"(?P<{name}>{'|'.join(words)})"


def _short(words: list[str]) -> list[str]:
    return [word[:3] for word in words]


_FRACTION: Final = r"(?:[.,](?P<{}>[0-9]+))?"
_ZONES: Final = {
    "07:00:00": r"[0-9]{2}:[0-9]{2}:[0-9]{2}",
    "070000": r"[0-9]{6}",
    "07:00": r"[0-9]{2}:[0-9]{2}",
    "0700": r"[0-9]{4}",
    "07": r"[0-9]{2}",
}
_PARTS: Final[dict[str, str]] = {
    "January": _names("month", _MONTHS),
    "Jan": _names("month", _short(_MONTHS)),
    "Monday": _names("weekday", _DAYS),
    "Mon": _names("weekday", _short(_DAYS)),
    "MST": r"(?P<abbreviation>[A-Z]{3,5}|[+-][0-9]{2})",
    "2006": r"(?P<year>[0-9]{4})",
    "002": r"(?P<day_of_year>[0-9]{3})",
    "__2": r"(?P<day_of_year>[ 0-9]{2}[0-9])",
    "01": r"(?P<month>[0-9]{2})",
    "02": r"(?P<day>[0-9]{2})",
    "03": r"(?P<hour12>[0-9]{2})",
    "04": r"(?P<minute>[0-9]{2})",
    "05": r"(?P<second>[0-9]{2})" + _FRACTION.format("fraction"),
    "06": r"(?P<short_year>[0-9]{2})",
    "15": r"(?P<hour>[0-9]{2})",
    "PM": r"(?P<half>AM|PM)",
    "pm": r"(?P<half>am|pm)",
    "_2": r"(?P<day> ?[0-9]{1,2})",
    **{f"Z{shown}": rf"(?P<zone>Z|[+-]{form})" for shown, form in _ZONES.items()},
    **{f"-{shown}": rf"(?P<zone>[+-]{form})" for shown, form in _ZONES.items()},
    "1": r"(?P<month>[0-9]{1,2})",
    "2": r"(?P<day>[0-9]{1,2})",
    "3": r"(?P<hour12>[0-9]{1,2})",
    "4": r"(?P<minute>[0-9]{1,2})",
    "5": r"(?P<second>[0-9]{1,2})" + _FRACTION.format("fraction"),
}
"""What stands for something in a layout, and what may stand there in a time."""

# A longer part goes before its beginning ("Monday" before "Mon"); "_2006" is an underscore and a year.
_FIND: Final = re.compile(
    r"(?P<shown>[.,](?:0+|9+))(?![0-9])|_(?=2006)|" + "|".join(map(re.escape, sorted(_PARTS, key=len, reverse=True)))
)


class LayoutError(ValueError):
    """A layout that no time can be read by."""


@lru_cache(maxsize=64)
def reader_of(layout: str) -> Callable[[str], int | None]:
    """What reads a time: seconds since the epoch, rounded down; None where the text is not such a time.

    >>> read = reader_of("2006-01-02 15:04")
    >>> read("1970-01-02 00:01"), read("1970-01-02"), read("1970-13-02 00:01")
    (86460, None, None)
    """
    pattern, position, named = [], 0, False
    for found in _FIND.finditer(layout):
        pattern.append(re.escape(layout[position : found.start()]))
        position, part = found.end(), found[0]
        if found["shown"]:
            if not (pattern and "fraction" in "".join(pattern)):
                pattern.append(re.escape(part))  # not behind seconds: it stands for itself
            continue  # the pattern of seconds has taken the fraction in
        pattern.append(re.escape(part) if part == "_" else _PARTS[part])
        named = named or part != "_"
    pattern.append(re.escape(layout[position:]))
    if not named:
        raise LayoutError('it shows no part of the reference time; write it like "2006-01-02T15:04:05Z07:00"')
    try:
        compiled = re.compile("".join(pattern), re.ASCII)
    except re.error:
        raise LayoutError("it shows a part of the time twice") from None

    def read(text: str) -> int | None:
        match = compiled.fullmatch(text)
        if match is None:
            return None
        try:
            return _seconds({name: value for name, value in match.groupdict().items() if value is not None})
        except ValueError:
            return None

    return read


def _seconds(parts: dict[str, str]) -> int:
    year = int(parts.get("year", 0))
    if "short_year" in parts:
        short = int(parts["short_year"])
        year = short + (1900 if short >= 69 else 2000)
    day = _day(year, parts)
    hour = int(parts.get("hour", 0))
    if "hour12" in parts:
        hour = int(parts["hour12"])
        if hour > 12:
            raise ValueError("no hour of half a day")
        if "half" in parts:
            hour = hour % 12 + 12 * (parts["half"] in ("PM", "pm"))
    minute, second = int(parts.get("minute", 0)), int(parts.get("second", 0))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("no time of day")
    return day * _DAY + hour * 3600 + minute * 60 + second - _offset(parts.get("zone", "Z"))


def _day(year: int, parts: dict[str, str]) -> int:
    """Days since the epoch; the calendar is the Gregorian one, before its time, too."""
    month = parts.get("month", "1")
    number = int(month) if month.isdigit() else _short(_MONTHS).index(month[:3]) + 1
    # Python's dates begin with the year 1; the calendar repeats after 400 years, which are 146097 days.
    first = date(year + 400, 1, 1).toordinal() - 146_097 - date(1970, 1, 1).toordinal()
    if "day_of_year" in parts:
        length = 365 + _leap(year)
        nth = int(parts["day_of_year"])
        if not 1 <= nth <= length:
            raise ValueError("no day of the year")
        return first + nth - 1
    return first + (date(year + 400, number, int(parts.get("day", 1))) - date(year + 400, 1, 1)).days


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if hours > 24 or minutes > 60 or seconds > 60:
        raise ValueError("no zone")
    return (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60 + seconds)
