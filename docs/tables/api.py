"""Describes every class and function that a plugin touches, from the sources: signatures, docstrings, attributes.

What an attribute means is the text that stands below it in the source, as for the fields of configurations.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NamedTuple

from docs.tables.markdown import code, plain, table
from podium import kube
from podium.framework import plugin as contract
from podium.framework.events import Action, Resource

SECTIONS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "Plugins": {
        "podium": (
            "Plugin",
            "DependsOn",
            "NodePart",
            "Normalizer",
            "Write",
            "Interest",
            "filled",
            "PluginError",
        )
    },
    "Arguments": {
        "podium": ("FieldError", "FieldPath", "Duration", "SECOND", "Int64", "ResourceSpec", "DEFAULT_RESOURCES")
    },
    "In a decision": {
        "podium": ("Cycle", "Nodes", "NodeInfo", "Diagnosis", "PostFilterResult", "Nomination", "QueuedPod", "Hint"),
    },
    "Answers": {"podium": ("Status", "SKIP", "Code", "Verdict", "Wait", "Effect")},
    "Scores": {
        "podium": (
            "Scores",
            "MAX_SCORE",
            "as_score",
            "as_scores",
            "rounded",
            "truncated_divide",
            "RowNumbers",
            "read_decimal",
            "read_whole",
        )
    },
    "The handle": {
        "podium": ("Handle", "Clock", "WaitingPod", "Nominator", "ObjectProblems", "custom_reference"),
        "podium.framework": ("Writer",),
        "podium.framework.waiting": ("WaitingPods",),
        "podium.framework.pod_outcomes": ("learn", "ConfigMapName", "Learner", "PodOutcome", "GivenOutcomes"),
    },
    "The state of the cluster": {
        "podium.cluster": (
            "Cluster",
            "ClusterError",
            "Objects",
            "Store",
            "PlacedPod",
            "PodFacts",
            "HostPort",
            "Mask",
            "Rows",
            "Amounts",
            "ALLOCATABLE",
            "REQUESTED",
            "CORE_RESOURCES",
            "CPU",
            "MEMORY",
            "EPHEMERAL_STORAGE",
            "Column",
            "Interned",
            "Journal",
            "Cursor",
            "RowCursor",
            "PodQuery",
            "QueryTerm",
            "CountColumn",
            "Term",
            "TermGroup",
            "TermKind",
        ),
    },
    "Measured load": {
        "podium.load": (
            "follow",
            "Readings",
            "GenerationCounter",
            "GivenLoad",
            "LoadSource",
            "Series",
            "SeriesPart",
            "NodeMatch",
            "SourceSettings",
            "BasicAuth",
            "Header",
            "Tls",
            "at_address",
            "source_errors",
            "selector",
            "rate",
            "over_time",
            "by",
            "duration",
            "NamedScorePlugin",
            "NamedScores",
            "Scale",
            "Better",
            "Missing",
            "Combine",
            "scaled",
            "where_missing",
            "median",
            "Floats",
            "RowCache",
            "shared",
            "RecentPods",
            "cpu_capacity",
            "Utilisation",
            "UtilisationArgs",
            "watcher",
            "address_errors",
            "no_such_provider",
            "Commitment",
            "commitment_of",
            "Overcommitted",
            "NO_OVERCOMMITMENT",
            "LoadRisk",
            "Amounts",
            "load_risk",
            "risk_bounds",
            "probability",
            "probabilities",
            "NodeUsage",
            "UsageSettings",
            "USAGE_KEYS",
        ),
    },
    "Gangs": {"podium": ("Gang", "GangState", "GangCount")},
    "Preemption": {
        "podium.preemption": (
            "Evictions",
            "VICTIM_GONE",
            "objection_to_preempting",
            "refused",
            "fruitless",
            "unschedulable_rows",
            "random_start",
            "CandidateNodesArgs",
            "LowestPriorities",
            "find_candidates",
            "PreemptionSearch",
            "Candidate",
            "Harm",
            "harm_of",
            "no_candidates_message",
            "Ruling",
            "ByPriority",
            "by_importance",
            "was_evicted",
            "Budgets",
            "Trial",
        ),
    },
    "Metrics and pages": {"podium": ("PluginMetric", "MetricKind", "LabelValues", "PluginPage", "PageAnswer")},
    "Objects": {
        "podium": ("Pod", "Node", "decode_documents", "DecodeError"),
        "podium.kube": (
            "ObjectMeta",
            "OwnerReference",
            "LabelSelector",
            "PodSpec",
            "PodStatus",
            "Container",
            "NodeSpec",
            "NodeStatus",
            "Taint",
        ),
    },
    "Quantities, requests and QoS classes": {
        "podium.kube": (
            "parse_quantity",
            "milli",
            "milli_of",
            "units",
            "units_of",
            "format_nano",
            "MILLI",
            "NANO",
            "Amount",
            "Resources",
            "QuantityError",
            "pod_requests",
            "exact_requests",
            "offered",
            "is_scalar_resource_name",
            "CPU",
            "MEMORY",
            "EPHEMERAL_STORAGE",
            "PODS",
            "qos_class_of",
            "GUARANTEED",
            "BURSTABLE",
            "BEST_EFFORT",
        ),
    },
    "Selectors": {
        "podium.kube": (
            "compile_label_selector",
            "selector_from_labels",
            "compile_node_selector",
            "compile_preferred_terms",
            "Selector",
            "Requirement",
            "NodeTerms",
            "SelectorError",
        ),
    },
    "Texts and documents": {
        "podium.kube": (
            "parse_time",
            "format_time",
            "decode_json",
            "KubeObject",
            "KINDS",
            "Decoded",
            "readable_version",
            "read_json",
            "FILE",
            "SETTINGS",
            "DocumentError",
            "JsonObject",
            "printable",
            "POD_GROUP_LABEL",
        ),
    },
    "Tests": {
        "podium.testing": (
            "TrialCluster",
            "TrialOutcome",
            "TrialState",
            "DependsOnError",
            "try_declaration",
            "WrongDeclaration",
            "node",
            "pod",
        )
    },
    "Configuration and decisions": {
        "podium": (
            "load_config",
            "default_config",
            "SchedulerConfig",
            "ConfigError",
            "load_registry",
            "PluginLoadError",
            "explain",
            "Explanation",
            "NodeAnswer",
        )
    },
}
"""What is described, where it is imported from. `Resource` and `Action` have a table of their own."""


MADE: Final = ("Plugin", "Verdict", "GenerationCounter", "GivenLoad", "GivenOutcomes", "PlacedPod", "TrialCluster")
"""The classes that plugins and their tests make themselves; the others are given to them."""


class Member(NamedTuple):
    """An attribute or a method."""

    written: str
    type: str
    meaning: str


def page() -> str:
    parts = []
    for section, modules in SECTIONS.items():
        parts.append(f"## {section}\n")
        if section == "Plugins":
            parts += [*_methods_of_plugins(), *_events()]
        parts += [part for module, names in modules.items() for name in names for part in _described(module, name)]
        if section == "Objects":
            parts += _other_types()
    return "\n".join(parts)


def _methods_of_plugins() -> Iterator[str]:
    text = (contract.__doc__ or "").partition("    point  ")[2].partition("\n\n")[0]
    yield "### The methods of a plugin\n\nA plugin takes part at a point by having its method.\n"
    yield f"```text\n{textwrap.dedent(f'    point  {text}')}\n```\n"


def _events() -> Iterator[str]:
    yield "### Resource and Action\n\n`from podium import Action, Interest, Resource`\n"
    yield 'An `Interest` names what happened to which kind. A custom resource is named by its "plural.group".\n'
    names = [(name, value) for name, value in vars(Resource).items() if name.isupper()]
    yield table(["resource", "is written"], [[code(f"Resource.{name}"), code(f'"{value}"')] for name, value in names])
    yield "Actions are bits, so that several are written with `|`:\n"
    yield table(
        ["action", "value"], [[code(f"Action.{name}"), str(int(each))] for name, each in Action.__members__.items()]
    )


def _other_types() -> Iterator[str]:
    described = {name for modules in SECTIONS.values() for names in modules.values() for name in names}
    others = (name for name in kube.__all__ if name not in described and inspect.isclass(getattr(kube, name)))
    yield "### Other types of Kubernetes\n\n`from podium.kube import …`\n"
    yield "They have the fields that Kubernetes' API has, in snake_case:\n"
    yield ", ".join(code(name) for name in others) + ".\n"


def _described(module: str, name: str) -> Iterator[str]:
    found = inspect.unwrap(getattr(import_module(module), name))
    yield f"### {name}\n\n`from {module} import {name}`\n"
    if inspect.isfunction(found):
        yield f"```python\n{_signature(name, _source(found), drop=0)}\n```\n"
        yield from _prose((inspect.getdoc(found) or "").replace(f"{found.__name__}(", f"{name}("))
    elif inspect.isclass(found):
        yield from _class(name, found)
    else:
        yield from _assigned(module, name)


def _assigned(module: str, name: str) -> Iterator[str]:
    """A constant or an alias, as it is assigned in the module that has it."""
    tree = _module(module)
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ImportFrom) and any(each.name == name for each in statement.names):
            yield from _assigned(str(statement.module), name)
            return
    for statement, below in pairwise([*tree.body, ast.Pass()]):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and name in _targets(statement):
            yield f"```python\n{ast.unparse(statement)}\n```\n"
            yield from _prose(_text(below))


def _targets(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}


def _class(name: str, found: type) -> Iterator[str]:
    bases = [each for each in reversed(found.__mro__) if each.__module__.startswith("podium.")]
    made = next((node for node in _functions(_source(found)) if node.name == "__init__"), None)
    if made is not None and name in MADE:
        yield f"```python\n{_signature(name, made, drop=1)}\n```\n"
    yield from _prose(vars(found).get("__doc__"))
    attributes: dict[str, Member] = {}
    methods: dict[str, Member] = {}
    for base in bases:
        for key, member, is_method in _members(_source(base)):
            (methods if is_method else attributes)[key] = member
    if attributes:
        rows = [[code(each.written), code(each.type), plain(each.meaning)] for each in attributes.values()]
        yield table(["attribute", "type", "what it is"], rows)
    if methods:
        yield table(
            ["method", "what it does"], ([code(each.written), plain(each.meaning)] for each in methods.values())
        )


def _members(node: ast.ClassDef) -> Iterator[tuple[str, Member, bool]]:
    """Name and description of what is public in a class, fields first, and whether it is called."""
    for target, annotation, meaning in (*_fields(node.body), *_set_at_start(node)):
        yield target, Member(target, annotation, meaning), False
    for each in _functions(node):
        if each.name.startswith("_"):
            continue
        meaning = " ".join((ast.get_docstring(each) or "").partition("\n\n")[0].split())
        returns = ast.unparse(each.returns) if each.returns else ""
        decorators = {ast.unparse(decorator) for decorator in each.decorator_list}
        if any(decorator.endswith("property") for decorator in decorators):
            yield each.name, Member(each.name, returns, meaning), False
        else:
            yield (
                each.name,
                Member(_signature(each.name, each, drop="staticmethod" not in decorators), returns, meaning),
                True,
            )


def _fields(body: list[ast.stmt]) -> Iterator[tuple[str, str, str]]:
    for field, below in pairwise([*body, ast.Pass()]):
        match field:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                written = (
                    ast.unparse(annotation)
                    .removeprefix("ClassVar[")
                    .removesuffix("]" * ("ClassVar" in ast.unparse(annotation)))
                )
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                written = ast.unparse(value)
            case _:
                continue
        if not name.startswith("_"):
            yield name, written, _text(below)


def _set_at_start(node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """What `__init__` sets, with the types of its parameters."""
    made = next((each for each in _functions(node) if each.name == "__init__"), None)
    if made is None:
        return
    given = {each.arg: ast.unparse(each.annotation) for each in _all(made.args) if each.annotation}
    for field, below in pairwise([*made.body, ast.Pass()]):
        match field:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                written = given.get(value.id, "") if isinstance(value, ast.Name) else given.get(name, "")
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=annotation):
                written = ast.unparse(annotation)
            case _:
                continue
        if not name.startswith("_"):
            yield name, written, _text(below)


def _text(below: ast.stmt) -> str:
    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
        return " ".join(below.value.value.split())
    return ""


def _prose(doc: str | None) -> Iterator[str]:
    for paragraph in inspect.cleandoc(doc or "").split("\n\n"):
        if ">>>" in paragraph:
            yield f"```pycon\n{paragraph}\n```\n"
        elif paragraph.startswith("    "):
            yield f"```text\n{textwrap.dedent(paragraph)}\n```\n"
        elif paragraph:
            yield f"{plain(' '.join(paragraph.split()))}\n"


def _signature(name: str, node: Any, *, drop: int) -> str:
    """As it is called: without self, over several lines where it is long."""
    arguments = ast.parse(f"def f({ast.unparse(node.args)}): ...").body[0].args  # type: ignore[attr-defined]
    if drop:
        del (arguments.posonlyargs or arguments.args)[0]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"{name}({ast.unparse(arguments)}){returns}"


def _all(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _functions(node: Any) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]


@cache
def _module(name: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(name)))


@cache
def _source(found: Any) -> Any:
    """The class or function as it is parsed."""
    return ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]
