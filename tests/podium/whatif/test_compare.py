"""Two configurations compared: which pods go elsewhere, and which plugin tips it."""

from podium.config import load_config
from podium.config.load import default_config
from podium.plugins import load_registry
from podium.whatif.compare import (
    DIFFERS,
    ONLY_NEW,
    PENDING,
    REFUSED,
    REPLACE_ALL,
    RUNNING,
    SAME,
    CompareAnswer,
    compare,
)
from podium.whatif.sandbox import Sandbox
from tests.podium.whatif.test_worked import sample
from tools.kit.builders import make_node, make_pod

REGISTRY = load_registry()
DEFAULT = default_config(REGISTRY)
HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PACKED = """profiles:
- pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
"""
TAINTS_IGNORED = """profiles:
- plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
"""


def under(config: str, scope: str, *, reverse: bool = False) -> CompareAnswer:
    other = load_config(HEADER + config, "new.yaml", REGISTRY).config
    old, new = (Sandbox(sample(), each, REGISTRY) for each in (DEFAULT, other))
    return compare(new, old, scope) if reverse else compare(old, new, scope)


def test_a_configuration_equal_to_itself_decides_the_same() -> None:
    for scope in (PENDING, RUNNING, REPLACE_ALL):
        found = under("", scope)
        assert found.pods
        assert {each.outcome for each in found.pods} == {SAME}
        assert found.yes


def test_the_plugin_whose_score_changes_most_tips_the_decision() -> None:
    found = under(PACKED, PENDING)
    web = next(each for each in found.pods if each.pod.name == "web-4")
    assert (web.outcome, web.plugin) == (DIFFERS, "NodeResourcesFit")
    assert web.points > 0
    owner = next(each for each in found.record().owners if "shop/web" in each.owner)
    assert (owner.outcomes, owner.plugins) == ({"differs": 1}, {"NodeResourcesFit": 1})


def test_packing_places_one_more_pod_of_all() -> None:
    found = under(PACKED, REPLACE_ALL)
    assert found.figures is not None
    assert found.figures["new"]["placed"] == found.figures["old"]["placed"] + 1
    assert found.figures["new"]["cpu_fragmentation_pct"] < found.figures["old"]["cpu_fragmentation_pct"]
    assert [each.pod.name for each in found.pods if each.outcome == ONLY_NEW] == ["search-0"]


def test_a_node_that_the_new_configuration_refuses_is_said_with_its_reason() -> None:
    tainted = make_node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}], allocatable={"cpu": "8", "pods": "9"})
    objects = [tainted, make_node("small", allocatable={"cpu": "2", "pods": "9"}), make_pod("p", requests={"cpu": "1"})]
    ignoring = load_config(HEADER + TAINTS_IGNORED, "old.yaml", REGISTRY).config
    answer = compare(Sandbox(objects, ignoring, REGISTRY), Sandbox(objects, DEFAULT, REGISTRY))
    (found,) = answer.pods
    assert (found.old.node, found.new.node, found.outcome) == ("tainted", "small", REFUSED)
    assert found.reason is not None
    assert "taint" in found.reason


def test_the_sandboxes_are_left_as_they_were() -> None:
    old, new = (Sandbox(sample(), DEFAULT, REGISTRY) for _ in range(2))
    before = [state.cluster.resources._lines.view.tobytes() for state in (old, new)]
    for scope in (PENDING, RUNNING, REPLACE_ALL):
        compare(old, new, scope)
    assert [state.cluster.resources._lines.view.tobytes() for state in (old, new)] == before
