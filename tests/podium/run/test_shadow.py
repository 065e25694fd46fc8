"""What a shadow finds when the scheduler in charge decides the same, or otherwise."""

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from podium.config import default_config
from podium.engine.scheduler import Scheduler
from podium.framework import ManualClock
from podium.framework.handle import Driver
from podium.kube import Condition, Node, Pod
from podium.plugins import load_registry
from podium.run.shadow import Finding, Shadow, ShadowWriter, read_findings
from tools.kit.builders import make_node, make_pod
from tools.kit.storage import make_claim, make_class, make_volume
from tools.testbed import ControlPlane
from tools.testbed import objects as api


class World:
    """A shadow on an engine, told of pods as the API server would tell it."""

    def __init__(self, *nodes: Node, percentage: int | None = None) -> None:
        self.findings: list[Finding] = []
        self.shadow = Shadow(self.findings.append)
        registry = load_registry()
        self.engine = Scheduler(
            replace(default_config(registry), percentage_of_nodes_to_score=percentage),
            registry,
            Driver(
                clock=ManualClock(),
                writer=ShadowWriter(self.shadow),
                rng=random.Random(1),
            ),
            self.shadow,
        )
        self.shadow.attach(self.engine)
        self.engine.load(nodes)

    def decide(self, pod: Pod) -> None:
        self.engine.intake.set(pod)
        self.shadow.preview(pod)
        self.engine.schedule_one()

    def hear(self, pod: Pod) -> Finding | None:
        self.shadow.observe(pod)
        self.engine.intake.set(pod)
        return self.findings[-1] if self.findings else None


def on(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))


def unschedulable(pod: Pod) -> Pod:
    condition = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    return replace(pod, status=replace(pod.status, conditions=(condition,)))


FULL = make_node("full", cpu=1)
ROOMY = make_node("roomy", cpu=8)
TWIN = make_node("twin", cpu=8)


@pytest.mark.parametrize(
    ("nodes", "cpu", "after", "expected"),
    [
        ((FULL, ROOMY), 2, lambda pod: on(pod, "roomy"), Finding("same", "default/p1", "roomy", "roomy")),
        ((ROOMY, TWIN), 2, lambda pod: on(pod, "twin"), Finding("tie", "default/p1", "roomy", "twin")),
        ((FULL,), 2, unschedulable, Finding("same", "default/p1")),
        ((ROOMY,), 2, unschedulable, Finding("only-podium", "default/p1", "roomy")),
        (
            (FULL, ROOMY),
            2,
            lambda pod: on(pod, "full"),
            Finding("refused", "default/p1", "roomy", "full", reason="Insufficient cpu"),
        ),
        (
            (FULL,),
            2,
            lambda pod: on(pod, "full"),
            Finding("only-other", "default/p1", "", "full", reason="0/1 nodes are available: 1 Insufficient cpu."),
        ),
    ],
)
def test_a_decision_is_compared_with_what_became_of_the_pod(
    nodes: tuple[Node, ...], cpu: int, after: Callable[[Pod], Pod], expected: Finding
) -> None:
    world = World(*nodes)
    pod = make_pod("p1", requests={"cpu": cpu})
    world.decide(pod)
    assert world.hear(after(pod)) == expected


def test_a_node_that_podium_rates_lower_is_told_with_the_points() -> None:
    world = World(make_node("small", cpu=2), ROOMY)
    pod = make_pod("p1", requests={"cpu": 1})
    world.decide(pod)
    finding = world.hear(on(pod, "small"))
    assert finding is not None
    assert (finding.outcome, finding.podium, finding.other) == ("differs", "roomy", "small")
    assert finding.points > 0


def test_a_pod_that_was_bound_before_podium_looked_says_nothing() -> None:
    world = World(ROOMY)
    assert world.hear(make_pod("p1", node="roomy")) is None


def test_the_shadow_follows_what_the_scheduler_in_charge_did() -> None:
    world = World(make_node("a", cpu=4), make_node("b", cpu=2))
    first = make_pod("first", requests={"cpu": 2})
    world.decide(first)
    world.hear(on(first, "b"))
    second = make_pod("second", requests={"cpu": 4})
    world.decide(second)
    assert world.hear(on(second, "a")) == Finding("same", "default/second", "a", "a")


