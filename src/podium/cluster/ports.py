"""Which host ports are taken on which nodes.

Two ports conflict when protocol and number agree and either address is the wildcard 0.0.0.0 or the addresses are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.cluster.facts import HostPort

WILDCARD = "0.0.0.0"


def conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two ports cannot both be had on one node."""
    same_port = one.protocol == other.protocol and one.port == other.port
    return same_port and (one.ip == other.ip or WILDCARD in (one.ip, other.ip))


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
        for port in ports:
            for taken in self._conflicting(port):
                rows.update(taken)
        return rows

    def conflicts_on(self, row: int, ports: Iterable[HostPort]) -> bool:
        """Whether at least one of the ports is taken on a row."""
        return any(row in taken for port in ports for taken in self._conflicting(port))

    def _conflicting(self, wanted: HostPort) -> Iterator[dict[int, int]]:
        """The rows, with counts, of each address on which the port conflicts."""
        by_ip = self._rows.get((wanted.protocol, wanted.port), {})
        if wanted.ip == WILDCARD:
            yield from by_ip.values()
        else:
            for address in (wanted.ip, WILDCARD):
                if address in by_ip:
                    yield by_ip[address]
