"""Declares what a table of one kind is made of: its columns, how an object becomes one row of cells, and how single
values are formatted.

A column of priority 1 is shown by `-o wide` only; the server sends every column and the client chooses. The column of
format "name" is the one a client prefixes with the kind where several kinds are shown together.

An age has two or three significant figures: seconds up to two minutes, then 2m5s, 10m, 3h5m, 8h, 2d3h, 8d, 2y3d. A
clock that is behind by less than two seconds counts as now; more than that is `<invalid>`, and no time at all
`<unknown>`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from kubecel.quantity import QuantityError, canonical
from podium.kube.json_object import JsonObject

Cells = list[Any]


class TableColumn(NamedTuple):
    name: str
    description: str
    type: str = "string"
    priority: int = 0
    format: str = ""

    def definition(self) -> JsonObject:
        """The column as the API writes it."""
        return self._asdict()


class KindTable(NamedTuple):
    columns: tuple[TableColumn, ...]
    cells: Callable[[JsonObject, datetime], Cells]
    conditions: Callable[[JsonObject], list[dict[str, str]]] = lambda _: []
    """What a row says of itself beside its cells."""


NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
_SHOWN: Final = 3
NAME: Final = TableColumn("Name", "The object's name, unique among its kind and namespace.", format="name")
AGE: Final = TableColumn("Age", "How long ago the object was created.")
CREATED_AT: Final = TableColumn("Created At", "When the object was created.", type="date")

CONTAINERS: Final = TableColumn("Containers", "The names of the template's containers.", priority=1)
IMAGES: Final = TableColumn("Images", "The images of the template's containers.", priority=1)
SELECTOR: Final = TableColumn("Selector", "Which pods belong to the object.", priority=1)


def wide(name: str, description: str) -> TableColumn:
    """A column that `-o wide` shows."""
    return TableColumn(name, description, priority=1)


def integer(name: str, description: str) -> TableColumn:
    return TableColumn(name, description, type="integer")


def boolean(name: str, description: str) -> TableColumn:
    return TableColumn(name, description, type="boolean")


def name_and_age(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], age(obj, now)]


def age(obj: Mapping[str, Any], now: datetime) -> str:
    """How long ago the object was created."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def since(timestamp: str | None, now: datetime) -> str:
    if not timestamp:
        return UNKNOWN
    return human_duration((now - instant(timestamp)).total_seconds())


def instant(timestamp: str) -> datetime:
    """A timestamp of the API, in UTC unless it says otherwise."""
    return datetime.fromisoformat(timestamp)


def human_duration(elapsed: float) -> str:
    """Seconds as a person wants to read them.

    >>> human_duration(119.9), human_duration(125), human_duration(3 * 3600), human_duration(49 * 3600)
    ('119s', '2m5s', '3h', '2d1h')
    """
    seconds = int(elapsed)
    if seconds < 120:
        return "<invalid>" if seconds < -1 else f"{max(0, seconds)}s"
    minutes, hours = seconds // 60, seconds // 3600
    days = hours // 24
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 8 * 365 else f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def quantity_cell(amount: Any) -> str:
    """A quantity in its canonical form; one that is not there is 0."""
    if amount is None:
        return "0"
    try:
        return canonical(amount)
    except QuantityError:
        return str(amount)


def label_cell(pairs: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((pairs or {}).items())) or NONE


def selector_cell(written: Mapping[str, Any] | None) -> str:
    """A label selector in one line; one that selects everything or nothing is `<none>`."""
    return bare_selector_cell(written) or NONE


def bare_selector_cell(written: Mapping[str, Any] | None) -> str:
    written = written or {}
    terms = [(key, f"{key}={value}") for key, value in (written.get("matchLabels") or {}).items()]
    terms += [(term["key"], _term(term)) for term in written.get("matchExpressions") or ()]
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def _term(term: Mapping[str, Any]) -> str:
    key, operator = term["key"], term["operator"]
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    word = "in" if operator == "In" else "notin"
    return f"{key} {word} ({','.join(sorted(term.get('values') or ()))})"


def container_cells(template: Mapping[str, Any] | None) -> list[str]:
    """Two cells: the names and the images of a pod template's containers."""
    listed = ((template or {}).get("spec") or {}).get("containers") or ()
    return [",".join(each.get("name", "") for each in listed), ",".join(each.get("image", "") for each in listed)]


def at_most_three(texts: Sequence[str], empty: str) -> str:
    """The first three of many, and how many more there are."""
    if len(texts) > _SHOWN:
        return f"{','.join(texts[:_SHOWN])} + {len(texts) - _SHOWN} more..."
    return ",".join(texts) or empty


def condition(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> str:
    """The status of a condition: "True", "False", "Unknown", or nothing where it is not there."""
    return next((str(each.get("status", "")) for each in conditions or () if each.get("type") == kind), "")


def load_balancer(status: Mapping[str, Any]) -> str:
    """The addresses a load balancer has given out."""
    points = (status.get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({point.get("ip") or point.get("hostname") or "" for point in points} - {""}))
