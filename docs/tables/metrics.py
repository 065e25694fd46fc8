"""Lists the metrics of every process, from the calls in the source that define them.

A call defines a metric when one of its arguments is a name such as "podium_load_nodes"; the text after it is the help.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import podium
from docs.tables.markdown import code, plain, table

SOURCE: Final = Path(podium.__file__).parents[1]
PACKAGES: Final = ("podium", "podium_plugins", "podium_lab")
NAME: Final = re.compile(r"(scheduler|dynamic_resource_allocation|podium|rest_client|leader_election)(_[a-z]+)+")
KINDS: Final = {"Histograms": "histogram", "Counters": "counter", "counter": "counter", "gauge": "gauge"}
READ_KINDS: Final = {"counters": "counter", "gauges": "gauge"}
PLUGIN_KINDS: Final = {"MetricKind.COUNTER": "counter", "MetricKind.GAUGE": "gauge"}


SHARED: Final = {"podium_learned": "LearnedScore", "podium_model": "ModelScore"}
"""Plugins that define their metrics by one function (`podium_lab.model_metrics`), by how the names begin."""


class MetricEntry(NamedTuple):
    """One metric as the source defines it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str
    file: str


SECTIONS: Final[dict[str, Callable[[MetricEntry], bool]]] = {
    "As kube-scheduler has them": lambda metric: metric.name.startswith(("scheduler_", "dynamic_resource_")),
    "Podium's own": lambda metric: (
        metric.file.startswith(("podium/run/", "podium/load/"))
        and not metric.name.startswith(("scheduler_", "dynamic_resource_"))
    ),
    "Of QosAware": lambda metric: metric.file.startswith("podium_plugins/"),
    "Of plugins that learn": lambda metric: metric.file.startswith("podium_lab/"),
    "Of every process": lambda metric: metric.file.startswith("podium/serving/"),
    "Of podium extender": lambda metric: metric.file.startswith("podium/extender/"),
    "Of podium controller": lambda metric: metric.file.startswith("podium/controllers/"),
}


def page() -> str:
    found = list(metrics())
    parts = []
    for heading, belongs in SECTIONS.items():
        rows = [
            [code(each.name), each.kind, ", ".join(map(code, each.labels)), plain(each.text)]
            for each in found
            if belongs(each)
        ]
        parts += [f"## {heading}\n", table(["metric", "type", "labels", "meaning"], rows)]
    return "\n".join(parts)


def metrics() -> Iterator[MetricEntry]:
    """Every metric, by file and in the order of the source."""
    for path in sorted(path for package in PACKAGES for path in (SOURCE / package).rglob("*.py")):
        text = path.read_text()
        if NAME.search(text) is None:
            continue
        tree = ast.parse(text)
        constants = _constants(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield from _defined_by(node, constants, str(path.relative_to(SOURCE)))


def _constants(tree: ast.AST) -> dict[str, ast.expr]:
    """What names stand for, as far as they are assigned a tuple somewhere in the file, or run through one."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Tuple):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Tuple):
            for index, target in enumerate(node.target.elts):
                rows = [row.elts[index] for row in node.iter.elts if isinstance(row, ast.Tuple)]
                found[ast.unparse(target)] = ast.List(rows)
    return found


def _defined_by(call: ast.Call, constants: dict[str, ast.expr], file: str) -> Iterator[MetricEntry]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    arguments = call.args
    if called == "ReadFamily" and arguments and ast.unparse(arguments[0]) in READ_KINDS:
        kind, arguments = READ_KINDS[ast.unparse(arguments[0])], arguments[1:]
    elif called == "PluginMetric":
        kind, arguments = PLUGIN_KINDS[ast.unparse(arguments[0])], arguments[1:]
    elif called in KINDS and len(arguments) > 1:
        kind = KINDS[called]
    else:
        return
    names, texts = (_texts(argument, constants) for argument in arguments[:2])
    labels = next((found for each in arguments[2:] if (found := _labels(each, constants)) is not None), ())
    if called == "PluginMetric" and all(each.arg != "by_profile" for each in call.keywords):
        labels = ("profile", *labels)
    if len(texts) == 1:
        texts *= len(names)
    for name, text in zip(names, texts, strict=True):
        if NAME.fullmatch(name):
            yield MetricEntry(name, kind, labels, text, file)


def _texts(argument: ast.expr, constants: dict[str, ast.expr]) -> list[str]:
    if isinstance(argument, ast.Name):
        argument = constants.get(argument.id, argument)
    if isinstance(argument, ast.JoinedStr):
        return [_filled(argument, prefix, plugin) for prefix, plugin in SHARED.items()]
    elements = argument.elts if isinstance(argument, ast.List) else [argument]
    return [str(each.value) for each in elements if isinstance(each, ast.Constant)]


def _filled(text: ast.JoinedStr, prefix: str, plugin: str) -> str:
    """What a text with `{prefix}` and `{plugin}` is for one of the plugins in SHARED."""
    values = {"prefix": prefix, "plugin": plugin}
    parts = (
        values.get(ast.unparse(each.value), "") if isinstance(each, ast.FormattedValue) else str(each.value)
        for each in text.values
        if isinstance(each, ast.FormattedValue | ast.Constant)
    )
    return "".join(parts)


def _labels(argument: ast.expr, constants: dict[str, ast.expr]) -> tuple[str, ...] | None:
    """The label names, where the argument is a tuple of texts."""
    if isinstance(argument, ast.Starred):
        argument = argument.value
    if isinstance(argument, ast.Name):
        argument = constants.get(argument.id, argument)
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return (argument.value,)
    if not isinstance(argument, ast.Tuple):
        return None
    parts = [_labels(each, constants) for each in argument.elts]
    return None if None in parts else tuple(label for part in parts if part for label in part)
