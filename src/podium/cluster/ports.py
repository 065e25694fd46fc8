"""Which host ports are taken on which nodes.

Two ports conflict when protocol and number agree and either address is the wildcard 0.0.0.0 or the addresses are equal.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster.facts import HostPort

WILDCARD = "0.0.0.0"


class UsedPorts:
    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], dict[str, dict[int, int]]] = {}

    def add(self, ports: Iterable[HostPort], row: int, sign: int) -> None:
        for ip, protocol, port in ports:
            by_ip = self._rows.setdefault((protocol, port), {})
            counts = by_ip.setdefault(ip, {})
            counts[row] = counts.get(row, 0) + sign
            if not counts[row]:
                del counts[row]
            if not counts:
                del by_ip[ip]
            if not by_ip:
                del self._rows[protocol, port]

    def conflicting_rows(self, ports: Iterable[HostPort]) -> set[int]:
        """The rows on which at least one of the ports is taken."""
        rows: set[int] = set()
        for ip, protocol, port in ports:
            by_ip = self._rows.get((protocol, port), {})
            taken = by_ip if ip == WILDCARD else [address for address in (ip, WILDCARD) if address in by_ip]
            for address in taken:
                rows.update(by_ip[address])
        return rows
