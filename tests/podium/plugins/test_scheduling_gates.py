from podium.framework import Action, Resource, Status
from podium.plugins.scheduling_gates import SchedulingGates
from tests.podium.plugins.ask import events_of, hint_of
from tools.kit.builders import make_cluster, make_plugin, make_pod

PLUGIN = make_plugin(SchedulingGates, make_cluster([]))


def test_a_pod_without_gates_may_enter_the_queue() -> None:
    assert PLUGIN.pre_enqueue(make_pod()) is None


def test_a_gated_pod_waits_and_all_its_gates_are_named() -> None:
    pod = make_pod(spec={"schedulingGates": [{"name": "quota"}, {"name": "example.com/licence"}]})
    expected = Status.unresolvable("waiting for scheduling gates: [quota example.com/licence]")
    assert PLUGIN.pre_enqueue(pod) == expected


def test_only_the_pod_itself_losing_its_gates_wakes_it() -> None:
    assert events_of(PLUGIN) == [(Resource.POD, Action.UPDATE_POD_GATES_ELIMINATED)]
    hint = hint_of(PLUGIN, Resource.POD)
    assert hint(make_pod("mine"), make_pod("mine"), make_pod("mine"))
    assert not hint(make_pod("mine"), make_pod("other"), make_pod("other"))
