"""Reads, checks and writes policy files: the weights of a learned score, with where they come from.

A file is JSON (`apiVersion: podium/policy/v1`, kind `linear` or `network`). Weights stand by group of pods and term
(see `podium_plugins.gpu.terms`); a term that is missing weighs 0. A network (see `network`) is added to them.
points = ⌊offset + scale·score + ½⌋, within 0–100.

Refused: a wrong checksum, other terms than this version computes, numbers that are not finite, weights of terms that
cannot act on a group, files beyond 16 MB, missing provenance.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.kube.documents import FILE, DocumentError, read_json
from podium_lab.learned.network import NetworkWeights, PlacementNetwork
from podium_plugins.gpu.terms import GROUPS, MEANINGLESS, STATE, TERMS
from podium_plugins.gpu.typical_pods import TypicalPod

API_VERSION = "podium/policy/v1"
LARGEST = 16_000_000
SHIPPED = {
    "fill": "clusters that are filled and stay full",
    "general": "clusters that are filled by pods unlike those of the published lists",
    "churn": "clusters where pods come and go",
    "both": "one policy for both of these",
    "readable": "reading, and checking by hand",
    "network": "the same as fill, which it corrects (experimental)",
}
"""The policies that ship, and what each is for."""
PROVENANCE = ("codeVersion", "command", "lists", "seeds", "budget")
"""What a policy must say about where it comes from."""
SCHEMA = hashlib.sha256("\n".join((*TERMS, *GROUPS)).encode()).hexdigest()
"""The terms and groups that this version computes, in short."""


class PolicyError(Exception):
    """A policy file that cannot be used; `reason` is one word for counters."""

    def __init__(self, message: str, reason: str = "no_model") -> None:
        super().__init__(message)
        self.reason = reason


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a score becomes points."""

    offset: float
    scale: float


class TrainedOn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the policy has seen: the range of each state term, and the pods."""

    ranges: dict[str, tuple[float, float]] = {}
    classes: tuple[TypicalPod, ...] = ()
    models: tuple[str, ...] = ()


class PolicyFile(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A policy as it is written."""

    api_version: str
    kind: Literal["linear", "network"]
    name: str
    version: str
    terms_hash: str
    weights: dict[str, dict[str, float]]
    calibration: Calibration
    network: NetworkWeights | msgspec.UnsetType = msgspec.UNSET
    trained_on: TrainedOn = TrainedOn()
    provenance: dict[str, Any] = {}
    evaluation: list[dict[str, Any]] = []
    sha256: str = ""

    def matrix(self) -> NDArray[np.float64]:
        """float64[groups, terms]"""
        return np.array([[self.weights.get(group, {}).get(term, 0.0) for term in TERMS] for group in GROUPS])

    def correction(self) -> PlacementNetwork | None:
        """The network of a policy that has one."""
        return None if self.network is msgspec.UNSET else PlacementNetwork(self.network)

    @property
    def seeds(self) -> set[int]:
        """The seeds that training or choosing has seen."""
        return set(self.provenance.get("seeds", ()))


def encoded(policy: PolicyFile) -> bytes:
    """The text of a policy with its checksum: the same bytes for the same policy."""
    sealed = msgspec.structs.replace(policy, sha256=checksum(policy))
    return msgspec.json.format(msgspec.json.encode(sealed), indent=1) + b"\n"


def checksum(policy: PolicyFile) -> str:
    """The SHA-256 of all but the checksum."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(policy, sha256=""))).hexdigest()


def path_of(policy: str) -> Path:
    """Where a policy is: one that ships, by name, or a file."""
    if policy in SHIPPED:
        return Path(str(resources.files("podium_lab.learned") / "policies" / f"{policy}.json"))
    return Path(policy)


def read_policy(path: Path) -> PolicyFile:
    """A policy that may be used; raises PolicyError."""
    try:
        if path.stat().st_size > LARGEST:
            raise PolicyError(f"{path}: is larger than {LARGEST:,} bytes; a policy is much smaller", "schema")
        text = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}") from None
    return decoded(text, str(path))


def decoded(text: bytes, source: str) -> PolicyFile:
    """A policy from its text; raises PolicyError with all that is wrong."""
    try:
        policy = msgspec.convert(read_json(text, bounds=FILE), PolicyFile)
    except (DocumentError, msgspec.ValidationError) as error:
        reason = "nan" if b"NaN" in text or b"Infinity" in text else "schema"
        raise PolicyError(f"{source}: is no policy: {error}", reason) from None
    wrong = list(problems(policy))
    if wrong:
        reason = "nan" if any("finite" in each for each in wrong) else "schema"
        raise PolicyError("\n".join(f"{source}: {each}" for each in wrong), reason)
    return policy


def problems(policy: PolicyFile) -> Iterator[str]:
    """What keeps a policy from being used, sentence by sentence."""
    if policy.api_version != API_VERSION:
        yield f'apiVersion is "{policy.api_version}"; this version reads {API_VERSION}'
    if policy.terms_hash != SCHEMA:
        yield f"termsHash is not that of the terms that this version computes ({SCHEMA}); train it again"
    if policy.sha256 != checksum(policy):
        yield "sha256 is not that of the content; the file was changed after it was written"
    for group, weights in policy.weights.items():
        if group not in GROUPS:
            yield f'weights: there is no group "{group}"; write {", ".join(GROUPS)}'
            continue
        for term, weight in weights.items():
            if term not in TERMS:
                yield f'weights.{group}: there is no term "{term}"'
            elif not math.isfinite(weight):
                yield f"weights.{group}.{term} is not a finite number"
            elif weight and term in MEANINGLESS[group]:
                yield f"weights.{group}.{term} cannot act on such pods; it must be 0"
    if missing := [group for group in GROUPS if group not in policy.weights]:
        yield f"weights: {', '.join(missing)} missing"
    offset, scale = policy.calibration.offset, policy.calibration.scale
    if not (math.isfinite(offset) and math.isfinite(scale) and scale > 0):
        yield "calibration: offset and scale must be finite numbers, scale above 0"
    if (policy.kind == "network") != (policy.network is not msgspec.UNSET):
        yield "network: a policy of kind network has one, a linear one has none"
    if policy.network is not msgspec.UNSET:
        yield from policy.network.problems()
    for term, (low, high) in policy.trained_on.ranges.items():
        if term not in STATE or not low <= high:
            yield f"trainedOn.ranges.{term} is no range of a state term"
    for name in PROVENANCE:
        if not policy.provenance.get(name):
            yield f"provenance.{name} is missing"
    seeds = policy.provenance.get("seeds", [])
    if not isinstance(seeds, list) or not all(type(seed) is int for seed in seeds):
        yield "provenance.seeds is no list of whole numbers"
