"""Implements URLs: `url("https://example.com:80/path?k=v").getPort()`. Only absolute ones are URLs here."""

import re
from typing import Final
from urllib.parse import quote, unquote_plus, urlsplit

from kubecel.strconv import quoted
from kubecel.values import CelError, Implementation, MapValue, UrlValue

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.S)
_PORT: Final = re.compile(r":[0-9]*")
_SAFE: Final = "$&+,/:;=@!'()*[]"


def problem_of(text: str) -> str:
    """Go's words for why a text is no absolute URL; empty where it is one."""
    problem = _problem(text)
    return f"parse {quoted(text)}: {problem}" if problem else ""


def _problem(text: str) -> str:
    if _CONTROL.search(text):
        return "net/url: invalid control character in URL"
    if not text:
        return "empty url"
    scheme = _SCHEME.match(text)
    if scheme is None and text.startswith(":"):
        return "missing protocol scheme"
    rest = text[scheme.end() :] if scheme else text
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return "" if scheme else "invalid URI for request"
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        host = authority.rpartition("@")[2]
        port = host.rpartition("]")[2] if host.startswith("[") else host[host.find(":") :] if ":" in host else ""
        if port and not _PORT.fullmatch(port):
            return f"invalid port {quoted(port)} after host"
        if " " in host:
            return 'invalid character " " in host name'
        rest = slash + path
    escape = _BAD_ESCAPE.search(rest)
    return f"invalid URL escape {quoted(escape[0])}" if escape else ""


def _read(text: str) -> UrlValue:
    problem = problem_of(text)
    if problem:
        raise CelError(f"URL parse error during conversion from string: {problem}")
    scheme = _SCHEME.match(text)
    name = scheme[1].lower() if scheme else ""
    rest = text[scheme.end() :] if scheme else text
    if scheme and not rest.startswith("/"):
        return UrlValue(text, name, "", "", rest.partition("#")[0].partition("?")[2])
    parts = urlsplit(f"x:{rest}")
    host = parts.netloc.rpartition("@")[2]
    path = parts.path if _is_encoded(parts.path) else quote(parts.path, safe=_SAFE)
    return UrlValue(text, name, host, path, parts.query)


def _is_encoded(path: str) -> bool:
    return all(character.isalnum() or character in "-_.~%" + _SAFE for character in path) and path.isascii()


def _hostname(url: UrlValue) -> str:
    if url.host.startswith("["):
        return url.host[1:].partition("]")[0]
    return url.host.partition(":")[0]


def _port(url: UrlValue) -> str:
    tail = url.host.rpartition("]")[2] if url.host.startswith("[") else url.host
    return tail.partition(":")[2]


def _query(url: UrlValue) -> MapValue:
    found: dict[str, list[object]] = {}
    for pair in url.query.split("&"):
        key, _, value = pair.partition("=")
        if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
            found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return MapValue(found)


FUNCTIONS: Final[dict[str, Implementation]] = {
    "string_to_url": _read,
    "is_url_string": lambda text: not problem_of(text),
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": _hostname,
    "url_get_port": _port,
    "url_get_escaped_path": lambda url: url.path,
    "url_get_query": _query,
}
