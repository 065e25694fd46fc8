"""Finds the pods that a change of a claim may matter to: those whose volumes use it.

The claim of a generic ephemeral volume is named after the pod, and waiting pods that differ in name only are filed
together; so a pod with such a volume is said to wait for any claim.
"""

from __future__ import annotations

from collections.abc import Collection

from podium.cluster.facts import claims_of
from podium.kube import PersistentVolumeClaim, Pod
from podium.kube.claims import is_ephemeral


class ClaimConcerns:
    """Concerns by the key of the claim, for interests in claims."""

    def of_pod(self, pod: Pod) -> Collection[str] | None:
        return None if any(map(is_ephemeral, pod.spec.volumes)) else claims_of(pod)

    def of_event(self, before: PersistentVolumeClaim | None, after: PersistentVolumeClaim | None) -> Collection[str]:
        return {claim.key for claim in (before, after) if claim is not None}


CLAIM_CONCERNS = ClaimConcerns()
