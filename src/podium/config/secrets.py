"""Hides secrets in configurations and in text that is shown, logged or sent.

`without_secrets` is for a configuration as a dictionary: passwords, tokens, keys and header values are replaced; where
a secret is in a file, the name of the file stays. `shown_at` is for a single value that a message quotes. `redacted` is
for any text: it hides the password of a URL, by the `***` of Go's HTTP client, and the value of an Authorization
header. It is the last line of defence of the log; code that knows what is secret does not put it into text in the first
place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

REDACTED = "REDACTED"

_SECRET = re.compile(r"password|passwd|token|secret|credential|api_?key|key_?data|private_?key|authorization", re.I)
_NO_SECRET = re.compile(r"(file|path|name|namespace|seconds|url|uri|audience|audiences)$", re.I)
_HEADERS = re.compile(r"headers?$", re.I)
_PASSWORD_IN_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#:@\"']*):[^\s/?#\"']*@")
_AUTHORIZATION = re.compile(r"(?i)\b((?:proxy-)?authorization[\"']?\s*[:=]\s*(?:b?[\"'])?)[^\r\n\"']+")
_SCHEME = re.compile(r"(?i)\b(bearer|basic) +(?!tokens?\b|auth)[A-Za-z0-9._~+/=-]{6,}")


def without_secrets(value: Any) -> Any:
    """A configuration, or a part of one, with its secrets replaced.

    >>> without_secrets({"address": "https://u:p@host", "token": "abc", "tokenFile": "/run/token"})
    {'address': 'https://u:***@host', 'token': 'REDACTED', 'tokenFile': '/run/token'}
    """
    match value:
        case dict():
            return {key: _field(str(key), inner) for key, inner in value.items()}
        case list() | tuple():
            return [without_secrets(inner) for inner in value]
        case str():
            return redacted(value)
    return value


def shown_at(steps: Iterable[str | int], value: Any) -> Any:
    """The value that stands at a path of a configuration, as it may be quoted in a message.

    >>> shown_at(("args", "source", "token"), "abc"), shown_at(("args", "headers", 0, "value"), "abc")
    ('REDACTED', 'REDACTED')
    """
    names = [step for step in steps if isinstance(step, str)]
    for number, name in enumerate(names):
        if _HEADERS.search(name) and names[number + 1 :] != ["name"]:
            return _hidden(value)
        if _SECRET.search(name) and not _NO_SECRET.search(name):
            return _hidden(value)
    return without_secrets(value)


def _field(name: str, value: Any) -> Any:
    if _HEADERS.search(name):
        return _header_values_hidden(value)
    if _SECRET.search(name) and not _NO_SECRET.search(name):
        return _hidden(value)
    return without_secrets(value)


def _header_values_hidden(value: Any) -> Any:
    """Headers as a list of names and values, or as a dictionary."""
    if isinstance(value, list | tuple):
        return [
            {key: inner if key == "name" else _hidden(inner) for key, inner in each.items()}
            if isinstance(each, dict)
            else _hidden(each)
            for each in value
        ]
    return {name: _hidden(inner) for name, inner in value.items()} if isinstance(value, dict) else _hidden(value)


def _hidden(value: Any) -> Any:
    """What stands for a secret; that there is none, or that it is a number, may be seen."""
    return REDACTED if isinstance(value, str | bytes | dict | list | tuple) and value else value


def redacted(text: str) -> str:
    """The text without passwords in URLs and without credentials of HTTP requests.

    >>> redacted('Post "http://user:pass@host/filter": EOF')
    'Post "http://user:***@host/filter": EOF'
    >>> redacted("Authorization: Bearer abcdef")
    'Authorization: REDACTED'
    """
    if "@" in text:
        text = _PASSWORD_IN_URL.sub(r"\1:***@", text)
    text = _AUTHORIZATION.sub(rf"\1{REDACTED}", text)
    return _SCHEME.sub(rf"\1 {REDACTED}", text)
