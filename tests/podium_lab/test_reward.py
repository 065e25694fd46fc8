"""RewardBias: what pods teach, the worked sequences of rewards, what is kept and put together, and scores."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.config.durations import Duration
from podium.config.field import FieldPath
from podium.framework import PluginError
from podium.framework.pod_outcomes import ConfigMapName, GivenOutcomes, PodOutcome
from podium_lab import reward
from podium_lab.reward import RewardBias, RewardBiasArgs, Rewards, lesson
from tests.podium.framework.runtimes import make_runtime
from tests.podium.plugins.ask import raw_scores
from tools.kit.builders import build, make_cluster, make_handle, make_node, make_pod

NOW = 1_700_000_000.0
DAY = 86400.0


def container(state: dict[str, Any], last: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"name": "c", "state": state, "lastState": last or {}}


def ended(seconds: int = 5, code: int | None = 1) -> dict[str, Any]:
    times = {"startedAt": "2026-01-31T12:00:00Z", "finishedAt": f"2026-01-31T12:{seconds // 60:02}:{seconds % 60:02}Z"}
    return {"terminated": times if code is None else {**times, "exitCode": code}}


def outcome(
    *containers: dict[str, Any], phase: str = "Running", node: str = "a", kind: str = "web", version: str = "1"
) -> PodOutcome:
    return build(
        PodOutcome,
        {
            "metadata": {"name": "p", "namespace": "default", "labels": {"app": kind}, "resourceVersion": version},
            "spec": {"nodeName": node},
            "status": {"phase": phase, "containerStatuses": list(containers)},
        },
    )


RUNS: dict[str, Any] = {"running": {}}
WAITS, BEFORE = {"waiting": {"reason": "CrashLoopBackOff"}}, ended()


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([], 1.0),
        ([container(RUNS)], 1.0),
        ([container(ended())], 0.5),
        ([container(WAITS, BEFORE)], None),
        ([container(RUNS, BEFORE)], None),
        ([container(ended(), BEFORE)], 0.0),
        ([container(WAITS)], None),
        # The run that has just ended counts, in seconds: ten minutes are not more than ten minutes.
        ([container(ended(600), BEFORE)], 0.0),
        ([container(ended(601), BEFORE)], 0.5),
        # The last container decides whether anything is learnt; a reward that an earlier one has lowered stays.
        ([container(ended(), BEFORE), container(RUNS)], 0.0),
        ([container(WAITS), container(RUNS)], None),
        ([container(WAITS), container(ended())], 0.5),
        ([container(ended()), container(WAITS)], None),
        ([container(ended(), BEFORE), container(ended())], 0.5),
        # Work that is done is no failure; without an exit code it cannot be told from one.
        ([container(ended(code=0))], 1.0),
        ([container(RUNS), container(ended(code=0), BEFORE)], 1.0),
        ([container(ended(code=None))], 0.5),
        ([container({"terminated": {"startedAt": "then"}}, BEFORE)], 0.0),
    ],
)
def test_what_the_containers_of_a_running_pod_teach(containers: list[dict[str, Any]], expected: float | None) -> None:
    assert lesson(outcome(*containers), 600.0) == expected


@pytest.mark.parametrize(
    ("phase", "expected"), [("Failed", 0.0), ("Unknown", 0.0), ("Pending", None), ("Succeeded", None), ("", None)]
)
def test_what_other_phases_teach(phase: str, expected: float | None) -> None:
    assert lesson(outcome(container(ended()), phase=phase), 600.0) == expected


def learnt(values: list[float], args: RewardBiasArgs | None = None, node: str = "a") -> tuple[Rewards, list[str]]:
    """What rewards look like, written down, after each lesson."""
    known = Rewards(args or RewardBiasArgs(), lambda: ["a", "b"])
    seen = []
    for value in values:
        known.learn("web", node, value, NOW)
        seen.append(f"{known.known('web')[node].value:.6f} ({known.points('web', node)})")
    return known, seen


def test_the_worked_sequence() -> None:
    _known, seen = learnt([0.5, 0, 0, 0, 0, 1, 1, 1])
    assert seen == [
        *("0.950000 (9)", "0.855000 (8)", "0.769500 (7)", "0.692550 (6)", "0.623295 (6)"),
        *("0.660966 (6)", "0.694869 (6)", "0.725382 (7)"),
    ]


def test_a_node_where_all_fail_has_no_points_left_after_22_failures() -> None:
    _known, seen = learnt([0.0] * 22)
    assert seen[20].endswith("(1)")
    assert seen[21] == "0.098477 (0)"


def test_one_crash_takes_110_successes_to_be_forgotten() -> None:
    _known, seen = learnt([0.5] + [1.0] * 110)
    assert seen[109] == "0.999999 (9)"
    assert seen[110] == "1.000000 (10)"


@pytest.mark.parametrize(
    ("value", "points"), [("1.000000", 10), ("0.900000", 9), ("0.580000", 5), ("0.290000", 2), ("0.099999", 0)]
)
def test_points_of_rewards_that_were_kept(value: str, points: int) -> None:
    known = Rewards(RewardBiasArgs())
    known.restore({"web": f"a {value} 3 2023-11-14T22:13:20Z\n"}, NOW)
    assert known.points("web", "a") == points


LATE = {1: "0.100000 (1)", 2: "0.190000 (1)", 7: "0.521703 (5)", 21: "0.890581 (8)", 22: "0.901523 (9)"}


def test_a_node_that_joins_late_starts_like_any_other() -> None:
    known = Rewards(RewardBiasArgs())
    known.learn("web", "a", 0.0, NOW)
    assert known.points("web", "late") == 10
    known.learn("web", "late", 1.0, NOW)
    assert known.points("web", "late") == 10


def test_a_node_that_joins_late_starts_at_nothing_as_in_the_original() -> None:
    known = Rewards(RewardBiasArgs(compat=True), lambda: ["a", "b"])
    assert known.points("web", "a") == 0
    known.learn("web", "a", 1.0, NOW)
    assert (known.points("web", "a"), known.points("web", "b"), known.points("web", "late")) == (10, 10, 0)
    for number in range(1, 23):
        known.learn("web", "late", 1.0, NOW)
        if number in LATE:
            assert f"{known.known('web')['late'].value:.6f} ({known.points('web', 'late')})" == LATE[number]


def test_the_type_of_a_pod_is_its_first_label_or_its_name() -> None:
    known = Rewards(RewardBiasArgs())
    for labels in ({"podtype": "D", "app": "x"}, {"name": "E"}, {}):
        metadata = {"name": "alone", "namespace": "x", "labels": labels}
        known.observe(
            build(PodOutcome, {"metadata": metadata, "spec": {"nodeName": "a"}, "status": {"phase": "Failed"}}), NOW
        )
    assert [known.points(kind, "a") for kind in ("D", "E", "alone", "x")] == [9, 9, 9, 10]


@pytest.mark.parametrize("pod", [outcome(phase="Failed", kind=""), outcome(phase="Failed", node=""), outcome()])
def test_pods_without_a_type_or_a_node_and_healthy_ones_leave_nothing_to_keep(pod: PodOutcome) -> None:
    known = Rewards(RewardBiasArgs())
    assert not known.observe(pod, NOW)
    assert known.save(NOW) == {}


# Keeping


def test_what_is_kept_is_text_and_comes_back() -> None:
    known = Rewards(RewardBiasArgs())
    known.learn("web", "a", 0.5, NOW)
    known.learn("web", "b", 0.0, NOW + 60)
    kept = known.save(NOW + 60)
    assert kept == {
        "_nodes": "a 0.950000 1 2023-11-14T22:13:20Z\nb 0.900000 1 2023-11-14T22:14:20Z\n",
        "_types": "web 0.855000 2 2023-11-14T22:14:20Z\n",
        "web": "a 0.950000 1 2023-11-14T22:13:20Z\nb 0.900000 1 2023-11-14T22:14:20Z\n",
    }
    again = Rewards(RewardBiasArgs())
    again.restore(kept, NOW + 60)
    assert again.save(NOW + 60) == kept


@pytest.mark.parametrize(
    "line",
    [
        *("", "a", "a 0.5", "a 0.5 3", "a nan 3 2023-11-14T22:13:20Z", "a 1.5 3 2023-11-14T22:13:20Z"),
        *("a -0.1 3 2023-11-14T22:13:20Z", "a 0.5 0 2023-11-14T22:13:20Z", "a 0.5 x 2023-11-14T22:13:20Z"),
        *("a 0.5 3 yesterday", "a 0.5 3 2020-01-01T00:00:00Z"),
    ],
)
def test_a_line_that_cannot_be_used_is_passed_over(line: str) -> None:
    known = Rewards(RewardBiasArgs())
    known.restore({"web": f"{line}\nb 0.5 3 2023-11-14T22:13:20Z"}, NOW)
    assert (known.points("web", "a"), known.points("web", "b")) == (10, 5)


def test_of_two_replicas_the_one_that_has_seen_more_is_right() -> None:
    one, other = Rewards(RewardBiasArgs()), Rewards(RewardBiasArgs())
    for value in (0.0, 0.0, 0.0):
        one.learn("web", "a", value, NOW)
    other.learn("web", "a", 0.5, NOW)
    other.learn("web", "b", 0.5, NOW)
    other.restore(one.save(NOW), NOW)
    one.restore(other.save(NOW), NOW)
    assert one.save(NOW)["web"] == other.save(NOW)["web"]
    assert other.save(NOW)["web"] == "a 0.729000 3 2023-11-14T22:13:20Z\nb 0.950000 1 2023-11-14T22:13:20Z\n"


def test_what_nothing_was_heard_of_for_long_starts_anew() -> None:
    known = Rewards(RewardBiasArgs())
    known.learn("web", "a", 0.0, NOW)
    before = known.generation("web")
    assert "web" in known.save(NOW + 30 * DAY)
    assert known.save(NOW + 30 * DAY + 1) == {}
    assert known.points("web", "a") == 10
    assert known.generation("web") != before


def test_a_reward_that_is_full_again_is_not_kept() -> None:
    known, _seen = learnt([0.5] + [1.0] * 110)
    assert known.save(NOW) == {}


def test_where_not_all_fit_the_lowest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reward, "LARGEST", 130)
    known = Rewards(RewardBiasArgs())
    for node, failures in (("a", 1), ("b", 3), ("c", 2)):
        for _ in range(failures):
            known.learn("web", node, 0.0, NOW)
    kept = known.save(NOW)
    assert sum(map(len, kept.values())) <= 130
    assert kept["web"].startswith("b ")


lessons = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from([0.0, 0.5, 1.0])))


@given(lessons)
def test_rewards_stay_between_nothing_and_one_and_points_follow(given_lessons: list[tuple[str, str, float]]) -> None:
    known = Rewards(RewardBiasArgs())
    plain: dict[tuple[str, str], float] = {}
    for kind, node, value in given_lessons:
        known.learn(kind, node, value, NOW)
        plain[kind, node] = 0.9 * plain.get((kind, node), 1.0) + 0.1 * value
    for (kind, node), value in plain.items():
        assert known.points(kind, node) == int(float(f"{value:.6f}") * 10 + 1e-9)
        assert 0 <= known.points(kind, node) <= 10


# The plugin


def plugin_on(cluster: Cluster, pod_outcomes: GivenOutcomes | None = None, **args: Any) -> RewardBias:
    handle = make_handle(cluster)
    handle.pod_outcomes = pod_outcomes
    return RewardBias(build(RewardBiasArgs, args), handle)


def test_nodes_where_pods_of_the_type_failed_come_last() -> None:
    cluster, pod_outcomes = make_cluster([make_node("a"), make_node("b"), make_node("c")]), GivenOutcomes()
    plugin = plugin_on(cluster, pod_outcomes)
    pod = make_pod(labels={"app": "web"})
    assert raw_scores(plugin, pod, cluster) == {"a": 100, "b": 100, "c": 100}
    before, other = plugin.answer_key(pod), plugin.answer_key(make_pod(labels={"app": "db"}))
    for _ in range(3):
        pod_outcomes.show(outcome(phase="Failed", node="b"), NOW)
    pod_outcomes.show(outcome(phase="Failed", node="gone"), NOW)
    assert raw_scores(plugin, pod, cluster) == {"a": 100, "b": 70, "c": 100}
    assert raw_scores(plugin, make_pod(labels={"app": "db"}), cluster) == {"a": 100, "b": 100, "c": 100}
    assert plugin.answer_key(pod) != before
    assert plugin.answer_key(make_pod(labels={"app": "db"})) == other


def test_scores_of_the_original_where_nothing_is_known() -> None:
    cluster, pod_outcomes = make_cluster([make_node("a"), make_node("b")]), GivenOutcomes()
    plugin, pod = plugin_on(cluster, pod_outcomes, compat=True), make_pod(labels={"app": "web"})
    assert raw_scores(plugin, pod, cluster) == {"a": 0, "b": 0}
    pod_outcomes.show(outcome(phase="Failed", node="b"), NOW)
    cluster.set_node(make_node("late"))
    assert raw_scores(plugin, pod, cluster) == {"a": 100, "b": 90, "late": 0}


def test_pods_without_labels_share_no_answer() -> None:
    plugin = plugin_on(make_cluster([make_node("a")]))
    assert plugin.answer_key(make_pod("one")) != plugin.answer_key(make_pod("two"))


def test_profiles_learn_together_unless_their_settings_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, pod_outcomes = make_cluster([]), GivenOutcomes()
    monkeypatch.setenv("REWARD_NAMESPACE", "lab")
    one, other = plugin_on(cluster, pod_outcomes), plugin_on(cluster, pod_outcomes)
    assert one.rewards is other.rewards
    assert list(pod_outcomes.learners) == [ConfigMapName("lab", "podium-rewards")]
    with pytest.raises(PluginError, match="different settings learn into the ConfigMap lab/podium-rewards"):
        plugin_on(cluster, pod_outcomes, learningRate=0.2)
    monkeypatch.setenv("REWARD_CONFIG_MAP", "mine")
    assert plugin_on(cluster, pod_outcomes, learningRate=0.2).rewards is not one.rewards


def test_a_bad_variable_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARD_CONFIG_MAP", "No Name")
    with pytest.raises(PluginError, match='initializing plugin "RewardBias": environment variable REWARD_CONFIG_MAP: '):
        make_runtime(make_cluster([]), "RewardBias")


def test_arguments_have_limits() -> None:
    zero = Duration(0)
    args = RewardBiasArgs(namespace="", config_map="a/b", learning_rate=0, lasting_run=zero, forget_after=zero)
    fields = [str(error.path) for error in args.validate(FieldPath())]
    assert fields == ["namespace", "configMap", "learningRate", "lastingRun", "forgetAfter"]
