"""Compares how kube-scheduler and Podium first decide about PodGroups, with kube-scheduler's gates on.

    python -m tools.parity --groups --cases 200 --seed 1 --kubernetes 1.37
    python -m tools.parity --groups --seed 1 --only-cluster 12 --verbose

Everything exists before kube-scheduler starts; what it then wrote is read from the API server's watch, the first write
about each object. Compared are, for each member, the node or the message and the nominated node; for each group the
condition; and who is evicted, where more may be in later cycles, which are not looked at otherwise.

kube-scheduler's chance: which placement counts as the first, and which of equal ones is taken. Podium is asked once for
each domain that may come first; one of its answers must be kube-scheduler's. From 1.37 on, another domain may come
first where room is made for the group. With more than one worker the order of equally good nodes would be chance, too,
so there is one.
"""

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from podium.config import default_config
from podium.config.feature_gates import read_gates
from podium.engine.scheduler import Scheduler
from podium.framework import ManualClock, Nomination
from podium.framework.handle import Driver, Preemptor
from podium.kube import KINDS, Condition, KubeObject, Pod, PodGroup, decode_json
from podium.kube.versions.rules import VersionRules
from podium.plugins import load_registry
from podium.testing.memory_writer import MemoryWriter
from tools.parity.api_objects import Creator
from tools.parity.dice import Obj
from tools.parity.gen_groups import TOPOLOGY, GroupPlan, group_gates, make_groups
from tools.testbed.apiclient import ApiClient
from tools.testbed.cluster import ControlPlane
from tools.testbed.wipe import wipe

KINDS_READ = ("v1/Node", "v1/Pod", "policy/v1/PodDisruptionBudget")
WIPED = ("v1/Pod", "PodGroup", "v1/Node", "policy/v1/PodDisruptionBudget")
ADDED = re.compile(r'"Add event for (?:node|scheduled pod|unscheduled pod)" (?:node|pod)="([^"]+)"')
ATTEMPT = '"Attempting to schedule pod group"'
MADE_ROOM = "pod group preemption: "
PATIENCE = 15.0
"""Seconds that a scheduler has for a first decision about everything."""
EVICTING = 0.4
"""Seconds for evictions, which go on after the decision."""


@dataclass
class GroupDecisions:
    """What was first decided: for pods "node", or "message" and nomination; for groups status, reason and message."""

    pods: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    evicted: set[str] = field(default_factory=set)
    tried_again: bool = False
    """Whether a group was tried more than once: then some may have been evicted in a later cycle."""

    def lines(self) -> list[str]:
        pods = [f"{name}: {' | '.join(decided)}" for name, decided in sorted(self.pods.items())]
        groups = [f"{name}: {' '.join(decided)}" for name, decided in sorted(self.groups.items())]
        return [*groups, *pods, f"evicted: {' '.join(sorted(self.evicted))}"]


