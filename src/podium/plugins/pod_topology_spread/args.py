"""Types the plugin's arguments: what spreading applies to pods that have no constraints of their own."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubecel.names import qualified_name_errors
from podium.config.field import FieldError, FieldPath
from podium.kube import TopologySpreadConstraint

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
SYSTEM = "System"
LIST = "List"

SYSTEM_CONSTRAINTS = tuple(
    TopologySpreadConstraint(topology_key=key, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=max_skew)
    for key, max_skew in (("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5))
)


class PodTopologySpreadArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM

    @property
    def system_defaulting(self) -> bool:
        return self.defaulting_type in (SYSTEM, "")

    @property
    def defaults(self) -> tuple[TopologySpreadConstraint, ...]:
        """The constraints of pods that have none of their own, still without a selector."""
        return SYSTEM_CONSTRAINTS if self.system_defaulting else self.default_constraints

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        defaulting, constraints = path.child("defaultingType"), path.child("defaultConstraints")
        if self.defaulting_type not in (SYSTEM, LIST, ""):
            yield FieldError.not_supported(defaulting, self.defaulting_type, (SYSTEM, LIST))
        elif self.system_defaulting and self.default_constraints:
            yield FieldError.invalid(defaulting, SYSTEM, "when .defaultConstraints are not empty")
        seen: set[tuple[str, str]] = set()
        for position, constraint in enumerate(self.default_constraints):
            here = constraints.index(position)
            yield from _wrong_with(constraint, here)
            key, action = constraint.topology_key, constraint.when_unsatisfiable
            if (key, action) in seen:
                yield FieldError.duplicate(here, f"{{{key}, {action}}}")
            seen.add((key, action))


def _wrong_with(constraint: TopologySpreadConstraint, path: FieldPath) -> Iterable[FieldError]:
    key, action = constraint.topology_key, constraint.when_unsatisfiable
    key_path, action_path = path.child("topologyKey"), path.child("whenUnsatisfiable")
    if constraint.max_skew <= 0:
        yield FieldError.invalid(path.child("maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    if not key:
        yield FieldError.required(key_path, "can not be empty")
    else:
        yield from (FieldError.invalid(key_path, key, complaint) for complaint in qualified_name_errors(key))
    if not action:
        yield FieldError.required(action_path, "can not be empty")
    elif action not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        yield FieldError.not_supported(action_path, action, (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY))
    if constraint.label_selector is not None:
        yield FieldError.forbidden(
            path.child("labelSelector"), "constraint must not define a selector, as they deduced for each pod"
        )