def test_a_pod_the_other_cannot_place_takes_no_room_in_the_shadow() -> None:
    world = World(make_node("a", cpu=4))
    first = make_pod("first", requests={"cpu": 4})
    world.decide(first)
    world.hear(unschedulable(first))
    second = make_pod("second", requests={"cpu": 4})
    world.decide(second)
    assert world.hear(on(second, "a")) == Finding("same", "default/second", "a", "a")


def test_a_pod_the_other_cannot_place_takes_no_room_when_it_is_decided_for_again() -> None:
    """As in a running shadow: news of the pod brings it back into the queue."""
    world = World(make_node("a", cpu=4))
    first = make_pod("first", requests={"cpu": 4})
    world.decide(first)
    world.hear(unschedulable(first))
    again = world.engine.queue.pop()
    assert again is not None
    world.shadow.preview(again.pod)
    world.engine.schedule(again)
    assert not world.engine.cluster.pods


def test_a_refusal_is_counted_once_however_often_the_pod_is_heard_of() -> None:
    world = World(make_node("a", cpu=4))
    pod = make_pod("p1", requests={"cpu": 4})
    world.decide(pod)
    refused = unschedulable(pod)
    world.hear(refused)
    world.decide(refused)
    world.hear(replace(refused, metadata=replace(refused.metadata, labels={"touched": "yes"})))
    assert world.shadow.counts == {"only-podium": 1}


def test_a_node_that_came_after_the_decision_is_told_as_unknown() -> None:
    world = World(FULL, ROOMY)
    pod = make_pod("p1", requests={"cpu": 2})
    world.decide(pod)
    for i in range(200):  # more than there were places for
        world.engine.intake.set(make_node(f"new{i}", cpu=8))
    expected = Finding("refused", "default/p1", "roomy", "new199", reason="not a node Podium knew")
    assert world.hear(on(pod, "new199")) == expected


def test_a_volume_is_not_kept_for_a_pod_that_went_elsewhere() -> None:
    world = World(make_node("a"))
    world.engine.load([make_class(), make_volume(), make_claim("data")])
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    world.decide(make_pod("p1", spec={"volumes": volumes}))
    assert world.engine.cluster.pods
    kept = world.engine.cluster.objects.volumes.get("volume")
    assert kept is not None
    assert kept.spec.claim_ref is None


def test_kube_scheduler_is_shadowed_on_a_real_cluster(empty_control_plane: ControlPlane) -> None:
    """Nothing is written, and every pod kube-scheduler bound was decided for or bound too soon."""
    plane = empty_control_plane
    plane.client.create_all([api.make_node(f"n{i}") for i in range(3)])
    shadow = plane.start_podium(flags=["--shadow", "--log-format=json", "--log-level=debug"])
    plane.client.create_all([api.make_pod(f"p{i}", cpu="500m") for i in range(12)])
    plane.client.poll("Pod", lambda _items: shadow.log_path.read_text().count(": decided") == 12)
    assert all("nodeName" not in each["spec"] for each in plane.client.list("Pod"))
    plane.start_scheduler()
    plane.client.poll("Pod", lambda items: all("nodeName" in each["spec"] for each in items))
    plane.client.poll("Pod", lambda _items: len(_findings(shadow.log_path.read_text())) == 12)
    places = {f"default/{each['metadata']['name']}": each["spec"]["nodeName"] for each in plane.client.list("Pod")}
    for finding in _findings(shadow.log_path.read_text()):
        assert finding.other == places[finding.pod]
        assert finding.outcome in ("same", "tie", "differs")


def _findings(log: str) -> list[Finding]:
    return list(read_findings(log.splitlines()))


def test_a_preview_does_not_move_where_the_next_search_starts() -> None:
    """Where a share of the nodes is scored, each search starts behind the one before: a preview is not one of them."""
    nodes = [make_node(f"n{number}") for number in range(150)]
    shadowing, alone = World(*nodes, percentage=1), World(*nodes, percentage=1)
    for number in range(4):
        pod = make_pod(f"p{number}")
        shadowing.decide(pod)
        alone.engine.intake.set(pod)
        alone.engine.schedule_one()
    assert alone.engine.sampling.next_start == 100 * 4 % 150
    assert shadowing.engine.sampling == alone.engine.sampling
    assert placements(shadowing) == placements(alone)


def placements(world: World) -> dict[str, str]:
    cluster = world.engine.cluster
    return {placed.pod.name: cluster.names[placed.row] for placed in cluster.pods.values()}
