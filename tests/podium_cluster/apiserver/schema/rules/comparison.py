"""Asks both API servers about cases of rules: is the definition taken, and are the objects. Their words may differ, and
the embedded API takes definitions that kube-apiserver refuses for what their rules might cost.

Definitions are asked about without being kept. The objects of many cases share one definition, each case as a field of
its own: the definition comes without rules first, then objects that are there before, then the rules, and with them in
force what is created and updated, again without being kept.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.podium_cluster.apiserver.contract.session import Answer, Session
from tests.podium_cluster.apiserver.schema.rules.generated import RuleCase, Schema

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY = {"dryRun": "All"}
TOGETHER = 25
SENTINEL = {"type": "integer", "x-kubernetes-validations": [{"rule": "self == 1"}]}


class Verdict(NamedTuple):
    """What a server says: the code, and whether it warns."""

    code: int
    warned: bool = False


def verdict(answer: Answer) -> Verdict:
    return Verdict(answer.code, bool(answer.warnings))


def definition(name: str, properties: Schema) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.rules.example.com"},
        "spec": {
            "group": "rules.example.com",
            "scope": "Cluster",
            "names": {"plural": f"{name}s", "singular": name, "kind": name.capitalize()},
            "versions": [version],
        },
    }


def definition_verdict(api: Session, case: RuleCase) -> Verdict:
    return verdict(api.create(DEFINITIONS, definition("asked", {"p": case.schema}), query=DRY, note=False))


def object_verdicts(api: Session, cases: Sequence[RuleCase], name: str) -> list[list[Verdict]] | Verdict:
    """What is said of the objects of each case; of the definition, where that is refused with all rules together."""
    plain = {f"p{at}": case.plain for at, case in enumerate(cases)}
    ruled = {f"p{at}": case.schema for at, case in enumerate(cases)}
    made = api.create(DEFINITIONS, definition(name, {"sentinel": {"type": "integer"}, **plain}), note=False)
    assert made.code == 201, made.message
    path = f"/apis/rules.example.com/v1/{name}s"
    _wait(lambda: api.get(path, note=False).code == 200)
    there = [[_stored(api, path, name, at, n, value) for n, value in enumerate(c.before)] for at, c in enumerate(cases)]
    try:
        refused = _add_rules(api, definition(name, {"sentinel": SENTINEL, **ruled}))
        if refused is not None:
            return refused
        unruly = _object(name, "sentinel", "sentinel", 2)
        _wait(lambda: api.create(path, unruly, query=DRY, note=False).code == 422)
        return [list(_of_case(api, case, path, name, at, there[at])) for at, case in enumerate(cases)]
    finally:
        api.delete(f"{DEFINITIONS}/{name}s.rules.example.com", note=False)


def _wait(done: Any) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "the server never came to it"
        time.sleep(0.02)


def _object(kind: str, name: str, field: str, value: Any) -> dict[str, Any]:
    head = {"apiVersion": "rules.example.com/v1", "kind": kind.capitalize(), "metadata": {"name": name}}
    return {**head, "spec": {field: value}}


def _stored(api: Session, path: str, kind: str, at: int, number: int, value: Any) -> dict[str, Any] | None:
    answer = api.create(path, _object(kind, f"o{at}-{number}", f"p{at}", value), note=False)
    return answer.body["metadata"] if answer.code == 201 else None


def _add_rules(api: Session, wanted: dict[str, Any]) -> Verdict | None:
    path = f"{DEFINITIONS}/{wanted['metadata']['name']}"
    while True:
        current = api.get(path, note=False).body
        current["spec"]["versions"] = wanted["spec"]["versions"]
        answer = api.put(path, current, note=False)
        if answer.code != 409:
            return verdict(answer) if answer.code >= 400 else None


def _of_case(
    api: Session, case: RuleCase, path: str, kind: str, at: int, there: list[dict[str, Any] | None]
) -> Iterator[Verdict]:
    for value in case.created:
        yield verdict(api.create(path, _object(kind, "new", f"p{at}", value), query=DRY, note=False))
    for number, value in case.updated:
        before = there[number]
        if before is None:
            yield Verdict(0)
            continue
        wanted = _object(kind, before["name"], f"p{at}", value)
        wanted["metadata"]["resourceVersion"] = before["resourceVersion"]
        yield verdict(api.put(f"{path}/{before['name']}", wanted, query=DRY, note=False))


class Difference(NamedTuple):
    """Where the servers disagree."""

    case: RuleCase
    what: str
    real: Any
    embedded: Any


class Comparison(NamedTuple):
    """Where the servers disagree, one difference for each case at most, and how the real one answered."""

    differences: list[Difference]
    answers: Counter[str]

    def __str__(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in sorted(self.answers.items()))


def compare(real: Session, embedded: Session, cases: Sequence[RuleCase], prefix: str = "k") -> Comparison:
    """Ask both servers about all cases."""
    found, taken = [], []
    answers: Counter[str] = Counter()
    for case in cases:
        verdicts = [definition_verdict(api, case) for api in (real, embedded)]
        codes = [each.code for each in verdicts]
        answers["definitions taken" if codes[0] == 201 else "definitions refused"] += 1
        if codes == [201, 201]:
            taken.append(case)
        elif codes[0] == 201:
            found.append(Difference(case, "definition", *verdicts))
    for at in range(0, len(taken), TOGETHER):
        found += _of_objects(real, embedded, taken[at : at + TOGETHER], f"{prefix}{at}x", answers)
    return Comparison(found, answers)


def _of_objects(
    real: Session, embedded: Session, cases: Sequence[RuleCase], name: str, answers: Counter[str]
) -> Iterator[Difference]:
    said = [object_verdicts(api, cases, name) for api in (real, embedded)]
    if isinstance(said[0], Verdict) or isinstance(said[1], Verdict):
        if isinstance(said[1], Verdict) and len(cases) == 1:
            yield Difference(cases[0], "definition", *said)
        elif len(cases) > 1:  # together they cost too much
            half = len(cases) // 2
            yield from _of_objects(real, embedded, cases[:half], f"{name}a", answers)
            yield from _of_objects(real, embedded, cases[half:], f"{name}b", answers)
        return
    for case, one, other in zip(cases, *said, strict=True):
        answers.update(map(_sort_of, one))
        differing = [number for number, (theirs, ours) in enumerate(zip(one, other, strict=True)) if theirs != ours]
        for number in differing[:1]:
            values = [*case.created, *[(case.before[n], value) for n, value in case.updated]]
            yield Difference(case, f"object {values[number]}", one[number], other[number])


def _sort_of(said: Verdict) -> str:
    if said.code == 0:
        return "updates of nothing"
    if said.code < 400:
        return "objects taken with a warning" if said.warned else "objects taken"
    return "objects refused"
