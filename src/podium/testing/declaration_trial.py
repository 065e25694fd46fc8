"""Tries out what a plugin declares that its answers depend on, by changing everything else.

A small random cluster, a few pods, one plugin. One part at a time is changed, and the plugin is asked again afresh.
Where its `answer_key` stayed equal, an answer about a node may differ only if a declared part of that node changed: any
other difference would have been a wrong placement, because Podium would have kept the answer from before.

    part           what is changed
    node object    labels, annotations, taints, allocatable, images or conditions of a node; a node comes or goes
    totals         a pod comes to a node, leaves it or is resized
    pods           a pod on a node gives way to one that asks for the same, or gets other labels
    claims         the pod is the same but for the names of its claims
    kinds          an object of a kind that is not in `kinds`, or of the plugin's `resources`
    clock          time passes
    load           other load is measured
    pod            the pod is the same but for its name, uid and times, which are no part of a signature
    chance         nothing

Also collects the texts that a plugin's code speaks of: labels, annotations, resources and names that may matter to it.

A change of a label that a plugin never reads shows nothing. So the labels, annotations and names of random objects are
drawn from the constants of the plugin's methods, and of the functions and values of its own package that they use.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from podium.cluster import Nodes, RowCursor
from podium.framework.cycle import Cycle
from podium.framework.depends_on import NodePart
from podium.framework.plugin import Plugin
from podium.framework.profile import ProfileRuntime
from podium.framework.status import PluginError
from podium.kube import Pod
from podium.testing.builders import pod
from podium.testing.random_cluster import CLAIMS, PartChange, RandomCluster, claim_volumes

SEEDS = range(20)
_ABOUT_THE_POD = ""
_PARTS = ("chance", "pod", "claims", "clock", "load", "kinds", "node object", "pods", "totals")
_ADVICE = {
    "totals": "write node=NodePart.TOTALS",
    "pods": "write node=NodePart.PODS",
    "claims": "write claims=True, or let answer_key differ with what matters of the claims",
    "kinds": "name the kind in `kinds`, or return its version from answer_key",
    "clock": "return from answer_key what the time makes of it",
    "load": "return the generation of the readings from answer_key",
    "pod": "return from answer_key what counts of the pod, or None",
    "chance": "write depends_on = DependsOn(), without answer_key",
}
_BEYOND = "write node=NodePart.ANYTHING, with an answer_key that differs whenever it counts, or without one"
_KEY: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,120}[A-Za-z0-9])?")
_MOST: Final = 60
_USUAL: Final = ("app", "tier", "true", "false", "a", "b", "1", "50")


class WrongDeclaration(NamedTuple):
    """An answer that changed with something that the plugin does not declare."""

    part: str
    """What moved it: one of the parts above."""
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class _Answers(NamedTuple):
    """All that a plugin says of a pod, and the key under which it holds."""

    key: Hashable
    by_node: dict[str, tuple[str, ...]]
    """By node; what concerns the pod itself by ""."""


def try_declaration(
    plugin: type[Plugin],
    *,
    objects: Iterable[Any] = (),
    pods: Sequence[Pod] = (),
    args: Mapping[str, Any] | None = None,
    seeds: Iterable[int] = SEEDS,
) -> list[WrongDeclaration]:
    """What a plugin's answers depend on without being declared: one finding for each part, none where all is well.

    Give it `objects` and `pods` in which the plugin takes an interest: random nodes, pods and other objects are made
    beside them, with labels and names from the plugin's own code.

    >>> from podium import DependsOn, NodePart, Plugin
    >>> class FewPods(Plugin):
    ...     depends_on = DependsOn(node=NodePart.OBJECT)
    ...     def score_node(self, cycle, node):
    ...         return max(0, 100 - len(node.pods))
    >>> [found.part for found in try_declaration(FewPods)]
    ['totals']
    """
    given = list(objects)
    words = list(dict.fromkeys((*words_of(plugin), *keys_of((*given, *pods)))))
    found: dict[str, WrongDeclaration] = {}
    for seed in seeds:
        world = RandomCluster(plugin, given, args, words, random.Random(seed))
        for wrong in _Trial(plugin, world, pods).run():
            found.setdefault(wrong.part, wrong)
    if "pods" in found:
        found.pop("totals", None)  # pods contain the totals
    return [found[part] for part in _PARTS if part in found]


class _Trial:
    """One world, and the pods that the plugin is asked about."""

    def __init__(self, plugin: type[Plugin], world: RandomCluster, pods: Sequence[Pod]) -> None:
        self.world = world
        self.runtime: ProfileRuntime = world.cluster.runtime_of(plugin.name)
        self.plugin = self.runtime.plugins[plugin.name]
        self.declared = self.plugin.depends_on
        self.dependence = self.runtime.dependences[self.plugin]
        self.pods = [*pods, *(self._random_pod(number) for number in range(2))]

    def run(self) -> Iterable[WrongDeclaration]:
        if self._is_uncached():
            return
        known = [self._ask(each) for each in self.pods]
        for each, answers in zip(self.pods, known, strict=True):
            if chance := list(self._compare(each, answers, self._ask(each), PartChange("chance", "nothing changed"))):
                yield from chance
                return
            other = replace(
                each,
                metadata=replace(
                    each.metadata, name=f"{each.name}-2", uid=f"{each.uid}-2", creation_timestamp="2031-01-01T00:00:00Z"
                ),
            )
            yield from self._compare(
                each, answers, self._ask(other), PartChange("pod", "the pod had another name and uid")
            )
            if any(volume.persistent_volume_claim for volume in each.spec.volumes):
                yield from self._with_other_claims(each, answers)
        changes = self.world.changes(self.declared.kinds or ())
        self.world.rng.shuffle(changes)
        for make in changes:
            cursor = self.world.cluster.state.row_cursor()
            cursor.read()  # from here on
            change, before = make(), known
            declared = self._declared(change, cursor)
            known = [self._ask(each) for each in self.pods]
            for each, old, new in zip(self.pods, before, known, strict=True):
                yield from self._compare(each, old, new, change, declared)

    def _is_uncached(self) -> bool:
        return self.declared.node == NodePart.ANYTHING and not self.dependence.may_move

    def _with_other_claims(self, asked: Pod, answers: _Answers) -> Iterable[WrongDeclaration]:
        names = self.world.rng.sample(CLAIMS, len(CLAIMS))
        volumes = [
            replace(each, persistent_volume_claim=replace(each.persistent_volume_claim, claim_name=name))
            if each.persistent_volume_claim
            else each
            for each, name in zip(asked.spec.volumes, names, strict=False)
        ]
        other = replace(asked, spec=replace(asked.spec, volumes=tuple(volumes)))
        yield from self._compare(
            asked,
            answers,
            self._ask(other),
            PartChange("claims", f"its claims were {', '.join(names[: len(volumes)])}"),
        )

    def _declared(self, change: PartChange, cursor: RowCursor) -> set[str]:
        """The nodes that Podium asks about again, because a declared part of them changed."""
        if self.declared.node == NodePart.ANYTHING:
            return set()
        nodes, pods = cursor.read() or ((), ())
        rows = {*nodes, *(pods if self.declared.node > NodePart.OBJECT else ())}
        names = {self.world.cluster.state.names[row] for row in rows}
        return names if change.level <= self.declared.node else names - {change.node}

    def _compare(
        self, asked: Pod, before: _Answers, after: _Answers, change: PartChange, declared: Collection[str] = ()
    ) -> Iterable[WrongDeclaration]:
        """Whether a kept answer would have been wrong."""
        if before.key is None or before.key != after.key:
            return
        for name, answer in before.by_node.items():
            now = after.by_node.get(name)
            if now is None or now == answer or name in declared:
                continue
            where = "" if name == _ABOUT_THE_POD else f" about node {name}"
            changed = f"{', '.join(answer)} became {', '.join(now)}"
            elsewhere = bool(change.node) and change.node != name
            advice = _BEYOND if elsewhere else _ADVICE.get(change.part, _BEYOND)
            yield WrongDeclaration(
                change.part,
                f'plugin "{self.plugin.name}" declares too little: {change.words}, and its answer{where} for pod '
                f"{asked.key} changed ({changed}); {advice}",
            )
            return

    # Asking

    def _ask(self, asked: Pod) -> _Answers:
        """Everything the plugin says of a pod now, nothing of it from before."""
        cycle = Cycle(asked, self.world.cluster.state)
        cycle.facts.notes.clear()
        key = () if self.dependence.key_of is None else self.dependence.key_of(cycle)
        by_node: dict[str, list[str]] = {name: [] for name in self.world.nodes}
        whole: list[str] = []
        self._ask_filter(cycle, whole, by_node)
        self._ask_scores(cycle, whole, by_node)
        answers = {name: tuple(parts) for name, parts in by_node.items()}
        return _Answers(key, {_ABOUT_THE_POD: tuple(whole), **answers})

    def _ask_filter(self, cycle: Cycle, whole: list[str], by_node: dict[str, list[str]]) -> None:
        try:
            outcome = self.runtime.run_pre_filter_untimed(cycle)
        except PluginError as error:
            whole.append(f"PreFilter fails: {error}")
            return
        names = None if outcome.node_names is None else sorted(outcome.node_names)
        whole.append(f"PreFilter {'passes' if outcome.status is None else outcome.status.message}, nodes {names}")
        if outcome.status is not None:
            return
        for name, answers in by_node.items():
            try:
                status = self.runtime.run_filters_on(cycle, cycle.cluster.row_of[name])
                answers.append("Filter passes" if status is None else f"Filter: {status.message}")
            except PluginError as error:
                answers.append(f"Filter fails: {error}")

    def _ask_scores(self, cycle: Cycle, whole: list[str], by_node: dict[str, list[str]]) -> None:
        rows = np.array([cycle.cluster.row_of[name] for name in by_node], dtype=np.intp)
        nodes = Nodes(cycle.cluster, rows)
        try:
            self.runtime.run_pre_score(cycle, nodes)
            whole.append(f"PreScore skips {sorted(cycle.skipped_scores)}")
            for each in self.runtime.scores:
                if each.name not in cycle.skipped_scores:
                    for answers, score in zip(
                        by_node.values(), self.runtime.raw_score_of(each, cycle, nodes).tolist(), strict=True
                    ):
                        answers.append(f"score {score}")
        except PluginError as error:
            whole.append(f"Score fails: {error}")

    def _random_pod(self, number: int) -> Pod:
        rng = self.world.rng
        metadata = {key: rng.choice(self.world.words) for key in self.world.keys if rng.random() < 0.3}
        return pod(
            f"asks-{number}",
            cpu=rng.choice((None, "500m")),
            labels=metadata,
            annotations=metadata,
            resources={each: 1 for each in self.world.resources if rng.random() < 0.5},
            priority=rng.choice((0, 100)),
            spec={"volumes": claim_volumes(CLAIMS[:number])},
        )


def words_of(plugin: type) -> list[str]:
    """What could be a key or a value, from the plugin's code, and a few that are usual."""
    found: dict[str, None] = {}
    for text in _texts_of_class(plugin, plugin.__module__.partition(".")[0], set()):
        if _KEY.fullmatch(text):
            found[text] = None
        if len(found) >= _MOST:
            break
    return list(dict.fromkeys((*found, *_USUAL)))


