"""Every extension point of a plugin, tried as its author would."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from podium import (
    SKIP,
    Action,
    ConfigError,
    Cycle,
    DependsOn,
    Interest,
    NodeInfo,
    NodePart,
    Nodes,
    Plugin,
    PluginError,
    Pod,
    PostFilterResult,
    Resource,
    Status,
    Wait,
    Write,
)
from podium.framework import Nomination
from podium.framework.pod_outcomes import PodOutcome
from podium.load.readings import follow
from podium.testing import DependsOnError, TrialCluster, TrialState, node, pod

TWO = [node("a"), node("b", labels={"quiet": "true"})]

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: b, labels: {quiet: "true"}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: web, image: nginx}]}
"""


class QuietArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    label_key: str = "quiet"
    only: bool = False


class Quiet(Plugin):
    Args = QuietArgs

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
        return "node(s) were loud" if self.args.only and self.args.label_key not in node.labels else None

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 100 if self.args.label_key in node.labels else 0


def test_a_score_decides_and_is_shown() -> None:
    placed = TrialCluster(Quiet, objects=TWO, weight=3).place(pod())
    assert (placed.state, placed.node) == ("bound", "b")
    assert placed.scores("Quiet") == {"a": 0, "b": 300}
    assert placed.scores("NodeResourcesFit").keys() == {"a", "b"}


def test_what_a_filter_rejects_is_shown_with_its_reason() -> None:
    placed = TrialCluster(Quiet, objects=TWO, args={"only": True}).place(pod())
    assert placed.filtered("Quiet") == {"a": "node(s) were loud"}
    assert placed.feasible == ["b"]
    with pytest.raises(LookupError, match="no node was scored, for there was 1 feasible node"):
        placed.scores("Quiet")


def test_a_pod_that_fits_nowhere_has_the_message_of_its_event() -> None:
    placed = TrialCluster(Quiet, objects=TWO[:1], args={"only": True}).place(pod())
    assert (placed.state, placed.node, placed.bound) == (TrialState.UNSCHEDULABLE, None, False)
    assert placed.message.startswith("0/1 nodes are available: 1 node(s) were loud.")


def test_a_cluster_comes_from_yaml_and_its_pods_go_by_name() -> None:
    cluster = TrialCluster(Quiet, objects=CLUSTER)
    assert cluster.outcome("shop/web").state == "queued"
    assert cluster.place("shop/web").node == "b"
    assert cluster.bound == {"shop/web": "b"}
    with pytest.raises(LookupError, match="pod default/web is not in the cluster"):
        cluster.place("web")


MANIFEST = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: limited}
spec:
  priorityClassName: urgent
  containers: [{name: main, image: app, resources: {limits: {cpu: 3}}}]
