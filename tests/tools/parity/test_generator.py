"""Random clusters are reproducible, and cases survive being written to a folder."""

import json
from pathlib import Path

from tools.parity.case import Case, Decision, load_case, save_case
from tools.parity.gen_cluster import make_cluster
from tools.parity.gen_pods import THEMES
from tools.parity.report import REASONS, reasons_in


def _text(seed: int, index: int) -> str:
    return json.dumps(make_cluster(seed, index), default=vars, sort_keys=True)


def test_a_cluster_is_made_from_its_seed_and_index_alone() -> None:
    assert _text(3, 5) == _text(3, 5)
    assert _text(3, 5) != _text(3, 6)
    assert _text(3, 5) != _text(4, 5)


def test_twenty_clusters_have_every_theme() -> None:
    assert {make_cluster(1, index).theme for index in range(sum(THEMES.values()))} == set(THEMES)


def test_no_two_pods_of_one_node_and_priority_started_together() -> None:
    for index in range(20):
        started = [
            (plan.pod["spec"]["nodeName"], plan.pod["spec"].get("priority", 0), plan.pod["status"].get("startTime"))
            for plan in make_cluster(2, index).bound
        ]
        assert len(set(started)) == len(started)


def test_a_written_case_reads_back_as_it_was(tmp_path: Path) -> None:
    plan = make_cluster(1, 0)
    pod = {**plan.pending[0].plan.pod, "status": {"startTime": "2024-01-01T00:00:00Z"}}
    decision = Decision("unschedulable", message="0/1 nodes are available: 1 Too many pods.", victims=["a/v"])
    case = Case("1-0", "mixed", plan.objects, pod, plan.config, -1, decision, "1.36")
    save_case(case, tmp_path / "1-0", ["something"])
    assert load_case(tmp_path / "1-0") == case


def test_reasons_are_found_in_both_halves_of_a_message() -> None:
    message = (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
        "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims "
        "found for incoming pod."
    )
    assert reasons_in(message) == [
        "node(s) had untolerated taint(s)",
        "Insufficient",
        "Preemption is not helpful for scheduling",
        "No preemption victims found for incoming pod",
    ]
    assert set(reasons_in(message)) <= set(REASONS)
