"""Lists the fields of a scenario, part by part, with the values that each may have."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

import msgspec
from msgspec import inspect as types

from docs.tables.fields import meanings_of, type_text
from docs.tables.markdown import code, plain, table
from podium.kube.meta import Amount
from podium_lab.simulator import scenario
from podium_lab.simulator.scenario import Scenario, Varying, as_written, default_of

PARTS: Final[dict[str, type[msgspec.Struct]]] = {
    "nodes": scenario.NodeGroup,
    "workload": scenario.PodSource,
    "workload.generate": scenario.Generated,
    "workload.generate.shapes[]": scenario.PodShape,
    "workload.openb": scenario.OpenbPods,
    "workload.azure": scenario.AzurePods,
    "workload.broker": scenario.BrokerPods,
    "workload.dump": scenario.DumpedPods,
    "workload.vmr2l": scenario.Vmr2lPods,
    "profiles[]": scenario.Contender,
    "faults[]": scenario.Fault,
    "usage": scenario.UsageModel,
    "rewards": scenario.RewardRules,
    "rewards.phases[]": scenario.RewardPhase,
    "checkpoints": scenario.Checkpoints,
}
"""Where each part stands in the file."""
_AMOUNTS: Final = {
    type_text(types.type_info(Varying)): "amount that varies",
    type_text(types.type_info(Amount)): "amount",
}


def page() -> str:
    parts = "\n".join(f"## `{path}`\n\n{_part(part, f'{path}.')}" for path, part in PARTS.items())
    return f"## A scenario\n\n{_part(Scenario)}\n{parts}"


def _part(part: type[msgspec.Struct], path: str = "") -> str:
    """What a part is for, and its fields."""
    meanings = meanings_of(part)
    described = types.type_info(part)
    assert isinstance(described, types.StructType)
    rows: list[list[str]] = []
    for about, field in zip(described.fields, msgspec.structs.fields(part), strict=True):
        name, meaning = field.encode_name, plain(meanings.get(field.name, ""))
        rows.append([code(name), _type(about.type, f"{path}{name}"), _default(field), meaning])
    return f"{inspect.getdoc(part)}\n\n{table(['field', 'type', 'default', 'meaning'], rows)}"


def _type(of: types.Type, path: str) -> str:
    text = type_text(of).removesuffix(" or null")
    for written, word in _AMOUNTS.items():
        text = text.replace(written, word)
    if text.startswith("one of "):
        return ", ".join(code(value) for value in text.removeprefix("one of ").split(", "))
    for each in (path, f"{path}[]"):
        if each in PARTS:
            return text.replace("object", f"[object](#{re.sub(r'[^a-z0-9]', '', each)})")
    return plain(text)


def _default(field: msgspec.structs.FieldInfo) -> str:
    given: Any = default_of(field)
    if given is msgspec.NODEFAULT:
        return "must be given"
    written = as_written(given)
    if written is None or written in ("", [], {}):
        return ""
    return code(_flow(written))


def _flow(value: Any) -> str:
    """As YAML on one line."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "{" + ", ".join(f"{name}: {_flow(each)}" for name, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_flow, value)) + "]"
    return str(value)
