"""Refuses requests that a web page sent: by their Host, their Origin and their content type.

A page in a browser on this machine can send requests to a port on loopback, and by DNS rebinding (its own name, made to
mean 127.0.0.1) read the answers. Programs do not look like that:

- Host: a server on loopback answers to loopback's names and addresses, and to those it is given. A page whose name was
  rebound still sends its own name. A server on another address may be reached by any name: there the next rule holds.
- Origin and Sec-Fetch-Site are sent by browsers alone. They are refused, but for pages of the server itself where it
  has some (`own_pages`).
- Content type: without asking first, pages can send forms and plain text only. Writes must name one of the types that
  the server reads; none at all is refused too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import ip_address
from typing import Final

FORBIDDEN: Final = 403
UNSUPPORTED_MEDIA_TYPE: Final = 415

_LOCALHOST: Final = "localhost"
_SITES_OF_OTHERS: Final = ("cross-site", "same-site")


class BrowserGuard:
    """The rules for one listening address."""

    def __init__(self, bind_address: str, *, names: Iterable[str] = (), own_pages: bool = False) -> None:
        self._only_names = frozenset({_LOCALHOST, *map(str.lower, names)}) if is_loopback(bind_address) else None
        self._own_pages = own_pages

    def allows_host(self, host: str | None) -> bool:
        """Whether a Host header names this server; programs that send none are no browsers."""
        if not host or self._only_names is None:
            return True
        name = host_name(host)
        return name in self._only_names or is_loopback(name)

    def refusal(self, host: str | None, origin: str | None, fetch_site: str | None = None) -> str | None:
        """Why a request with these headers (Host, Origin, Sec-Fetch-Site) is refused with 403; None when it is not."""
        if not self.allows_host(host):
            return f"Host {_shown(host)} is not this server: use 127.0.0.1 or localhost"
        if origin is not None and not (self._own_pages and _is_own(origin, host)):
            return f"requests of web pages are refused (Origin {_shown(origin)})"
        if (fetch_site or "").lower() in _SITES_OF_OTHERS:
            return f"requests of web pages are refused (Sec-Fetch-Site {_shown(fetch_site)})"
        return None


def accepts_type(content_type: str | None, accepted: Collection[str]) -> bool:
    """Whether a write names one of the accepted media types; what follows a semicolon does not count.

    >>> accepts_type("application/json; charset=utf-8", ["application/json"]), accepts_type("", ["application/json"])
    (True, False)
    """
    return (content_type or "").partition(";")[0].strip().lower() in accepted


def is_loopback(name: str) -> bool:
    """Whether a name or address means this machine alone."""
    if name.lower() == _LOCALHOST:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """The name in a Host header, without its port.

    >>> host_name("[::1]:5401"), host_name("LocalHost:5401"), host_name("127.0.0.1")
    ('::1', 'localhost', '127.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


def _is_own(origin: str, host: str | None) -> bool:
    scheme, separator, authority = origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and authority.lower() == (host or "").lower()


def _shown(text: str | None) -> str:
    """A header for a message: short, and nothing that acts on a terminal."""
    return ascii((text or "")[:100])
