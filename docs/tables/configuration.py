"""Lists the fields of a KubeSchedulerConfiguration, its default plugins, and the feature gates that are switched."""

from __future__ import annotations

from docs.tables.fields import fields_of
from docs.tables.markdown import code, table
from docs.tables.plugin_arguments import argument_table
from podium.config.defaults import DEFAULT_PLUGINS
from podium.config.points import Point
from podium.config.types import KubeSchedulerConfiguration
from podium.kube.versions import KNOWN, Gate, VersionRules

_POINT_SETS = "profiles[].plugins."


def page() -> str:
    fields = [field for field in fields_of(KubeSchedulerConfiguration) if not _of_a_point(field.name)]
    points = ", ".join(code(each) for each in (*Point, "multiPoint"))
    defaults = table(
        ["plugin", "weight"],
        ([code(each.name), str(each.weight or "")] for each in DEFAULT_PLUGINS.multi_point.enabled),
    )
    gates = table(
        ["gate", *KNOWN, "needs"],
        (
            [code(gate), *(_state(gate, rules) for rules in KNOWN.values()), ", ".join(map(code, _needs(gate)))]
            for gate in Gate
        ),
    )
    return (
        f"## Fields\n\n{argument_table(fields)}\n"
        f"Under `profiles[].plugins` stand {points}, each with `enabled` and `disabled`: lists of `name` and, where "
        f"nodes are scored, `weight`.\n\n"
        f"## Plugins of a profile that names none\n\n"
        f"In this order, at every extension point that they have.\n\n{defaults}\n"
        f"## Feature gates\n\nWhat Podium switches, with the default of each Kubernetes minor. A dash: that minor has "
        f"no such gate, or Podium has no switch for it there.\n\n{gates}"
    )


def _state(gate: Gate, rules: VersionRules) -> str:
    if gate not in rules.switched:
        return "–"
    return "on" if gate in rules.gates else "off"


def _needs(gate: Gate) -> tuple[str, ...]:
    return next((rules.table.needs[gate] for rules in reversed(KNOWN.values()) if gate in rules.table.needs), ())


def _of_a_point(name: str) -> bool:
    return name.startswith(_POINT_SETS)
