"""Finds which system calls a pod may use: the union of the SeccompProfiles that it refers to.

A pod refers to profiles by its own seccompProfile of type Localhost, by those of its app containers, and by the first
annotation (by key) that is named after seccomp. A reference is the path of a file: its last two components are the
namespace and the name of the SeccompProfile, the extension left off. A pod that refers to none that can be read has the
default profile. Sets are numbers, a bit for each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from podium import Handle, custom_reference
from podium.kube import Pod, SecurityContext

API_VERSION: Final = "security-profiles-operator.x-k8s.io/v1beta1"
INVALID: Final = "InvalidSeccompProfile"
"""The reason of events on SeccompProfiles."""
RESOURCE: Final = "seccompprofiles.security-profiles-operator.x-k8s.io"
ANNOTATION: Final = "seccomp.security.alpha.kubernetes.io"
"""What the key of an annotation contains that refers to a profile."""
LOCALHOST: Final = "Localhost"
LETS_THROUGH: Final = ("SCMP_ACT_ALLOW", "SCMP_ACT_LOG")


class _Rule(msgspec.Struct, frozen=True):
    action: str = ""
    names: tuple[str, ...] = ()


class _Spec(msgspec.Struct, frozen=True):
    syscalls: tuple[_Rule, ...] = ()


class _SeccompProfile(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


class SyscallProfiles:
    """The sets of all SeccompProfiles, by "namespace/name"."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._bits: dict[str, int] = {}
        self._sets: dict[str, int] = {}
        self._missing: set[str] = set()
        self.version = 0
        """Moves whenever the set of a profile does."""
        handle.cluster.objects.custom_store(RESOURCE).follow(self._changed)

    def of_pod(self, pod: Pod, default: str) -> int:
        """The calls that the pod may use; 0 where not even the default profile is there."""
        calls = 0
        for name in references(pod):
            found = self._sets.get(name)
            if found is not None:
                calls |= found
            elif name not in self._missing:
                self._missing.add(name)
                self._handle.report(
                    f"SeccompProfile {name}: not found, or not readable; pods that refer to it do without it"
                )
        return calls or self._sets.get(default, 0)

    def _changed(self, key: str, _before: Any, after: Any) -> None:
        before = self._sets.pop(key, None)
        self._missing.discard(key)
        regarding, problems = custom_reference(API_VERSION, "SeccompProfile", key, after), self._handle.problems
        try:
            if after is not None:
                self._sets[key] = self._read(msgspec.convert(after, _SeccompProfile))
            problems.clear(regarding)
        except msgspec.ValidationError as error:
            self._missing.add(key)
            problems.set(regarding, INVALID, f"{error}; it counts as not there until that is put right")
        if self._sets.get(key) != before:
            self.version += 1

    def _read(self, profile: _SeccompProfile) -> int:
        calls = 0
        for rule in profile.spec.syscalls:
            if rule.action in LETS_THROUGH:
                for name in rule.names:
                    calls |= 1 << self._bits.setdefault(name, len(self._bits))
        return calls


def references(pod: Pod) -> Iterator[str]:
    """The profiles that a pod refers to, as "namespace/name"."""
    spec = pod.spec
    for context in (spec.security_context, *(container.security_context for container in spec.containers)):
        path = _path(context)
        if path is not None:
            yield from profile_name(path)
    annotated = min((key for key in pod.annotations if ANNOTATION in key), default=None)
    if annotated is not None:
        yield from profile_name(pod.annotations[annotated])


def profile_name(path: str) -> Iterator[str]:
    """The profile that a path stands for, if it stands for one.

    >>> [*profile_name("localhost/operator/default/nginx.v2.json"), *profile_name("nginx.json")]
    ['default/nginx.v2']
    >>> [*profile_name("default/.json"), *profile_name("default/nginx")]
    ['default/nginx']
    """
    *_, namespace, file = ("", *path.split("/")) if "/" in path else ("", "", "")
    name = file[: file.rindex(".")] if "." in file else file
    if namespace and name:
        yield f"{namespace}/{name}"


def _path(context: SecurityContext | None) -> str | None:
    profile = None if context is None else context.seccomp_profile
    return profile.localhost_profile if profile is not None and profile.type == LOCALHOST else None
