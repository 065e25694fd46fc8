"""Orders the domains of a node label (zones, racks) by how well a gang fits: the fullest that has room goes first.

Room is counted as if every member needed no more than the least of them: a domain that has too little even so cannot
take the gang and is left out. Taints, affinity and the like are for the filters to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, PodFacts
from podium.cluster.resources import CORE_RESOURCES


def domains(cluster: Cluster, key: str, members: Sequence[PodFacts], missing: int, *, spill: bool) -> list[str]:
    """The values of a label, the best first; where none has room for all, the roomiest first.

    Without `spill` those that cannot take all are left out; where none can, the roomiest stays, to say why.
    """
    column = cluster.labels.column(key)
    room = column.sums(np.where(cluster.present, _room(cluster, members), 0))
    nodes = column.sums(cluster.present.astype(np.int64))
    found = [(int(room[number]), value) for number, value in enumerate(column.values) if number and nodes[number]]
    fitting = sorted(each for each in found if each[0] >= missing)
    others = sorted((each for each in found if each[0] < missing), key=lambda each: (-each[0], each[1]))
    if spill:
        return [value for _room, value in (*fitting, *others)]
    return [value for _room, value in (fitting or others[:1])]


def _room(cluster: Cluster, members: Sequence[PodFacts]) -> NDArray[np.int64]:
    """int64[rows]: how many pods that ask for the least that any member asks for fit on each node."""
    resources = cluster.resources
    room: NDArray[np.int64] = resources.allowed_pods - resources.pod_count
    least = np.min([facts.counted[: len(CORE_RESOURCES)] for facts in members], axis=0).tolist()
    needed = dict(zip(CORE_RESOURCES, least, strict=True))
    for name in {name for facts in members for name, _amount in facts.scarce}:
        needed[name] = min(dict(facts.scarce).get(name, 0) for facts in members)
    for name, amount in needed.items():
        if amount:
            room = np.minimum(room, (resources.allocatable_of(name) - resources.requested_of(name)) // amount)
    return np.maximum(room, 0)
