"""Works out what the cluster state needs to know of a pod, once per signature.

Pods made from one template differ only in name, so everything derived from the spec (requests, host ports, compiled
affinity terms, disks) is worked out per signature and shared. A signature is what scheduling sees of a pod, encoded:
namespace, labels, annotations, owners and spec.

Where each pod of a template has a claim of its own, the specifications differ in the names of claims and nowhere else.
The signature leaves these names out: such pods share all that is derived, but for the claims.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from kubecel.names import joined
from podium.cluster.attached import Disk, inline_disks, may_attach
from podium.cluster.counts import PodClass
from podium.cluster.resources import CORE_RESOURCES
from podium.cluster.terms import parse_terms
from podium.kube import Container, PersistentVolumeClaim, Pod, PodSpec, Volume
from podium.kube.claims import is_ephemeral
from podium.kube.requests import nonzero_requested, requested

MOST_FACTS = 20_000

_pack = msgspec.msgpack.Encoder().encode


def _encode(facts: object) -> bytes:
    """Bytes that are equal for equal facts."""
    try:
        return _pack(facts)
    except OverflowError:  # an amount beyond 64 bits, which JSON can hold
        return repr(facts).encode()


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


class PodFacts:
    """What is derived from a pod's specification, once for all pods with one signature and the same claims.

    Plugins keep in `notes`, under a key of their own (themselves, where their arguments matter), what they derive from
    the signature: the notes belong to all pods that have it, whatever their claims.
    """

    __slots__ = (
        "claims",
        "counted",
        "disks",
        "may_attach",
        "none_of",
        "notes",
        "pod_class",
        "ports",
        "scalar",
        "signature",
        "terms",
        "terms_errors",
    )

    def __init__(self, pod: Pod, signature: bytes, *, resize_by_sums: bool = True) -> None:
        self.signature = signature
        """Equal for pods that differ at most in which claims they use."""
        self.claims: tuple[str, ...] = ()
        """The claims of its volumes ("namespace/name"), in their order."""
        requests = requested(pod, by_sums=resize_by_sums)
        core = [requests.pop(name, 0) for name in CORE_RESOURCES]
        self.counted = np.array((*core, *nonzero_requested(pod, by_sums=resize_by_sums), 1), dtype=np.int64)
        """What the pod adds to the first lines of the resource columns."""
        self.scalar = tuple((name, amount) for name, amount in requests.items() if amount)
        """What the pod adds of resources beyond cpu, memory and ephemeral storage."""
        self.none_of = tuple(name for name, amount in requests.items() if not amount)
        """Scarce resources of which the pod requests 0."""
        self.ports = host_ports(pod)
        """The host ports that it takes."""
        self.disks: tuple[Disk, ...] = inline_disks(pod)
        """The disks that it mounts without a claim."""
        self.may_attach = any(map(may_attach, pod.spec.volumes))
        """Whether a volume of it is of a kind that can end up attached to the node."""
        self.notes: dict[object, Any] = {}
        """What plugins derived from the signature."""
        self.pod_class: PodClass | None = None
        """That of the last such pod placed; it holds while it has pods."""
        self.terms, self.terms_errors = parse_terms(pod.spec.affinity, pod.namespace)

    def with_claims(self, claims: tuple[str, ...]) -> PodFacts:
        """The facts of a pod with this signature and these claims ("namespace/name"), in the order of its volumes."""
        facts = PodFacts.__new__(PodFacts)
        for name in PodFacts.__slots__:
            setattr(facts, name, getattr(self, name))
        facts.claims = claims
        return facts

    @property
    def terms_error(self) -> str | None:
        """What is wrong with the affinity terms, if anything is."""
        return joined(self.terms_errors.values()) if self.terms_errors else None


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The ports on the node that app containers and sidecars take."""
    spec = pod.spec
    holders: list[Container] = [*spec.containers, *(c for c in spec.init_containers if c.sidecar)]
    return tuple(
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in holders
        for port in container.ports
        if port.host_port > 0
    )


def claims_of(pod: Pod) -> tuple[str, ...]:
    """The claims that the pod's volumes name ("namespace/name"), in their order."""
    sources = [volume.persistent_volume_claim for volume in pod.spec.volumes]
    return tuple([f"{pod.metadata.namespace}/{claim.claim_name}" for claim in sources if claim is not None])


