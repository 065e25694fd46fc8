"""Lists the fields of a KubeSchedulerConfiguration, its default plugins, and the feature gates that are switched."""

from __future__ import annotations

from docs.tables.fields import fields_of
from docs.tables.markdown import code, table
from docs.tables.plugin_arguments import argument_table
from podium.config.defaults import DEFAULT_PLUGINS
from podium.config.feature_gates import NEEDS, Gate
from podium.config.points import Point
from podium.config.types import KubeSchedulerConfiguration

_POINT_SETS = "profiles[].plugins."


def page() -> str:
    fields = [field for field in fields_of(KubeSchedulerConfiguration) if not _of_a_point(field.name)]
    points = ", ".join(code(each) for each in (*Point, "multiPoint"))
    defaults = table(
        ["plugin", "weight"],
        ([code(each.name), str(each.weight or "")] for each in DEFAULT_PLUGINS.multi_point.enabled),
    )
    gates = table(["gate", "needs"], ([code(gate), ", ".join(map(code, NEEDS.get(gate, ())))] for gate in Gate))
    return (
        f"## Fields\n\n{argument_table(fields)}\n"
        f"Under `profiles[].plugins` stand {points}, each with `enabled` and `disabled`: lists of `name` and, where "
        f"nodes are scored, `weight`.\n\n"
        f"## Plugins of a profile that names none\n\n"
        f"In this order, at every extension point that they have.\n\n{defaults}\n"
        f"## Feature gates\n\nOff unless `--feature-gates` switches them on.\n\n{gates}"
    )


def _of_a_point(name: str) -> bool:
    return name.startswith(_POINT_SETS)
