"""Numbers pods that a question makes, under names that no pod of the cluster has."""

from __future__ import annotations

from collections.abc import Iterable

from podium.kube import Pod
from podium.whatif.sandbox import Sandbox


class FreePodNames:
    """The names that are taken, and the next number of each base name."""

    def __init__(self, sandbox: Sandbox, others: Iterable[Pod] = ()) -> None:
        placed, waiting = sandbox.cluster.pods, sandbox.cluster.objects.pending_pods
        everyone = [*(each.pod for each in placed.values()), *waiting, *others]
        self._taken = {*placed, *(pod.key for pod in everyone)}
        """Keys and uids: a pod without a uid is known by its key."""
        self._numbers: dict[str, int] = {}

    def take(self, namespace: str, base: str) -> str:
        """`web-0`, or the next number that is free."""
        key = f"{namespace}/{base}"
        number = self._numbers.get(key, 0)
        while f"{key}-{number}" in self._taken:
            number += 1
        self._numbers[key] = number + 1
        return f"{base}-{number}"

    def is_taken(self, pod: Pod) -> bool:
        return pod.key in self._taken
