"""A request as it came in, and what its path means.

/api/v1/nodes                                the collection of a kind
/apis/apps/v1/namespaces/NS/deployments      … in one namespace
…/deployments/NAME                           one object
…/deployments/NAME/scale                     a part of it
"""

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

from podium.apiserver.errors import StatusError, bad_request, no_such_resource, not_found
from podium.apiserver.kinds import Kind, Kinds

_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True", "")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")


NOWHERE: Final = StatusError(404, "NotFound", "404 page not found")
"""A path in a group that nobody serves: the answer to it is not an object of the API."""


class Request(msgspec.Struct):
    """`target` is the path with its query, as sent; the headers are those that matter here."""

    method: str
    target: str
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        """The parameters, the first of each name."""
        _, asks, query = self.target.partition("?")
        if not asks:
            return {}
        return dict(reversed(parse_qsl(query, keep_blank_values=True)))


class Response(msgspec.Struct):
    """An answer. `warnings` go out as Warning headers."""

    status: int
    body: bytes
    content_type: str = "application/json"
    warnings: tuple[str, ...] = ()
    retry_after: int | None = None


class Target(NamedTuple):
    """What a path names: `name` is None for a collection, `namespace` "" for all of them."""

    kind: Kind
    namespace: str
    name: str | None
    subresource: str


def resolve(kinds: Kinds, path: str) -> Target:
    """What the path under /api or /apis names; StatusError 404 where there is no such thing."""
    steps = path.strip("/").split("/")
    if steps[0] == "api":
        group, version, rest = "", steps[1] if len(steps) > 1 else "", steps[2:]
    else:
        group, version, rest = (*steps[1:3], "", "")[0], (*steps[1:3], "", "")[1], steps[3:]
    if "%" in path:
        rest = [unquote(step) for step in rest]
    namespace = ""
    in_namespace = len(rest) >= 3 and rest[0] == "namespaces" and not _is_namespace_part(rest)
    if in_namespace:
        namespace, rest = rest[1], rest[2:]
    if not rest or not rest[0] or len(rest) > 3:
        raise no_such_resource()
    kind = kinds.by_path(group, version, rest[0])
    if kind is None and group and not any(each.group == group for each in kinds):
        raise NOWHERE
    name = rest[1] if len(rest) > 1 else None
    if kind is None or (in_namespace and not kind.namespaced):
        raise no_such_resource()
    if kind.namespaced and name is not None and not namespace:
        raise no_such_resource()
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and kind.part(subresource) is None:
        if kind.custom and subresource in ("status", "scale"):
            raise not_found(kind, rest[1])
        raise no_such_resource()
    return Target(kind, namespace, name, subresource)


def _is_namespace_part(rest: list[str]) -> bool:
    """`namespaces/NS/status` is a part of the namespace, not a kind inside it."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")


def flag(query: dict[str, str], name: str) -> bool:
    """A boolean parameter, as Go reads one: present without a value is true."""
    value = query.get(name)
    if value is None or value in _FALSE:
        return False
    return value in _TRUE or bool(value)


def integer(query: dict[str, str], name: str) -> int | None:
    value = query.get(name)
    if not value:
        return None
    try:
        return int(value)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None
