"""Computes the fingerprint of the pods on a node, by which a report says which pods it covers.

h(pod) = XXH64(name, seed = XXH64(namespace))
"pfp0v001" + XXH64 over the sorted h of all pods, 8 bytes each, little-endian, as 16 hexadecimal digits
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from podium.kube import Pod
from podium_plugins.node_resource_topology_match.xxh64 import xxh64


def fingerprint(pods: Iterable[Pod]) -> str:
    """The fingerprint of a set of pods, whatever their order.

    >>> fingerprint([])
    'pfp0v001ef46db3751d8e999'
    """
    hashes = sorted(_pod_hash(pod.metadata.namespace, pod.metadata.name) for pod in pods)
    return f"pfp0v001{xxh64(b''.join(each.to_bytes(8, 'little') for each in hashes)):016x}"


@lru_cache(maxsize=1 << 17)
def _pod_hash(namespace: str, name: str) -> int:
    return xxh64(name.encode(), xxh64(namespace.encode()))
