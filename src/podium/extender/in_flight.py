"""Limits how many bytes of requests are in flight and how many connections are open, over all ports of a process.

A request is in flight from when its head has come until its answer has been sent off: an answer may be as large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class InFlightLimits:
    """What is in flight now, and the most that may be."""

    def __init__(self, most_bytes: int, most_connections: int = 1000) -> None:
        self._most_bytes = most_bytes
        self.most_connections = most_connections
        self.bytes = 0
        self.usual_connections = 0
        self.others: list[Callable[[], int]] = []
        """Each returns how many connections have been handed to a general server."""

    def has_room_for(self, length: int) -> bool:
        return self.bytes == 0 or self.bytes + length <= self._most_bytes

    @property
    def crowded(self) -> bool:
        return self.usual_connections + sum(count() for count in self.others) > self.most_connections

    @contextmanager
    def reserved(self, length: int) -> Iterator[Reservation]:
        """Room for one request, given back at the end."""
        reservation = Reservation(self, length)
        try:
            yield reservation
        finally:
            self.bytes -= reservation.bytes


class Reservation:
    """The room of one request, which grows where its length was not known at first."""

    def __init__(self, limits: InFlightLimits, length: int) -> None:
        self._limits = limits
        self.bytes = length
        limits.bytes += length

    def covers(self, length: int) -> bool:
        """Whether there is room for so many bytes in all; it is taken then."""
        more = length - self.bytes
        if more > 0:
            if self._limits.bytes > self.bytes and not self._limits.has_room_for(more):
                return False
            self._limits.bytes += more
            self.bytes = length
        return True
