"""Finds the proxy that the environment names for a server, by Go's rules.

`HTTPS_PROXY` counts for https servers and `HTTP_PROXY` for http ones, in capitals or not. `NO_PROXY` is a list of
exceptions: `*`, an address, a network (10.0.0.0/8), a domain with its subdomains (example.com) or the subdomains only
(.example.com), each with or without a port. The own machine is never asked for through a proxy of the environment.
"""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network

from yarl import URL

SCHEMES = ("http", "https")


def proxy_from_environment(server: URL, environment: Mapping[str, str]) -> str | None:
    """The proxy for requests to `server`, as a URL."""
    name = f"{server.scheme}_proxy"
    proxy = environment.get(name.upper()) or environment.get(name)
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not proxy or _is_loopback(server.host or "") or _is_excepted(server, exceptions):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_excepted(server: URL, exceptions: str) -> bool:
    return any(_matches(server, entry.strip().lower()) for entry in exceptions.split(",") if entry.strip())


def _matches(server: URL, entry: str) -> bool:
    host = (server.host or "").lower()
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:  # one of the two is a name, or the entry has a port
        pass
    name, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and not name.endswith(":"):
        if int(port) != server.port:
            return False
        entry = name.strip("[]")
    if entry.startswith("*."):
        entry = entry[1:]
    if entry.startswith("."):
        return host.endswith(entry)
    return host == entry or host.endswith(f".{entry}")