"""


def test_pods_from_manifests_are_as_the_api_server_would_store_them() -> None:
    cluster = TrialCluster(objects=[node("a"), pod("low", on="a", cpu=2)])
    cluster.add(MANIFEST)
    assert cluster.place("limited").evicted == ("default/low",)
    unknown = MANIFEST.replace("{name: limited}", "{name: more}").replace("ClassName: urgent", "ClassName: other")
    with pytest.raises(ValueError, match="PriorityClass other is not in the trial; add it"):
        cluster.add(unknown)


def test_a_whole_configuration_may_be_given(tmp_path: Any) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{plugins: "
        "{multiPoint: {enabled: [{name: Quiet, weight: 2}]}}}]}"
    )
    assert TrialCluster(Quiet, objects=TWO, config=file).place(pod()).scores("Quiet") == {"a": 0, "b": 200}
    with pytest.raises(ValueError, match="belong into the configuration"):
        TrialCluster(Quiet, config=file, weight=2)


def test_wrong_arguments_are_refused_as_podium_run_refuses_them() -> None:
    with pytest.raises(ConfigError, match='unknown field "lableKey"'):
        TrialCluster(Quiet, args={"lableKey": "x"})


class Keeps(Plugin):
    """Notes which of its methods were called, and answers what the test says."""

    answers: ClassVar[dict[str, Any]] = {}

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.calls: list[str] = []

    def _answer(self, name: str) -> Any:
        self.calls.append(name)
        return self.answers.get(name)

    def pre_enqueue(self, pod: Pod) -> Any:
        return self._answer("pre_enqueue")

    def pre_filter(self, cycle: Cycle) -> Any:
        return self._answer("pre_filter")

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Any:
        return self._answer("pre_score")

    def score(self, cycle: Cycle, nodes: Nodes) -> int:
        return 0

    def reserve(self, cycle: Cycle, node_name: str) -> Any:
        return self._answer("reserve")

    def unreserve(self, cycle: Cycle, node_name: str) -> None:
        self._answer("unreserve")

    def permit(self, cycle: Cycle, node_name: str) -> Any:
        return self._answer("permit")

    def pre_bind_preflight(self, cycle: Cycle, node_name: str) -> Any:
        return self._answer("pre_bind_preflight")

    async def pre_bind(self, cycle: Cycle, node_name: str) -> Any:
        await asyncio.sleep(0.001)  # a real wait
        return self._answer("pre_bind")

    def bind(self, cycle: Cycle, node_name: str) -> Any:
        return self._answer("bind")

    def post_bind(self, cycle: Cycle, node_name: str) -> None:
        self._answer("post_bind")


@pytest.fixture
def keeps(monkeypatch: pytest.MonkeyPatch) -> type[Keeps]:
    monkeypatch.setattr(Keeps, "answers", {})
    return Keeps


def test_all_points_are_called_in_their_order(keeps: type[Keeps]) -> None:
    cluster = TrialCluster(keeps, objects=TWO)
    assert cluster.place(pod()).bound
    before = ["pre_enqueue", "pre_filter", "pre_score", "reserve", "permit"]
    assert cluster.plugin(keeps).calls == [*before, "pre_bind_preflight", "pre_bind", "bind", "post_bind"]


def test_a_gated_pod_says_what_holds_it(keeps: type[Keeps]) -> None:
    keeps.answers["pre_enqueue"] = Status.unschedulable("the shop is closed")
    cluster = TrialCluster(keeps, objects=TWO)
    placed = cluster.place(pod())
    assert (placed.state, placed.message) == ("gated", "the shop is closed")
    keeps.answers.clear()
    assert cluster.place("pod").bound


@pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind", "bind"])
def test_a_rejection_after_the_choice_takes_the_pod_back(keeps: type[Keeps], point: str) -> None:
    keeps.answers[point] = Status.unschedulable("not today")
    cluster = TrialCluster(keeps, objects=TWO)
    placed = cluster.place(pod())
    assert (placed.state, placed.node) == ("unschedulable", None)
    assert "not today" in placed.message
    assert "unreserve" in cluster.plugin(keeps).calls
    assert not cluster.state.pods


def test_skip_at_bind_leaves_the_pod_to_the_default_binder(keeps: type[Keeps]) -> None:
    keeps.answers["bind"] = SKIP
    assert TrialCluster(keeps, objects=TWO).place(pod()).bound


def test_a_pod_waits_at_permit_until_it_is_allowed(keeps: type[Keeps]) -> None:
    keeps.answers["permit"] = Wait(60)
    cluster = TrialCluster(keeps, objects=TWO)
    placed = cluster.place(pod())
    assert (placed.waiting, placed.node is not None, placed.waits) == (True, True, {"Keeps": 60})
    cluster.advance(20)
    assert cluster.outcome("pod").waits == {"Keeps": 40}
    for waiting in cluster.plugin(keeps).handle.waiting:
        waiting.allow("Keeps")
    assert cluster.outcome("pod").bound


def test_a_wait_at_permit_ends_with_its_time(keeps: type[Keeps]) -> None:
    keeps.answers["permit"] = Wait(60)
    cluster = TrialCluster(keeps, objects=TWO)
    cluster.place(pod())
    assert [each.state for each in cluster.advance(60)] == []  # rejected, and in its backoff
    placed = cluster.outcome("pod")
    assert placed.state == "unschedulable"
    assert "rejected due to timeout after waiting 1m0s at plugin Keeps" in placed.message
    assert "unreserve" in cluster.plugin(keeps).calls


def test_no_wait_at_permit_is_longer_than_a_quarter_of_an_hour(keeps: type[Keeps]) -> None:
    keeps.answers["permit"] = Wait(3600)
    assert TrialCluster(keeps, objects=TWO).place(pod()).waits == {"Keeps": 900}


class MakesRoom(Plugin):
    def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
        return "node(s) had a pod" if node.pods else None

    def post_filter(self, cycle: Cycle, diagnosis: Any) -> PostFilterResult:
        victims = [placed.pod for placed in self.handle.cluster.pods.values()]
        self.handle.writer.evict(victims, cycle.pod, "a", lambda _problem: None)
        return PostFilterResult(None, Nomination("a"))


def test_post_filter_makes_room_and_the_pod_comes_back() -> None:
    cluster = TrialCluster(MakesRoom, objects=[node("a"), pod("old", on="a")])
    placed = cluster.place(pod("new"))
    assert (placed.state, placed.nominated, placed.evicted) == ("unschedulable", "a", ("default/old",))
    cluster.advance(10)
    assert cluster.outcome("new").node == "a"


class ShortNamesFirst(Plugin):
    def less(self, a: Any, b: Any) -> bool:
        return len(a.pod.name) < len(b.pod.name)


def test_a_queue_sort_plugin_takes_the_place_of_the_usual_one() -> None:
    cluster = TrialCluster(ShortNamesFirst, objects=[node("a"), pod("longest"), pod("short"), pod("longer")])
    assert [each.pod for each in cluster.run()] == ["default/short", "default/longer", "default/longest"]


class NeedsWidget(Plugin):
    resources = ("widgets.example.com/v1",)

    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.seen: list[tuple[str, bool]] = []

    def observe(self, resource: str, before: Any, after: Any) -> None:
        self.seen.append((resource, after is not None))

    def pre_filter(self, cycle: Cycle) -> Status | None:
        known = self.handle.cluster.objects.custom_store("widgets.example.com")
        return None if list(known) else Status.unresolvable("no widget")

    def interests(self) -> Iterable[Interest]:
        return [Interest("widgets.example.com", Action.ADD)]


class Weighed(Plugin):
    """Scores by the ConfigMap kube-system/weights, and waits for it."""

    resources = ("configmaps/v1",)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if self.weights() else Status.unresolvable("no weights")

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return int(self.weights().get(node.name, "0"))

    def weights(self) -> dict[str, str]:
        found = self.handle.cluster.objects.custom_store("configmaps").get("kube-system/weights")
        return {} if found is None else found.get("data", {})

    def interests(self) -> Iterable[Interest]:
        return [Interest(Resource.CONFIG_MAP, Action.ADD | Action.UPDATE, hint=self.is_it)]

    def is_it(self, pod: Pod, before: Any, after: Any) -> bool:
        return bool(after["metadata"]["name"] == "weights")


def test_a_config_map_is_read_and_waited_for() -> None:
    manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: kube-system}, data: {b: '90'}}"
    cluster = TrialCluster(Weighed, objects=[node("a"), node("b")])
    assert "no weights" in cluster.place(pod()).message
    cluster.add(manifest.replace("NAME", "others"))
    assert cluster.advance(60) == []
    cluster.add(manifest.replace("NAME", "weights"))
    assert [each.scores("Weighed") for each in cluster.advance(60)] == [{"a": 0, "b": 90}]


def test_custom_resources_of_any_kind_come_and_go() -> None:
    cluster = TrialCluster(NeedsWidget, objects=[node("a")])
    assert "no widget" in cluster.place(pod()).message
    cluster.add([node("b")])
    assert cluster.advance(60) == []  # a node is not what it waits for
    cluster.set_custom("widgets.example.com", "default/bolt", {"metadata": {"name": "bolt"}})
    assert [each.bound for each in cluster.advance(60)] == [True]
    cluster.set_custom("widgets.example.com", "default/bolt", None)
    seen = [each for each in cluster.plugin(NeedsWidget).seen if each[0] != Resource.POD]
    assert seen == [("widgets.example.com", True), ("widgets.example.com", False)]


def test_time_clock_and_events_wake_pods_as_in_the_live_scheduler() -> None:
    cluster = TrialCluster(Quiet, objects=[node("a")], args={"only": True})
    assert not cluster.place(pod()).bound
    cluster.add([node("b", labels={"quiet": "true"})])
    before = cluster.clock.now()
    cluster.advance(5)
    assert cluster.outcome("pod").node == "b"
    assert cluster.clock.now() == before + 5


class Raises(Plugin):
    def filter_node(self, cycle: Cycle, node: NodeInfo) -> bool:
        return bool(dict[str, str]()["missing"])


class ScoresTooHigh(Plugin):
    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 101


def test_what_a_plugin_raises_comes_out_of_the_call() -> None:
    with pytest.raises(PluginError, match=r'plugin "Raises" failed at Filter .*KeyError') as raised:
        TrialCluster(Raises, objects=TWO).place(pod())
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_answer_that_breaks_the_contract_comes_out_of_the_call() -> None:
    with pytest.raises(PluginError, match="invalid score 101"):
        TrialCluster(ScoresTooHigh, objects=TWO).place(pod())


class ClaimsTooLittle(Plugin):
    """Looks at the pods of a node, and says that it looks at the node only."""

    depends_on = DependsOn(node=NodePart.OBJECT)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> str | None:
        return "node(s) had a pod" if node.pods else None


class ClaimsEnough(ClaimsTooLittle):
    depends_on = DependsOn(node=NodePart.PODS)


def test_a_scope_that_claims_too_little_is_found() -> None:
    def fill(plugin: type[Plugin]) -> None:
        cluster = TrialCluster(plugin, objects=[node(name) for name in "abcd"])
        for number in range(5):
            cluster.place(pod(f"pod-{number}"))

    fill(ClaimsEnough)
    with pytest.raises(DependsOnError, match="depends_on or answer_key of ClaimsTooLittle declares too little"):
        fill(ClaimsTooLittle)


class ByLoad(Plugin):
    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(args, handle)
        self.readings = follow(handle, "load")

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        return (100 - nodes.pick(self.readings.column(nodes.cluster))).astype(np.int64)


def test_measured_load_is_set_by_hand() -> None:
    cluster = TrialCluster(ByLoad, objects=TWO)
    cluster.load.set("load", {"a": 10, "b": 90}, cluster.clock.now())
    assert cluster.place(pod("one")).scores("ByLoad") == {"a": 90, "b": 10}
    assert cluster.pod_outcomes.learners == {}
    assert PodOutcome().spec.node_name == ""


class Tells(Plugin):
    writes = (Write.ANNOTATIONS,)

    def reserve(self, cycle: Cycle, node_name: str) -> None:
        self.handle.report(f"{cycle.pod.name} goes to {node_name}")

    def pre_bind(self, cycle: Cycle, node_name: str) -> Any:
        return self.handle.writer.annotate(cycle.pod, {"rack": "7"})


def test_what_a_plugin_says_and_writes_is_kept() -> None:
    cluster = TrialCluster(Tells, objects=[node("a")])
    placed = cluster.place(pod())
    assert (placed.reports, placed.annotations) == (("pod goes to a",), {"rack": "7"})
    assert next(iter(cluster.state.pods.values())).pod.metadata.annotations == {"rack": "7"}
    assert str(placed).splitlines() == ["default/pod: bound on a", "  a: feasible", "  reported: pod goes to a"]
    cluster.delete("pod")
    assert cluster.bound == {}


def test_devices_meet_an_extended_resource_and_go_back_when_the_pod_is_not_bound() -> None:
    class Refuses(Plugin):
        refusing = True

        def pre_bind(self, cycle: Cycle, node_name: str) -> Status | None:
            return Status.unschedulable("not yet") if type(self).refusing else None

    devices = """
    apiVersion: resource.k8s.io/v1
    kind: DeviceClass
    metadata: {name: cards}
    spec: {extendedResourceName: example.com/card}
    ---
    apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    metadata: {name: a}
    spec: {driver: d, nodeName: a, pool: {name: a, resourceSliceCount: 1}, devices: [{name: card-0}]}
    """
    cluster = TrialCluster(Refuses, objects=[node("a")])
    cluster.add(textwrap.dedent(devices))
    asks = pod("asks", resources={"example.com/card": 1})
    assert not cluster.place(asks).bound
    assert not list(cluster.state.objects.resource_claims)
    Refuses.refusing = False
    assert cluster.place("asks").node == "a"
    (claim,) = cluster.state.objects.resource_claims
    assert [user.name for user in claim.status.reserved_for] == ["asks"]