class GroupComparison:
    """One run: clusters in order until there are enough cases."""

    def __init__(self, plane: ControlPlane, seed: int, verbose: bool, rules: VersionRules) -> None:
        self._plane = plane
        self._rules = rules
        self._seed = seed
        self._verbose = verbose
        self.creator = Creator(plane.client)
        self.equal = self.cases = self.undecided = self.later = 0
        self.by_theme: dict[str, list[int]] = {}
        self.outcomes: dict[str, int] = {}

    def run(self, indexes: Iterator[int], cases: int) -> bool:
        """Whether all were equal."""
        for index in indexes:
            if self.cases >= cases:
                break
            self._compare(make_groups(self._seed, index, self._rules))
        for theme, (equal, number) in sorted(self.by_theme.items()):
            print(f"{theme:12} {equal} of {number} equal")
        print(", ".join(f"{name} {number}" for name, number in sorted(self.outcomes.items())))
        refused = self.creator.refusals
        print(f"objects created {self.creator.created}, refused {refused.total()}", *refused.most_common(3))
        if self.undecided:
            print(f"cases thrown away, because kube-scheduler did not decide in time: {self.undecided}")
        if self.later:
            print(f"of these, kube-scheduler evicted more in a later cycle: {self.later}")
        print(f"{self.equal} of {self.cases} equal")
        return self.equal == self.cases

    def _compare(self, plan: GroupPlan) -> None:
        wipe(self._plane.client, WIPED)
        self.creator.create_many(each for each in plan.objects if each["kind"] == "PodGroup")
        self.creator.create_many(each for each in plan.objects if each["kind"] != "PodGroup")
        objects = _listed(self._plane.client, self._rules)
        real, objects = _real_decisions(self._plane, plan, objects, self._rules)
        if real is None:
            self.undecided += 1
            return
        answers = [podium_decisions(order, plan, self._rules) for order in _orders(objects, plan)]
        if self._rules.pod_groups_are_queued:  # what comes first is chance in the group's trial and in preemption's
            answers += [_with_room_of(one, other) for one in answers for other in answers if one is not other]
        best = min(answers, key=lambda answer: len(_differences(real, answer, plan)))
        lines = _differences(real, best, plan)
        self._count(plan, real, equal=not lines, later=real.evicted > best.evicted)
        if lines or self._verbose:
            print(f"\ngroups {self._seed}/{plan.index} [{plan.theme}]: {'differs' if lines else 'equal'}")
            print(*(f"  {line}" for line in lines or real.lines()), sep="\n")

    def _count(self, plan: GroupPlan, real: GroupDecisions, *, equal: bool, later: bool) -> None:
        self.cases += 1
        self.equal += equal
        self.later += later
        tally = self.by_theme.setdefault(plan.theme, [0, 0])
        tally[0] += equal
        tally[1] += 1
        for status, reason, message in real.groups.values():
            kind = "scheduled" if status == "True" else "preempting" if "waiting" in message or real.evicted else reason
            self.outcomes[kind] = self.outcomes.get(kind, 0) + 1


# kube-scheduler's side


def group_api(rules: VersionRules) -> str:
    """The group and version in which a minor serves PodGroups."""
    return f"scheduling.k8s.io/{'v1beta1' if rules.pod_groups_are_queued else 'v1alpha2'}"


def _pod_groups(rules: VersionRules) -> str:
    return f"{group_api(rules)}/PodGroup"


def _listed(client: ApiClient, rules: VersionRules) -> list[Obj]:
    found: list[Obj] = []
    for kind in (*KINDS_READ, _pod_groups(rules)):
        version, _, name = kind.rpartition("/")
        found += [{"apiVersion": version, "kind": name, **item} for item in client.list(kind)]
    return found


def _real_decisions(
    plane: ControlPlane, plan: GroupPlan, objects: list[Obj], rules: VersionRules
) -> tuple[GroupDecisions | None, list[Obj]]:
    """What was first decided (None: nothing, in time), and the objects in the order in which the scheduler saw them."""
    watched = ("v1/Pod", _pod_groups(rules))
    since = {kind: plane.client.list_response(kind)["metadata"]["resourceVersion"] for kind in watched}
    awaited = {each["metadata"]["name"] for each in objects if _waits(each, plan)}
    gates = ",".join(f"{gate}={str(gate in plan.gates).lower()}" for gate in group_gates(rules))
    scheduler = plane.start_scheduler({"parallelism": 1}, verbosity=3, flags=(f"--feature-gates={gates}",))
    try:
        decided = _until(lambda: awaited <= _decided(plane.client, rules))
        time.sleep(EVICTING)
    finally:
        scheduler.stop(grace=0.0)
        log = scheduler.log_path.read_text()
        scheduler.log_path.unlink()
    seen = {name: number for number, name in enumerate(dict.fromkeys(ADDED.findall(log)))}
    objects = sorted(objects, key=lambda each: seen.get(_key(each), -1))
    if not decided:
        return None, objects
    decisions = _first_writes(plane.client, since, plan, rules)
    decisions.tried_again = log.count(ATTEMPT) > len(plan.groups)
    return decisions, objects


