"""What goes back to kube-scheduler, as bytes: capitalised keys, the shortest form that it reads.

Names and nodes that come back unchanged are the very bytes that came. The text of a host with a score is made once: it
is asked for again with every pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from numpy.typing import NDArray

from podium.framework import Status
from podium.framework.status import Code

MOST_TEXTS = 1 << 20

Body = bytes | list[bytes | memoryview]
"""One piece, or several to be sent one after the other."""

encode = msgspec.json.Encoder().encode
_NO_FAILURES = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


class HostTexts(dict[tuple[str, int], bytes]):
    """(node, points) → its entry in the answer to prioritize."""

    def __missing__(self, key: tuple[str, int]) -> bytes:
        name, points = key
        if len(self) >= MOST_TEXTS:
            self.clear()
        text = self[key] = b'{"Host":%b,"Score":%d}' % (encode(name), points)
        return text

    def listed(self, names: Sequence[str], points: NDArray[Any]) -> bytes:
        """The answer to prioritize, in the order of the names."""
        return b"[" + b",".join(map(self.__getitem__, zip(names, points.tolist(), strict=True))) + b"]"


def all_names(names: bytes) -> bytes:
    """Filter's answer where all pass."""
    return b'{"Nodes":null,"NodeNames":' + names + _NO_FAILURES


def some_names(names: Sequence[str], refused: Mapping[str, Status]) -> bytes:
    return b'{"Nodes":null,"NodeNames":' + encode(names) + _failures(refused)


def all_nodes(items: memoryview) -> Body:
    return [b'{"Nodes":{"metadata":{},"items":', items, b'},"NodeNames":null' + _NO_FAILURES]


def some_nodes(items: Iterable[msgspec.Raw], refused: Mapping[str, Status]) -> Body:
    kept = b",".join(items)
    return [b'{"Nodes":{"metadata":{},"items":[', kept, b']},"NodeNames":null' + _failures(refused)]


def _failures(refused: Mapping[str, Status]) -> bytes:
    """Who was refused: for good where evicting pods would not help."""
    for_good = {name: status.message for name, status in refused.items() if status.code == Code.UNRESOLVABLE}
    for_now = {name: status.message for name, status in refused.items() if name not in for_good}
    return b',"FailedNodes":%b,"FailedAndUnresolvableNodes":%b,"Error":""}' % (encode(for_now), encode(for_good))


def filter_error(message: str) -> bytes:
    fields = b'{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":%b}'
    return fields % encode(message)


def error(message: str) -> bytes:
    return encode({"Error": message})


def meta_victims(kept: Mapping[str, tuple[Sequence[str], int]]) -> bytes:
    """The answer to preempt: for each node the uids of its victims, and how many budgets they violate."""
    by_node = {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
        for name, (uids, violations) in kept.items()
    }
    return encode({"NodeNameToMetaVictims": by_node})
