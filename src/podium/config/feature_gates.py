"""Reads `--feature-gates`: which of kube-scheduler's gates are on, refusing what it refuses, in its words.

A KubeSchedulerConfiguration has no field for gates, so the command line is the only place. Podium switches a few of
them; every other gate that kube-scheduler knows stays at its default, and a warning says so where another value is
asked for.

Which gates there are, which are locked and what depends on what is a fact of each Kubernetes minor: its table is in
`podium.kube.versions`. So a gate that kube-scheduler knows is not taken for a mistake, and one it refuses is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from podium.config.problems import ConfigError, ConfigProblem, did_you_mean
from podium.kube.versions import NEWEST, NO_GATES, Gate, Gates, VersionRules

__all__ = ["NO_GATES", "Gate", "Gates", "ReadGates", "read_gates"]

FLAG: Final = "--feature-gates"


_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")


class ReadGates(NamedTuple):
    """The gates that are on, and what the reader should know about those that Podium cannot switch."""

    gates: Gates
    warnings: list[str]


def read_gates(flags: Sequence[str], rules: VersionRules = NEWEST) -> ReadGates:
    """The gates that are on with all values given with `--feature-gates`; raises ConfigError in kube-scheduler's words.

    >>> from podium.kube.versions import KNOWN
    >>> sorted(read_gates(["GenericWorkload=true,GangScheduling=true"], KNOWN["1.36"]).gates)
    [<Gate.GANG_SCHEDULING: 'GangScheduling'>, <Gate.GENERIC_WORKLOAD: 'GenericWorkload'>]
    """
    chosen: dict[str, bool] = {}
    for pair in _pairs(flags):
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise _refused(f"missing bool value for {name}")
        if text not in (*_TRUE, *_FALSE):
            raise _refused(f'invalid value of {name}={text}, err: strconv.ParseBool: parsing "{text}": invalid syntax')
        chosen[name] = text in _TRUE
    values = _values(chosen, rules)
    _check_needs(values, rules.table.needs)
    gates = frozenset(gate for gate in rules.switched if values[gate])
    if Gate.GENERIC_WORKLOAD in gates:
        gates |= rules.part_of_generic_workload
    return ReadGates(gates, _warnings(chosen, values, rules))


def _pairs(flags: Sequence[str]) -> list[str]:
    """The "name=value" pairs, all with or all without the component they are for, which is always kube."""
    by_component: dict[str, list[str]] = {}
    for pair in ",".join(flags).split(","):
        component, colon, rest = pair.partition(":")
        if pair:
            by_component.setdefault(component.strip() if colon else "", []).append((rest if colon else pair).strip())
    if "" in by_component and "kube" in by_component:
        raise _refused("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
    for component in by_component:
        if component not in ("", "kube"):
            raise _refused(f"component not registered: {component}")
    return [pair for pairs in by_component.values() for pair in pairs]


def _values(chosen: Mapping[str, bool], rules: VersionRules) -> dict[str, bool]:
    table = rules.table
    values, stages = table.defaults, _stages(rules)
    for stage, names in stages.items():
        if stage in chosen:
            values.update(dict.fromkeys(names, chosen[stage]))
    locked = []
    for name, value in chosen.items():
        if name in stages:
            continue
        if name not in values:
            switched = ", ".join(_switched(rules))
            raise _refused(
                f"unrecognized feature gate: {name}",
                did_you_mean(name, values) or f"Podium switches {switched}",
            )
        if name in (table.locked_off if value else table.locked_on):
            wanted, default = (str(each).lower() for each in (value, not value))
            locked.append(f"cannot set feature gate {name} to {wanted}, feature is locked to {default}")
        values[name] = value
    if locked:
        raise _refused(_aggregate(locked))
    return values


def _stages(rules: VersionRules) -> dict[str, frozenset[str]]:
    return {"AllAlpha": rules.table.alpha, "AllBeta": rules.table.beta_on | rules.table.beta_off}


def _switched(rules: VersionRules) -> list[Gate]:
    return [gate for gate in Gate if gate in rules.switched]


def _check_needs(values: Mapping[str, bool], needed: Mapping[str, Sequence[str]]) -> None:
    problems = []
    for name, needs in needed.items():
        missing = [need for need in needs if not values[need]]
        if values[name] and missing:
            problems.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    if problems:
        raise _refused(_aggregate(problems))


def _warnings(chosen: Mapping[str, bool], values: Mapping[str, bool], rules: VersionRules) -> list[str]:
    defaults = rules.table.defaults
    ours = _switched(rules)
    fixed = [name for name in chosen if name in defaults and name not in ours and values[name] != defaults[name]]
    warnings = [f"feature gate {name}: Podium has no switch for it; it stays {_on(defaults[name])}" for name in fixed]
    return warnings + [
        f"feature gate {stage}: of these gates Podium switches only {', '.join(ours)}"
        for stage in _stages(rules)
        if stage in chosen
    ]


def _on(value: bool) -> str:
    return "on" if value else "off"


def _aggregate(problems: Sequence[str]) -> str:
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _refused(text: str, hint: str = "") -> ConfigError:
    return ConfigError([ConfigProblem(FLAG, 0, "", text, hint)], kube_text=text)