def full_signature(pod: Pod) -> tuple[bytes, bytes]:
    """Equal for pods that scheduling cannot tell apart: the signature with the names of claims, and resizes."""
    return _specification(pod, pod.spec), _resize_status(pod)


def _signature(pod: Pod, claims: Sequence[str]) -> bytes:
    """Equal for pods that differ at most in which claims they use."""
    spec = pod.spec
    if claims:
        spec = replace(spec, volumes=tuple(map(_without_claim_name, spec.volumes)))
    return _specification(pod, spec)


def _specification(pod: Pod, spec: PodSpec) -> bytes:
    if spec.node_name:
        spec = replace(spec, node_name="")
    meta = pod.metadata
    return _encode((meta.namespace, meta.labels, meta.annotations, meta.owner_references, spec))


def _without_claim_name(volume: Volume) -> Volume:
    claim = volume.persistent_volume_claim
    return volume if claim is None else replace(volume, persistent_volume_claim=replace(claim, claim_name=""))


def _resize_status(pod: Pod) -> bytes:
    """What requests depend on beyond the spec: resources already granted, and resizes that cannot be met."""
    status = pod.status
    containers = (*status.init_container_statuses, *status.container_statuses)
    granted = containers and [
        (c.name, c.resources, c.allocated_resources)
        for c in containers
        if c.resources is not None or c.allocated_resources
    ]
    if not granted and status.resources is None and not status.allocated_resources:
        return b""
    infeasible = [(c.type, c.status, c.reason) for c in status.conditions if c.type == "PodResizePending"]
    return _encode((granted, status.resources, status.allocated_resources, infeasible))


class FactsCache:
    """Facts by signature, and by signature and claims; the oldest dropped. A decision asks about one pod many times."""

    def __init__(self, *, resize_by_sums: bool = True) -> None:
        self._resize_by_sums = resize_by_sums
        self._by_signature: dict[bytes | tuple[bytes, bytes], PodFacts] = {}
        self._with_claims: dict[tuple[PodFacts, tuple[str, ...]], PodFacts] = {}
        self._latest: tuple[Pod | None, PodFacts | None] = None, None

    def forget_notes(self) -> None:
        """Let go of what plugins noted: it leads back to them, and thereby to the whole cluster."""
        for facts in (*self._by_signature.values(), *self._with_claims.values()):
            facts.notes.clear()

    def of(self, pod: Pod) -> PodFacts:
        latest, facts = self._latest
        if pod is not latest or facts is None:
            facts = self._find(pod)
            self._latest = pod, facts
        return facts

    def _find(self, pod: Pod) -> PodFacts:
        claims = claims_of(pod) if pod.spec.volumes else ()
        signature, resized = _signature(pod, claims), _resize_status(pod)
        key = (signature, resized) if resized else signature
        facts = self._by_signature.get(key)
        if facts is None:
            facts = self._by_signature[key] = PodFacts(pod, signature, resize_by_sums=self._resize_by_sums)
            _drop_oldest(self._by_signature)
        if not claims:
            return facts
        own = self._with_claims.get((facts, claims))
        if own is None:
            own = self._with_claims[facts, claims] = facts.with_claims(claims)
            _drop_oldest(self._with_claims)
        return own


def _drop_oldest(facts: dict[Any, PodFacts]) -> None:
    if len(facts) > MOST_FACTS:
        del facts[next(iter(facts))]


class ClaimConcerns:
    """The pods that a change of a claim may matter to, for interests in claims: those whose volumes use it.

    The claim of a generic ephemeral volume is named after the pod, and waiting pods that differ in name only are filed
    together; so a pod with such a volume is said to wait for any claim.
    """

    def of_pod(self, pod: Pod) -> Collection[str] | None:
        return None if any(map(is_ephemeral, pod.spec.volumes)) else claims_of(pod)

    def of_event(self, before: PersistentVolumeClaim | None, after: PersistentVolumeClaim | None) -> Collection[str]:
        return {claim.key for claim in (before, after) if claim is not None}


CLAIM_CONCERNS = ClaimConcerns()
