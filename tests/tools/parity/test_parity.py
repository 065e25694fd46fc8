"""A short comparison with the real kube-scheduler; `make parity` runs a long one."""

from pathlib import Path

import pytest

from tools.kit.real_rules import REAL_RULES
from tools.parity.case import Case, save_case
from tools.parity.compare import differences
from tools.parity.gen_cluster import make_cluster
from tools.parity.gen_groups import group_gates
from tools.parity.groups import GroupComparison, group_api
from tools.parity.podium_side import decide
from tools.parity.real_side import RealSide
from tools.testbed.build import MINOR
from tools.testbed.cluster import ControlPlane

SEED = 36
CLUSTERS = range(6)
GROUPS = 6


@pytest.mark.parametrize("index", CLUSTERS)
def test_podium_decides_as_kube_scheduler_does(index: int, empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    real = RealSide(empty_control_plane, MINOR)
    cases = [result for result in real.run(make_cluster(SEED, index, pod_count=6)) if isinstance(result, Case)]
    assert cases
    differing = []
    for case in cases:
        lines = differences(case, decide(case))
        if lines:
            save_case(case, tmp_path / case.name, lines)
            differing += [f"{tmp_path / case.name}:", *lines]
    assert differing == []


@pytest.mark.skipif(MINOR == "1.35", reason="groups of 1.35 are not scheduled together")
def test_podium_decides_about_pod_groups_as_kube_scheduler_does(testbed_programs: None) -> None:
    gates = dict.fromkeys(group_gates(REAL_RULES), True)
    with ControlPlane(feature_gates=gates, runtime_config={group_api(REAL_RULES): True}) as plane:
        comparison = GroupComparison(plane, SEED, verbose=False, rules=REAL_RULES)
        assert comparison.run(iter(range(2 * GROUPS)), GROUPS)
    assert comparison.cases == GROUPS