def _key(obj: Obj) -> str:
    """As the log names nodes and pods."""
    name: str = obj["metadata"]["name"]
    return f"default/{name}" if obj["kind"] == "Pod" else name if obj["kind"] == "Node" else ""


def _waits(obj: Obj, plan: GroupPlan) -> bool:
    """Whether kube-scheduler has something to decide about the object."""
    if obj["kind"] == "PodGroup":
        return obj["metadata"]["name"] in plan.groups
    return obj["kind"] == "Pod" and not obj["spec"].get("nodeName")


def _decided(client: ApiClient, rules: VersionRules) -> set[str]:
    pods = {
        each["metadata"]["name"]
        for each in client.list("v1/Pod")
        if each["spec"].get("nodeName") or _condition(each, "PodScheduled")
    }
    return pods | {
        each["metadata"]["name"]
        for each in client.list(_pod_groups(rules))
        if _condition(each, rules.pod_group_condition)
    }


def _condition(obj: Obj, kind: str) -> Obj | None:
    conditions = obj.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), None)


def _until(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def _first_writes(client: ApiClient, since: dict[str, str], plan: GroupPlan, rules: VersionRules) -> GroupDecisions:
    decisions, kind = GroupDecisions(), _pod_groups(rules)
    waiting = {each["metadata"]["name"] for each in plan.objects if _waits(each, plan)}
    for event in client.watch("v1/Pod", resource_version=since["v1/Pod"], timeout=1):
        pod = event["object"]
        name, status = pod["metadata"]["name"], pod.get("status", {})
        if _condition(pod, "DisruptionTarget"):
            decisions.evicted.add(name)
        failed = _condition(pod, "PodScheduled")
        if failed is not None and failed["status"] == "False":
            nominated = status.get("nominatedNodeName", "")
            decisions.pods.setdefault(name, (failed["reason"], failed["message"], nominated))
        elif pod["spec"].get("nodeName") and name in waiting:
            decisions.pods.setdefault(name, (pod["spec"]["nodeName"],))
    for event in client.watch(kind, resource_version=since[kind], timeout=1):
        group = event["object"]
        condition = _condition(group, rules.pod_group_condition)
        if condition is not None:
            content = (condition["status"], condition["reason"], condition.get("message", ""))
            decisions.groups.setdefault(group["metadata"]["name"], content)
    scheduled = bool(plan.groups) and all(status == "True" for status, _reason, _message in decisions.groups.values())
    if len(plan.groups) > 1 or scheduled:
        decisions.evicted.clear()  # that was in a later cycle: of members that were left over, or against another group
    return decisions


# Podium's side


class _Recorder(MemoryWriter):
    """Notes the first outcome of each pod and group."""

    def __init__(self) -> None:
        super().__init__(at_once=True)
        self.decisions = GroupDecisions()

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.decisions.pods.setdefault(pod.name, (node_name,))

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        nominated = "" if nomination is None else nomination.node_name
        self.decisions.pods.setdefault(pod.name, (reason, message, nominated))

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self.decisions.evicted.update(victim.name for victim in victims)

    def group_condition(self, group: PodGroup, condition: Condition) -> None:
        self.decisions.groups.setdefault(group.name, (condition.status, condition.reason, condition.message))


def podium_decisions(objects: Sequence[Obj], plan: GroupPlan, rules: VersionRules) -> GroupDecisions:
    registry = load_registry()
    gates = read_gates([",".join(f"{gate}=true" for gate in plan.gates)], rules).gates
    recorder = _Recorder()
    scheduler = Scheduler(
        default_config(registry, rules.with_gates(gates)),
        registry,
        Driver(
            clock=ManualClock(1_800_000_000.0),
            writer=recorder,
            rng=random.Random(0),
        ),
        recorder,
        parity=True,
        on_group_condition=recorder.group_condition,
    )
    scheduler.load(_decode(each) for each in objects if each["kind"] != "Pod")
    scheduler.load(_decode(each) for each in objects if each["kind"] == "Pod")
    decided = recorder.decisions
    awaited = {each["metadata"]["name"] for each in objects if _waits(each, plan)}
    while not awaited <= decided.groups.keys() | decided.pods.keys() and scheduler.schedule_one() is not None:
        pass
    return decided


def _decode(obj: Obj) -> KubeObject:
    return decode_json(KINDS[obj["apiVersion"], obj["kind"]], msgspec.json.encode(obj))


def _orders(objects: Sequence[Obj], plan: GroupPlan) -> list[list[Obj]]:
    """The objects with the nodes of each domain moved to the front, where domains matter."""
    nodes = [each for each in objects if each["kind"] == "Node"]
    others = [each for each in objects if each["kind"] != "Node"]
    orders = [[*nodes, *others]]
    if TOPOLOGY not in plan.gates:
        return orders
    for group in (each for each in others if each["kind"] == "PodGroup" and each["metadata"]["name"] in plan.groups):
        for rule in group["spec"].get("schedulingConstraints", {}).get("topology", []):
            domains = {each["metadata"]["labels"].get(rule["key"]) for each in nodes} - {None}
            for domain in sorted(domains):
                first = [each for each in nodes if each["metadata"]["labels"].get(rule["key"]) == domain]
                orders.append([*first, *(each for each in nodes if each not in first), *others])
    return orders


def _with_room_of(one: GroupDecisions, other: GroupDecisions) -> GroupDecisions:
    """What one decided, where it made room for the group as another did."""
    rooms = [message.partition(MADE_ROOM)[2] for _status, _reason, message in other.groups.values()]

    def text(message: str) -> str:
        before, found, _room = message.partition(MADE_ROOM)
        return f"{before}{found}{rooms[0]}" if found and rooms else message

    found = GroupDecisions(evicted=other.evicted)
    for name, (status, reason, message) in one.groups.items():
        found.groups[name] = (status, reason, text(message))
    for name, decided in one.pods.items():
        there = other.pods.get(name, decided)
        both = len(decided) == len(there) == len(("reason", "message", "node"))
        found.pods[name] = (decided[0], text(decided[1]), there[2]) if both else decided
    return found


def _differences(real: GroupDecisions, answer: GroupDecisions, plan: GroupPlan) -> list[str]:
    """One line for each thing that differs; members that are equal in all but name may change places."""
    lines = []
    if not plan.groups and real.pods != answer.pods:
        lines.append(f"kube-scheduler {real.pods}, Podium {answer.pods}")
    for name in plan.groups:
        if real.groups.get(name) != answer.groups.get(name):
            lines.append(f"{name}: kube-scheduler {real.groups.get(name)}, Podium {answer.groups.get(name)}")
        ours, theirs = (_members_of(name, each, plan) for each in (answer, real))
        lines += [
            f"{pod}: kube-scheduler {theirs.get(pod)}, Podium {ours.get(pod)}" for pod in theirs if ours != theirs
        ]
    later = len(plan.groups) > 1 or (real.tried_again and real.evicted > answer.evicted)
    if real.evicted != answer.evicted and not later:
        lines.append(f"evicted: kube-scheduler {sorted(real.evicted)}, Podium {sorted(answer.evicted)}")
    return lines


def _members_of(group: str, decisions: GroupDecisions, plan: GroupPlan) -> dict[str, tuple[str, ...]]:
    """The decisions about a group's waiting members; where all are equal but for the name, sorted onto their names."""
    pods = {
        each["metadata"]["name"]: each["spec"]
        for each in plan.objects
        if each["kind"] == "Pod" and each["metadata"]["name"].startswith(f"{group}-") and "nodeName" not in each["spec"]
    }
    found = {name: decisions.pods.get(name, ("undecided",)) for name in pods}
    specs = list(pods.values())
    if all(spec == specs[0] for spec in specs):
        return dict(zip(sorted(found), sorted(found.values()), strict=True))
    return found
