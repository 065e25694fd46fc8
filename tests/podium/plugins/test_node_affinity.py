from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import Nodes
from podium.config.field import FieldPath
from podium.framework import SKIP, Action, Code, Cycle, PluginError, Resource, Status
from podium.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from tests.podium.plugins.ask import events_of, hint_of, raw_scores, refusals, refused, scores
from tools.kit.builders import build, make_cluster, make_node, make_plugin, make_pod

PODS = (Code.UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",))
PROFILES = (Code.UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",))
ALL = {"a", "b", "c"}

CLUSTER = make_cluster(
    [
        make_node("a", labels={"zone": "z1", "disk": "ssd", "cores": "8"}),
        make_node("b", labels={"zone": "z2", "disk": "hdd", "cores": "16"}),
        make_node("c", labels={"zone": "z2"}),
    ]
)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def labels(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def fields(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchFields": list(expressions)}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


def preferred(*terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    weighted = [{"weight": weight, "preference": term} for weight, term in terms]
    return {"preferredDuringSchedulingIgnoredDuringExecution": weighted}


def pod_with(affinity: dict[str, Any] | None = None, selector: dict[str, str] | None = None) -> Any:
    return make_pod(spec={"affinity": {"nodeAffinity": affinity} if affinity else None, "nodeSelector": selector or {}})


def plugin_with(added: dict[str, Any] | None = None) -> NodeAffinity:
    return make_plugin(NodeAffinity, CLUSTER, **({"addedAffinity": added} if added else {}))


PLUGIN = plugin_with()
NAMED = fields(expression("metadata.name", "In", "b"))


@pytest.mark.parametrize(
    ("affinity", "selector", "passing"),
    [
        pytest.param(None, {"zone": "z2"}, {"b", "c"}, id="nodeSelector"),
        pytest.param(None, {"zone": "z2", "disk": "hdd"}, {"b"}, id="nodeSelector with two labels"),
        pytest.param(None, {"zone": "elsewhere"}, set(), id="nodeSelector with an unknown value"),
        pytest.param(required(labels(expression("zone", "In", "z1", "z3"))), None, {"a"}, id="In"),
        pytest.param(required(labels(expression("disk", "NotIn", "ssd"))), None, {"b", "c"}, id="NotIn without key"),
        pytest.param(required(labels(expression("disk", "Exists"))), None, {"a", "b"}, id="Exists"),
        pytest.param(required(labels(expression("disk", "DoesNotExist"))), None, {"c"}, id="DoesNotExist"),
        pytest.param(required(labels(expression("cores", "Gt", "8"))), None, {"b"}, id="Gt, false without key"),
        pytest.param(required(labels(expression("cores", "Lt", "16"))), None, {"a"}, id="Lt"),
        pytest.param(required(labels(expression("zone", "Gt", "1"))), None, set(), id="Gt of something not a number"),
        pytest.param(
            required(labels(expression("zone", "In", "z1")), labels(expression("disk", "In", "hdd"))),
            None,
            {"a", "b"},
            id="terms are alternatives",
        ),
        pytest.param(
            required(labels(expression("zone", "In", "z2"), expression("disk", "Exists"))),
            None,
            {"b"},
            id="conditions of a term must all hold",
        ),
        pytest.param(
            required(labels(expression("disk", "Exists"))), {"zone": "z2"}, {"b"}, id="nodeSelector and affinity"
        ),
        pytest.param(required(), None, set(), id="no terms"),
        pytest.param(required({}), None, set(), id="an empty term"),
        pytest.param(required({}, labels(expression("zone", "In", "z1"))), None, {"a"}, id="an empty term beside one"),
        pytest.param(
            required(labels(expression("zone", "In")), labels(expression("zone", "In", "z1"))),
            None,
            {"a"},
            id="a malformed term just does not match",
        ),
        pytest.param(required(NAMED), None, {"b"}, id="by name"),
        pytest.param(
            required(fields(expression("metadata.name", "NotIn", "b"))), None, {"a", "c"}, id="by name, excluding"
        ),
        pytest.param(
            required(fields(expression("metadata.name", "In", "b", "c"))),
            None,
            set(),
            id="a name field takes one value",
        ),
        pytest.param(
            required({**NAMED, **labels(expression("zone", "In", "z1"))}), None, set(), id="name and labels disagree"
        ),
        pytest.param(required(fields(expression("metadata.other", "In", "b"))), None, set(), id="unknown field"),
        pytest.param(
            required(fields(expression("metadata.other", "NotIn", "b"))), None, ALL, id="unknown field, excluding"
        ),
    ],
)
def test_nodes_that_the_pod_insists_on(
    affinity: dict[str, Any] | None, selector: dict[str, str] | None, passing: set[str]
) -> None:
    assert refused(refusals(PLUGIN, pod_with(affinity, selector), CLUSTER)) == dict.fromkeys(ALL - passing, PODS)


@pytest.mark.parametrize("affinity", [None, preferred((1, labels(expression("zone", "Exists"))))])
def test_a_pod_that_insists_on_nothing_is_not_looked_at(affinity: dict[str, Any] | None) -> None:
    assert PLUGIN.pre_filter(Cycle(pod_with(affinity), CLUSTER)) == SKIP


def test_filter_works_without_pre_filter() -> None:
    verdict = PLUGIN.filter(Cycle(pod_with(selector={"zone": "z1"}), CLUSTER), Nodes(CLUSTER))
    assert verdict.codes.tolist() == [0, 1, 1]


def names(*values: str) -> dict[str, Any]:
    return expression("metadata.name", "In", *values)


@pytest.mark.parametrize(
    ("terms", "result"),
    [
        pytest.param([fields(names("a"))], {"a"}, id="one"),
        pytest.param([fields(names("a")), fields(names("z"))], {"a", "z"}, id="terms add up"),
        pytest.param([fields(names("a", "b"), names("b", "c"))], {"b"}, id="conditions of a term intersect"),
        pytest.param([fields(names("a"), names("b"))], "conflict", id="nothing left"),
        pytest.param([fields(names("a"), names("b")), fields(names("c"))], {"c"}, id="nothing left in one term"),
        pytest.param([fields(names("a")), labels(expression("zone", "Exists"))], None, id="a term without names"),
        pytest.param([fields(names("a")), {}], None, id="even an empty term is one without names"),
        pytest.param([fields(expression("metadata.name", "NotIn", "a"))], None, id="excluding is not naming"),
        pytest.param([fields(names("a"), expression("metadata.name", "NotIn", "a"))], {"a"}, id="only naming counts"),
        pytest.param([fields(expression("metadata.other", "In", "a"))], None, id="another field"),
        pytest.param([fields(names())], "conflict", id="names without values"),
        pytest.param([], None, id="no terms"),
    ],
)
def test_terms_that_all_name_nodes_narrow_the_search(terms: list[dict[str, Any]], result: Any) -> None:
    expected = Status.unresolvable("pod affinity terms conflict") if result == "conflict" else result
    assert PLUGIN.pre_filter(Cycle(pod_with(required(*terms)), CLUSTER)) == expected


def test_affinity_added_by_the_profile_applies_to_every_pod_and_is_named_first() -> None:
    plugin = plugin_with(required(labels(expression("zone", "In", "z2"))))
    assert refused(refusals(plugin, make_pod(), CLUSTER)) == {"a": PROFILES}
    assert refused(refusals(plugin, pod_with(selector={"disk": "hdd"}), CLUSTER)) == {"a": PROFILES, "c": PODS}


# Score


def test_weights_of_matching_terms_add_up_and_are_brought_to_100() -> None:
    pod = pod_with(
        preferred(
            (20, labels(expression("zone", "In", "z2"))),
            (30, labels(expression("disk", "In", "hdd"))),
        )
    )
    assert raw_scores(PLUGIN, pod, CLUSTER) == {"a": 0, "b": 50, "c": 20}
    assert scores(PLUGIN, pod, CLUSTER) == {"a": 0, "b": 100, "c": 40}


def test_affinity_added_by_the_profile_scores_beside_the_pods_own() -> None:
    plugin = plugin_with(preferred((7, NAMED)))
    assert raw_scores(plugin, make_pod(), CLUSTER) == {"a": 0, "b": 7, "c": 0}
    pod = pod_with(preferred((1, labels(expression("zone", "In", "z2")))))
    assert raw_scores(plugin, pod, CLUSTER) == {"a": 0, "b": 8, "c": 1}


@pytest.mark.parametrize("term", [(0, labels(expression("zone", "Exists"))), (5, {})])
def test_terms_without_weight_or_conditions_score_0_but_are_not_skipped(term: tuple[int, dict[str, Any]]) -> None:
    pod = pod_with(preferred(term))
    assert scores(PLUGIN, pod, CLUSTER) == {"a": 0, "b": 0, "c": 0}


def test_a_pod_that_prefers_nothing_is_not_scored() -> None:
    pod = pod_with(required(labels(expression("zone", "Exists"))))
    assert PLUGIN.pre_score(Cycle(pod, CLUSTER), Nodes(CLUSTER)) == SKIP


def test_score_works_without_pre_score() -> None:
    pod = pod_with(preferred((3, labels(expression("zone", "In", "z1")))))
    assert PLUGIN.score(Cycle(pod, CLUSTER), Nodes(CLUSTER)).tolist() == [3, 0, 0]
    assert PLUGIN.score(Cycle(make_pod(), CLUSTER), Nodes(CLUSTER)).tolist() == [0, 0, 0]


def test_a_malformed_preferred_term_is_an_error() -> None:
    pod = pod_with(preferred((1, labels(expression("zone", "In")))))
    message = (
        "[0].matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    )
    assert PLUGIN.pre_score(Cycle(pod, CLUSTER), Nodes(CLUSTER)) == Status.error(message)
    with pytest.raises(PluginError) as raised:
        PLUGIN.score(Cycle(pod, CLUSTER), Nodes(CLUSTER))
    assert str(raised.value) == message


# Events


def test_events() -> None:
    assert events_of(PLUGIN) == [(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)]


def test_a_node_that_matches_now_wakes_the_pod() -> None:
    hint = hint_of(PLUGIN, Resource.NODE)
    pod = pod_with(required(labels(expression("zone", "In", "z1"))), {"disk": "ssd"})
    right, wrong = make_node(labels={"zone": "z1", "disk": "ssd"}), make_node(labels={"zone": "z1"})
    assert hint(pod, None, right)
    assert hint(pod, wrong, right)
    assert not hint(pod, None, wrong)
    assert not hint(pod, right, right)
    assert not hint(pod, right, wrong)


def test_a_node_that_the_profile_excludes_does_not_wake_the_pod() -> None:
    hint = hint_of(plugin_with(required(labels(expression("pool", "Exists")))), Resource.NODE)
    pod = pod_with(selector={"zone": "z1"})
    assert not hint(pod, None, make_node(labels={"zone": "z1"}))
    assert hint(pod, None, make_node(labels={"zone": "z1", "pool": "x"}))
    # The profile's own terms coming to match is not looked at, only the pod's.
    assert not hint(pod, make_node(labels={"zone": "z1"}), make_node(labels={"zone": "z1", "pool": "x"}))


def test_a_malformed_term_lets_every_node_wake_the_pod_whose_selector_matches() -> None:
    hint = hint_of(PLUGIN, Resource.NODE)
    pod = pod_with(required(labels(expression("zone", "In"))), {"disk": "ssd"})
    assert hint(pod, None, make_node(labels={"disk": "ssd"}))
    assert not hint(pod, None, make_node())


# Arguments


def errors_of(added: dict[str, Any]) -> list[str]:
    args = build(NodeAffinityArgs, {"addedAffinity": added})
    return [str(error) for error in args.validate(FieldPath(("profiles", 0, "pluginConfig", 1, "args")))]


def test_well_formed_arguments_are_accepted() -> None:
    assert list(NodeAffinityArgs().validate(FieldPath())) == []
    assert errors_of({**required(labels(expression("a", "Exists")), NAMED), **preferred((1, NAMED))}) == []


def test_malformed_terms_are_reported_field_by_field() -> None:
    at = "profiles[0].pluginConfig[1].args.addedAffinity"
    must = f"{at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    may = f"{at}.preferredDuringSchedulingIgnoredDuringExecution"
    empty = "Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    operators = 'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    added = {
        **required(
            labels(expression("ok", "Exists")),
            labels(expression("zone", "In"), expression("zone", "Near", "x")),
            fields(names("a", "b")),
        ),
        **preferred((0, labels(expression("zone", "In"))), (1, labels(expression("zone", "In")))),
    }
    assert errors_of(added) == [
        f"{must}[1].matchExpressions[0].values: {empty}",
        f'{must}[1].matchExpressions[1].operator: Unsupported value: "Near": {operators}',
        f'{must}[2].matchFields[0].values: Invalid value: ["a","b"]: must have one element',
        f"{may}[1].matchExpressions[0].values: {empty}",
    ]


def test_a_bad_label_value_is_reported_under_its_key() -> None:
    (error,) = errors_of(required(labels(expression("example.com/zone", "In", "not valid"))))
    at = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
    assert error.startswith(
        f'profiles[0].pluginConfig[1].args.{at}.values[0][example.com/zone]: Invalid value: "not valid": '
    )


def test_a_reported_field_can_be_found_in_the_file() -> None:
    args = build(NodeAffinityArgs, {"addedAffinity": required(labels(expression("zone", "In")))})
    (error,) = args.validate(FieldPath(("args",)))
    assert error.path.steps == (
        "args",
        "addedAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
        0,
        "matchExpressions",
        0,
        "values",
    )
