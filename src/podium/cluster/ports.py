"""Counts the host ports that are taken on each node.

Two ports conflict when protocol and number agree and either address is the wildcard 0.0.0.0 or the addresses are equal.

Pods placed past the scheduler may share a port; it is free when the last of them goes. A dry run sees it otherwise, as
kube-scheduler does: there the first to be taken off frees the port, and the first to be put back takes it (`hide`).
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
        self._hidden: set[tuple[HostPort, int]] = set()

    def hide(self, ports: Iterable[HostPort], row: int) -> None:
        """Count ports on a row as free, even where other pods hold them, until they are shown again."""
        self._hidden.update((port, row) for port in ports)

    def show(self, ports: Iterable[HostPort], row: int) -> list[HostPort]:
        """Count ports on a row as taken again where a pod holds them; gives those that were hidden."""
        shown = [port for port in ports if (port, row) in self._hidden]
        self._hidden.difference_update((port, row) for port in shown)
        return shown

    def show_all(self) -> None:
        self._hidden.clear()

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
            for taken, holders in self._conflicting(port):
                rows.update(row for row in holders if (taken, row) not in self._hidden)
        return rows

    def conflicts_on(self, row: int, ports: Iterable[HostPort]) -> bool:
        """Whether at least one of the ports is taken on a row."""
        return any(
            row in holders and (taken, row) not in self._hidden
            for port in ports
            for taken, holders in self._conflicting(port)
        )

    def _conflicting(self, wanted: HostPort) -> Iterator[tuple[HostPort, dict[int, int]]]:
        """Each port in use somewhere that conflicts with the wanted one, and the rows that hold it, with counts."""
        by_ip = self._rows.get((wanted.protocol, wanted.port), {})
        addresses = by_ip if wanted.ip == WILDCARD else (wanted.ip, WILDCARD)
        for address in addresses:
            if address in by_ip:
                yield HostPort(address, wanted.protocol, wanted.port), by_ip[address]
