"""Declares a request as it came in and the answer to it, without the HTTP library, and reads query parameters."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

import msgspec

from podium_cluster.apiserver.errors import bad_request

Query = dict[str, str]

_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True", "")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")


class ApiRequest(msgspec.Struct):
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
    def query(self) -> Query:
        """The parameters, the first of each name."""
        _, separator, query = self.target.partition("?")
        if not separator:
            return {}
        return dict(reversed(parse_qsl(query, keep_blank_values=True)))


class ApiResponse(msgspec.Struct):
    """An answer. `warnings` go out as Warning headers."""

    status: int
    body: bytes
    content_type: str = "application/json"
    warnings: tuple[str, ...] = ()
    retry_after: int | None = None


def flag(query: Query, name: str) -> bool:
    """A boolean parameter, as Go reads one: present without a value is true."""
    value = query.get(name)
    if value is None or value in _FALSE:
        return False
    return value in _TRUE or bool(value)


def integer(query: Query, name: str) -> int | None:
    value = query.get(name)
    if not value:
        return None
    try:
        number = int(value)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None
    if not -(2**63) <= number < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": value out of range')
    return number