def _texts_of_class(kind: type, package: str, seen: set[int]) -> Iterator[str]:
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == package and base.__module__ != "podium.framework.plugin":
            for name, value in vars(base).items():
                if name not in ("__module__", "__qualname__", "__doc__", "points", "name"):
                    yield from _texts(value, package, seen)


def _texts(value: Any, package: str, seen: set[int]) -> Iterator[str]:
    if id(value) in seen:
        return
    seen.add(id(value))
    match value:
        case str():
            yield value
        case property(fget=getter):
            yield from _texts(getter, package, seen)
        case staticmethod() | classmethod():
            yield from _texts(value.__func__, package, seen)
        case tuple() | list() | set() | frozenset():
            for each in value:
                yield from _texts(each, package, seen)
        case dict():
            for each in (*value.keys(), *value.values()):
                yield from _texts(each, package, seen)
        case FunctionType() if (value.__module__ or "").partition(".")[0] == package:
            yield from _texts_of_code(value.__code__, value.__globals__, package, seen)
            for cell in value.__closure__ or ():
                yield from _texts(cell.cell_contents, package, seen)
        case type() if value.__module__.partition(".")[0] == package:
            yield from _texts_of_class(value, package, seen)


def _texts_of_code(code: CodeType, names: dict[str, Any], package: str, seen: set[int]) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _texts_of_code(constant, names, package, seen)
        else:
            yield from _texts(constant, package, seen)
    for name in code.co_names:
        if name in names:
            yield from _texts(names[name], package, seen)


def keys_of(objects: Iterable[Any]) -> list[str]:
    """The labels and annotations of objects, keys and values."""
    found: dict[str, None] = {}
    for each in objects:
        metadata = getattr(each, "metadata", None)
        for texts in (getattr(metadata, "labels", {}), getattr(metadata, "annotations", {})):
            found |= dict.fromkeys((*texts.keys(), *texts.values()))
    return [text for text in found if text]
