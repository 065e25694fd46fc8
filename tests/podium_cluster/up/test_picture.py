"""The picture has what the engine knows and what the API knows, each pod once."""

import random
from typing import Any

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import NODE, POD
from podium_cluster.up.picture import EMPTY_ENGINE, Picture, ServedAt, take_picture
from podium_cluster.up.pod_tracker import PodDecision, PodTracker, PodVerdict

HELD = PodDecision("default/b", PodVerdict.HELD, why='plugin "Siblings" holds the pod')


def api_with(conditions: dict[str, str]) -> tuple[EmbeddedApi, PodTracker]:
    """Pods by name, each with the reason why it is not scheduled; no reason is none yet."""
    api = EmbeddedApi(clock=ManualClock(), rng=random.Random(1))
    tracker = PodTracker(api.store, lambda: 0.0, lambda _decision: None)
    for name, reason in conditions.items():
        api.create(POD, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": f"why {name}"}
        status: dict[str, Any] = {"status": {"conditions": [condition] if reason else []}}
        api.patch(POD, "default", name, status, "application/merge-patch+json", subresource="status")
    return api, tracker


def picture_of(api: EmbeddedApi, tracker: PodTracker) -> Picture:
    return take_picture(EMPTY_ENGINE._replace(held=[HELD]), tracker, api, ServedAt("http://x", "kubeconfig", 1.0))


def test_pods_that_wait_are_sorted_by_how_urgent_they_are_and_those_held_say_so() -> None:
    shown = picture_of(
        *api_with({"a": "Unschedulable", "b": "", "c": "SchedulerError", "d": "", "e": "SchedulingGated"})
    )
    assert [(each.pod, each.verdict) for each in shown.waiting] == [
        ("default/c", PodVerdict.FAILED),
        ("default/b", PodVerdict.HELD),
        ("default/a", PodVerdict.REFUSED),
        ("default/e", PodVerdict.GATED),
        ("default/d", PodVerdict.UNTRIED),
    ]
    assert (shown.waiting[0].why, shown.waiting[1].why) == ("why c", HELD.why)


def test_a_refusal_is_among_those_that_wait_and_not_among_placements() -> None:
    api, tracker = api_with({"a": "Unschedulable", "b": ""})
    api.bind("default", "b", {"target": {"kind": "Node", "name": "n"}})
    shown = picture_of(api, tracker)
    assert [each.pod for each in shown.waiting] == ["default/a"]
    assert shown.placed == [PodDecision("default/b", PodVerdict.PLACED, "n")]


def test_nodes_of_the_api_are_there_before_the_scheduler_has_any() -> None:
    api, tracker = api_with({})
    for name in ("n-10", "n-9"):
        zone = {"topology.kubernetes.io/zone": "zone-a"}
        api.create(NODE, {"metadata": {"name": name, "labels": zone}, "spec": {"unschedulable": name == "n-9"}})
    bars = picture_of(api, tracker).engine.nodes
    assert [(bar.name, bar.zone, bar.cpu, bar.cordoned) for bar in bars] == [
        ("n-9", "zone-a", None, True),
        ("n-10", "zone-a", None, False),
    ]
