from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubecel.quantity import milli
from podium.cluster import Cluster
from podium.config.field import FieldPath
from podium.kube import Pod
from podium.kube.meta import format_time
from podium.load.readings import GivenLoad
from podium_plugins.target_load_packing import TargetLoadPacking, TargetLoadPackingArgs
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.loads import load_of, machine, measured, set_load
from tools.kit.builders import make_cluster, make_plugin, make_pod

END = 1_000_000.0
"""Until when load was measured."""


def limited(cpu: str) -> Pod:
    return make_pod(spec={"containers": [{"name": "c", "resources": {"limits": {"cpu": cpu}}}]})


def bound(name: str, node: str, at: float, requests: dict[str, Any]) -> Pod:
    """A pod that was bound to a node at a time."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(at)}
    return make_pod(name, node=node, requests=requests, status={"conditions": [condition]})


def score(cluster: Cluster, load: GivenLoad, pod: Pod, **args: Any) -> dict[str, int]:
    return raw_scores(measured(TargetLoadPacking, cluster, load, **args), pod, cluster)


@pytest.mark.parametrize(
    ("used", "expected"), [(0, 55), (10, 70), (20, 85), (30, 100), (50, 27), (80, 7), (95, 0), (90, 0)]
)
def test_the_table_of_the_specification(used: float, expected: int) -> None:
    cluster = make_cluster([machine("n")])
    assert score(cluster, load_of(cpu_avg={"n": used}), limited("400m")) == {"n": expected}


def test_a_pod_bound_shortly_before_the_measurement_ended_is_added() -> None:
    cluster = make_cluster([machine("n")], [bound("new", "n", END - 20, {"cpu": "300m"})])
    assert score(cluster, load_of(END, cpu_avg={"n": 20}), limited("300m")) == {"n": 98}


@pytest.mark.parametrize(
    ("since", "counts"), [(-10_000, False), (-61, False), (-60, False), (-59, True), (0, True), (30, True)]
)
def test_a_pod_is_recent_until_60_seconds_before_the_end_of_the_measurement(since: float, counts: bool) -> None:
    cluster = make_cluster([machine("n")], [bound("p", "n", END + since, {"cpu": "300m"})])
    assert score(cluster, load_of(END, cpu_avg={"n": 20}), limited("300m")) == {"n": 98 if counts else 81}


@pytest.mark.parametrize(
    ("status", "created", "counts"),
    [
        pytest.param({}, None, False, id="nothing is known: it has been running for long"),
        pytest.param({}, END - 20, True, id="its creation"),
        pytest.param({}, END - 500, False, id="an old creation"),
        pytest.param({"startTime": format_time(END - 20)}, END - 500, True, id="its start"),
        pytest.param(
            {
                "startTime": format_time(END - 5),
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(END - 500)}
                ],
            },
            None,
            False,
            id="its binding before its start",
        ),
        pytest.param({"startTime": "yesterday"}, None, False, id="no time at all"),
    ],
)
def test_after_a_start_pods_count_by_their_own_times(
    status: dict[str, Any], created: float | None, counts: bool
) -> None:
    metadata = {} if created is None else {"creationTimestamp": format_time(created)}
    there = make_pod("there", node="n", requests={"cpu": "300m"}, status=status, metadata=metadata)
    cluster = make_cluster([machine("n")], [there])
    assert score(cluster, load_of(END, cpu_avg={"n": 20}), limited("300m")) == {"n": 98 if counts else 81}


def test_a_pod_that_is_placed_but_not_confirmed_counts() -> None:
    cluster = make_cluster([machine("n")])
    cluster.assume(make_pod("new", requests={"cpu": "300m"}), "n")
    assert score(cluster, load_of(END, cpu_avg={"n": 20}), limited("300m")) == {"n": 98}


def test_a_pod_counts_until_a_measurement_has_shown_it() -> None:
    cluster, load = make_cluster([machine("n"), machine("m")]), load_of(END, cpu_avg={"n": 20, "m": 20})
    plugin = measured(TargetLoadPacking, cluster, load)

    def now() -> dict[str, int]:
        return raw_scores(plugin, limited("300m"), cluster)

    assert now() == {"n": 81, "m": 81}
    new = bound("new", "n", END + 100, {"cpu": "300m"})
    cluster.set_pod(new)
    assert now() == {"n": 98, "m": 81}
    set_load(load, "cpu_avg", {"n": 20, "m": 20}, END + 159)
    assert now() == {"n": 98, "m": 81}
    set_load(load, "cpu_avg", {"n": 20, "m": 20}, END + 160)
    assert now() == {"n": 81, "m": 81}
    set_load(load, "cpu_avg", {"n": 20, "m": 20}, END + 90)  # another source's clock
    assert now() == {"n": 98, "m": 81}
    set_load(load, "cpu_avg", {"n": 20}, END + 200)
    cluster.remove_pod(new.uid)
    assert now() == {"n": 81, "m": 0}


def test_pods_still_count_after_a_time_without_measurements() -> None:
    cluster, load = make_cluster([machine("n")], [bound("p", "n", END - 20, {"cpu": "300m"})]), GivenLoad()
    plugin = measured(TargetLoadPacking, cluster, load)
    for values, at, expected in (({}, END, 0), ({"n": 20.0}, END, 98), ({}, END + 9, 0), ({"n": 20.0}, END + 9, 98)):
        set_load(load, "cpu_avg", values, at)
        assert raw_scores(plugin, limited("300m"), cluster) == {"n": expected}
    set_load(load, "cpu_avg", {"n": 20.0}, END + 90)
    assert raw_scores(plugin, limited("300m"), cluster) == {"n": 81}


def test_a_pod_that_is_resized_counts_as_it_is_now() -> None:
    cluster, load = (
        make_cluster([machine("n")], [bound("p", "n", END - 20, {"cpu": "100m"})]),
        load_of(cpu_avg={"n": 20}),
    )
    plugin = measured(TargetLoadPacking, cluster, load)
    assert raw_scores(plugin, limited("300m"), cluster) != {"n": 98}
    cluster.set_pod(bound("p", "n", END - 20, {"cpu": "300m"}))
    assert raw_scores(plugin, limited("300m"), cluster) == {"n": 98}


def test_a_pod_that_does_not_say_when_it_came_counts_from_when_it_is_asked() -> None:
    cluster, load = make_cluster([machine("n")]), load_of(END, cpu_avg={"n": 20})
    plugin = measured(TargetLoadPacking, cluster, load)
    waiting, running = make_pod("p", requests={"cpu": "300m"}), make_pod("p", node="n", requests={"cpu": "300m"})
    cluster.assume(waiting, "n")
    cluster.set_pod(running)
    for at, expected in ((END, 98), (END + 59, 98), (END + 60, 81)):  # the clock stands at 1,000,000
        set_load(load, "cpu_avg", {"n": 20}, at)
        assert raw_scores(plugin, limited("300m"), cluster) == {"n": expected}


def test_a_pod_placed_here_counts_until_the_next_measurement_whatever_it_says() -> None:
    cluster, load = make_cluster([machine("n")]), load_of(END, cpu_avg={"n": 20})
    plugin = measured(TargetLoadPacking, cluster, load)
    assert raw_scores(plugin, limited("300m"), cluster) == {"n": 81}
    cluster.assume(make_pod("p", requests={"cpu": "300m"}), "n")
    cluster.set_pod(bound("p", "n", END - 90, {"cpu": "300m"}))
    assert raw_scores(plugin, limited("300m"), cluster) == {"n": 98}
    set_load(load, "cpu_avg", {"n": 20}, END + 1)
    assert raw_scores(plugin, limited("300m"), cluster) == {"n": 81}


def test_a_node_that_takes_the_row_of_another_has_its_own_measurement() -> None:
    cluster, load = make_cluster([machine("n")]), load_of(END, cpu_avg={"n": 20})
    set_load(load, "cpu_latest", {"m": 20}, END + 100)
    plugin = measured(TargetLoadPacking, cluster, load)
    assert raw_scores(plugin, limited("300m"), cluster) == {"n": 81}
    cluster.remove_node("n")
    cluster.set_node(machine("m"))
    cluster.set_pod(bound("p", "m", END + 10, {"cpu": "300m"}))
    assert raw_scores(plugin, limited("300m"), cluster) == {"m": 81}


def test_a_dry_run_moves_no_sum() -> None:
    there = bound("p", "n", END - 20, {"cpu": "300m"})
    cluster, load = make_cluster([machine("n")], [there]), load_of(END, cpu_avg={"n": 20})
    plugin = measured(TargetLoadPacking, cluster, load)
    with cluster.dry_run():
        cluster.take_off(cluster.pods[there.uid])
        assert raw_scores(plugin, limited("300m"), cluster) == {"n": 81}
        cluster.put_on(cluster.pods[there.uid])
    assert raw_scores(plugin, limited("300m"), cluster) == {"n": 98}


@pytest.mark.parametrize(
    ("containers", "more", "expected"),
    [
        pytest.param([{"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}], {}, 2000, id="the limit"),
        pytest.param([{"limits": {"cpu": "0"}, "requests": {"cpu": "1"}}], {}, 0, id="a limit of 0"),
        pytest.param([{"requests": {"cpu": "333m"}}], {}, 500, id="the request times the multiplier, 499.5"),
        pytest.param([{}], {}, 1000, id="the default"),
        pytest.param([{"limits": {"memory": "1Gi"}}], {}, 1000, id="a limit of something else"),
        pytest.param([{}, {"limits": {"cpu": "5m"}}], {"overhead": {"cpu": "250m"}}, 1255, id="overhead"),
        pytest.param([{"limits": {"cpu": 1}}], {"initContainers": [{"name": "i"}]}, 1000, id="no init containers"),
        pytest.param(
            [{"limits": {"cpu": 1}}],
            {"initContainers": [{"name": "i", "restartPolicy": "Always"}]},
            2000,
            id="sidecars",
        ),
    ],
)
def test_what_a_pod_is_predicted_to_use(containers: list[dict[str, Any]], more: dict[str, Any], expected: int) -> None:
    listed = [{"name": f"c{i}", "resources": resources} for i, resources in enumerate(containers)]
    pod = make_pod(spec={"containers": listed, **more})
    cluster = make_cluster([machine("n", 100_000)])
    # With a target of 100 the score of n is 100 whatever it has; with 1 it tells the load: 1·(100 − X)/99.
    used = 10.0
    load = 100 * (used / 100 * 100_000 + expected) / 100_000
    assert score(cluster, load_of(cpu_avg={"n": used}), pod, targetUtilization=50) == {"n": math.floor(load + 50.5)}


def test_defaults_may_be_set() -> None:
    cluster, load = make_cluster([machine("n", 10_000)]), load_of(cpu_avg={"n": 0})
    default = {"targetUtilization": 50, "defaultRequests": {"cpu": "2"}, "defaultRequestsMultiplier": "2"}
    assert score(cluster, load, make_pod(), **default) == {"n": 70}
    assert score(cluster, load, make_pod(requests={"cpu": 1}), **default) == {"n": 70}


def test_utilisation_is_of_capacity_not_of_allocatable() -> None:
    cluster = make_cluster([machine("n", 2000, capacity=4000)])
    assert score(cluster, load_of(cpu_avg={"n": 20}), limited("400m")) == {"n": 85}


def test_a_node_without_cpu_is_as_if_idle() -> None:
    assert score(make_cluster([machine("n", 0)]), load_of(cpu_avg={"n": 20}), limited("400m")) == {"n": 40}


def test_nodes_that_are_not_measured_score_0() -> None:
    cluster = make_cluster([machine("n"), machine("m")])
    assert score(cluster, load_of(cpu_avg={"n": 20}), limited("400m")) == {"n": 85, "m": 0}
    assert score(cluster, GivenLoad(), limited("400m")) == {"n": 0, "m": 0}
    assert score(cluster, load_of(cpu_std={"n": 20}, memory_avg={"n": 3}), limited("400m")) == {"n": 0, "m": 0}


def test_where_nobody_measures_all_score_0() -> None:
    cluster = make_cluster([machine("n")])
    assert raw_scores(make_plugin(TargetLoadPacking, cluster), limited("1"), cluster) == {"n": 0}


def test_the_latest_value_counts_where_there_is_no_average() -> None:
    cluster = make_cluster([machine("n"), machine("m")])
    load = load_of(cpu_avg={"n": 20}, cpu_latest={"n": 80, "m": 80})
    assert score(cluster, load, limited("400m")) == {"n": 85, "m": 7}


def test_two_profiles_have_their_own_targets() -> None:
    cluster, load = make_cluster([machine("n")]), load_of(cpu_avg={"n": 50})
    low, high = (measured(TargetLoadPacking, cluster, load, targetUtilization=each) for each in (40, 80))
    assert raw_scores(low, limited("400m"), cluster) == {"n": 27}
    assert raw_scores(high, limited("400m"), cluster) == {"n": 95}


@given(
    st.lists(
        st.tuples(st.integers(0, 20_000), st.one_of(st.none(), st.floats(-50, 250)), st.integers(-300, 100)),
        min_size=1,
        max_size=6,
    ),
    st.integers(-5, 100),
    st.sampled_from(["0", "1m", "250m", "3"]),
)
def test_scores_are_those_of_the_formula(nodes: list[tuple[int, float | None, int]], target: int, cpu: str) -> None:
    cluster = make_cluster(
        [machine(f"n{i}", capacity) for i, (capacity, _, _) in enumerate(nodes)],
        [bound(f"p{i}", f"n{i}", END + since, {"cpu": "200m"}) for i, (_, _, since) in enumerate(nodes)],
    )
    load = load_of(END, cpu_avg={f"n{i}": used for i, (_, used, _) in enumerate(nodes) if used is not None})
    found = score(cluster, load, limited(cpu), targetUtilization=target)
    t = float(target if target > 0 else 40)
    for i, (capacity, used, since) in enumerate(nodes):
        expected = 0.0
        if used is not None:
            p, m = milli(cpu), 300 if END - int(END + since) < 60 else 0
            x = 100 * (used / 100 * capacity + (p + m)) / capacity if capacity else 0.0
            if x <= t:
                expected = (100 - t) * x / t + t
            elif x <= 100:
                expected = t * (100 - x) / (100 - t)
        assert found[f"n{i}"] == math.floor(min(100.0, max(0.0, expected)) + 0.5)


def errors(**args: Any) -> list[str]:
    return [str(error) for error in msgspec.convert(args, TargetLoadPackingArgs).validate(FieldPath())]


def test_arguments() -> None:
    assert not errors()
    assert TargetLoadPackingArgs(target_utilization=-3).target_utilization == 40
    assert errors(targetUtilization=101) == [
        "targetUtilization: Invalid value: 101: must not be above 100, it is a percentage"
    ]
    for wrong in ("a", "", "nan", "-1", "inf"):
        (said,) = errors(defaultRequestsMultiplier=wrong)
        assert "unable to parse DefaultRequestsMultiplier: " in said
    (said,) = errors(defaultRequests={"cpu": "much"})
    assert said.startswith('defaultRequests.cpu: Invalid value: "much": ')
    assert errors(metricProvider={"type": "SignalFx"})[0].startswith(
        "metricProvider.type: invalid MetricProvider.Type, got SignalFx"
    )


def test_the_arguments_are_decided_at_the_start() -> None:
    with pytest.raises(ValueError, match=r"invalid MetricProvider\.Type, got Datadog"):
        make_plugin(TargetLoadPacking, make_cluster([]), metricProvider={"type": "Datadog"})
