"""Each alert fires when it should and only then, as promtool sees it; and it has a section in the runbook."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import yaml

from tests.deploy.traffic import ALERTS, alert_rules
from tools.testbed.build import MEASURED_LOAD, programs

RUNBOOK = Path(__file__).parents[2] / "docs" / "how-to" / "runbook.md"
NOW = "75m"


class Case(NamedTuple):
    """What an alert says, series with which it fires and with which not (one value a minute), its labels."""

    says: str
    fires: dict[str, str]
    silent: dict[str, str]
    labels: Mapping[str, str] = MappingProxyType({})


BUSY = "0+60x90"
STILL = "0x90"
PROCESS = {"job": "podium", "instance": "a"}
QUERY = {"source": "prometheus", "query": "wear"}
_OF = '{job="podium",instance="a"}'
_BY = '{source="prometheus",query="wear"}'

CASES = {
    "PodiumIsAbsent": Case("Prometheus scrapes no process of Podium", {"other": "1x90"}, {"podium_build_info": "1x90"}),
    "PodiumHasNoLeader": Case(
        "no replica holds the lease l",
        {'leader_election_master_status{name="l",instance="a"}': STILL},
        {
            'leader_election_master_status{name="l",instance="a"}': STILL,
            'leader_election_master_status{name="l",instance="b"}': "1x90",
        },
        {"name": "l"},
    ),
    "PodiumRestartsOften": Case(
        "a has started 29 times in 30 minutes",
        {f"process_start_time_seconds{_OF}": "0+1x90", f"podium_build_info{_OF}": "1x90"},
        {f"process_start_time_seconds{_OF}": "5x90", f"podium_build_info{_OF}": "1x90"},
        PROCESS,
    ),
    "PodiumPodsWaitLong": Case(
        "one pod in a hundred waits 2m 38s for its binding",
        {
            'scheduler_pod_scheduling_sli_duration_seconds_bucket{le="40"}': STILL,
            'scheduler_pod_scheduling_sli_duration_seconds_bucket{le="160"}': BUSY,
            'scheduler_pod_scheduling_sli_duration_seconds_bucket{le="+Inf"}': BUSY,
        },
        {
            'scheduler_pod_scheduling_sli_duration_seconds_bucket{le="40"}': BUSY,
            'scheduler_pod_scheduling_sli_duration_seconds_bucket{le="+Inf"}': BUSY,
        },
    ),
    "PodiumPodsFitNowhere": Case(
        "3 pods have fitted no node for an hour",
        {'scheduler_pending_pods{job="podium",queue="unschedulable"}': "3x90"},
        {'scheduler_pending_pods{job="podium",queue="active"}': "3x90"},
        {"job": "podium"},
    ),
    "PodiumAttemptsFail": Case(
        "10% of attempts to schedule a pod end with an error",
        {
            'scheduler_schedule_attempts_total{result="error"}': "0+10x90",
            'scheduler_schedule_attempts_total{result="scheduled"}': "0+90x90",
        },
        {'scheduler_schedule_attempts_total{result="scheduled"}': BUSY},
    ),
    "PodiumPluginRaises": Case(
        "P raises exceptions at filter",
        {'podium_plugin_failures_total{plugin="P",extension_point="filter"}': "0+1x90"},
        {'podium_plugin_failures_total{plugin="P",extension_point="filter"}': "7x90"},
        {"plugin": "P", "extension_point": "filter"},
    ),
    "PodiumPluginBlocks": Case(
        "P.score holds the process up for 10% of the time",
        {'podium_plugin_blocked_seconds_total{plugin="P",method="score"}': "0+6x90"},
        {'podium_plugin_blocked_seconds_total{plugin="P",method="score"}': "0+1x90"},
        {"plugin": "P", "method": "score"},
    ),
    "PodiumCannotWatch": Case(
        "a can neither list nor watch pods",
        {'podium_watch_trouble{job="podium",instance="a",resource="pods"}': "1x90"},
        {'podium_watch_trouble{job="podium",instance="a",resource="pods"}': "0 1 0 1 0x90"},
        {**PROCESS, "resource": "pods"},
    ),
    "PodiumApiRequestsFail": Case(
        "10% of the requests of a to the API server fail",
        {
            'rest_client_requests_total{job="podium",instance="a",code="500"}': "0+10x90",
            'rest_client_requests_total{job="podium",instance="a",code="200"}': "0+90x90",
        },
        {
            'rest_client_requests_total{job="podium",instance="a",code="409"}': "0+10x90",
            'rest_client_requests_total{job="podium",instance="a",code="200"}': "0+90x90",
        },
        PROCESS,
    ),
    "PodiumEventsDropped": Case(
        "a could not send 30 events",
        {f"podium_events_dropped_total{_OF}": "0+1x90"},
        {f"podium_events_dropped_total{_OF}": "4x90"},
        PROCESS,
    ),
    "PodiumAnswerCacheFails": Case(
        "a decides pods without the answer cache, after exceptions in it",
        {f"podium_answer_cache_errors_total{_OF}": "0+1x90"},
        {f"podium_answer_cache_errors_total{_OF}": "4x90"},
        PROCESS,
    ),
    "PodiumMeasuredLoadIsOld": Case(
        "the newest value of wear is 1h 15m 0s old",
        {f"podium_load_age_seconds{_BY}": "0+60x90"},
        {f"podium_load_age_seconds{_BY}": "20x90"},
        QUERY,
    ),
    "PodiumMeasuredLoadFails": Case(
        "prometheus does not answer wear",
        {f"podium_load_trouble{_BY}": "1x90"},
        {f"podium_load_trouble{_BY}": STILL},
        QUERY,
    ),
    "PodiumPromisesBroken": Case(
        "controllers below their SLO: 1",
        {'podium_qos_metric_seconds{controller="shop/web"}': "-5x90"},
        {'podium_qos_metric_seconds{controller="shop/web"}': "5x90"},
    ),
    "PodiumShadowRefuses": Case(
        "the scheduler in charge chose nodes that Podium's filters refuse",
        {'podium_shadow_comparisons_total{outcome="refused"}': "0+1x90"},
        {'podium_shadow_comparisons_total{outcome="same"}': BUSY},
    ),
    "PodiumModelFallsBack": Case(
        "the fallback decides 100% of the pods of gpu",
        {'podium_learned_decisions_total{profile="gpu",source="deadline"}': BUSY},
        {'podium_learned_decisions_total{profile="gpu",source="model"}': BUSY},
        {"profile": "gpu"},
    ),
    "PodiumModelDemoted": Case(
        "the model of gpu was found to do badly and no longer decides",
        {'podium_learned_demotions_total{profile="gpu"}': "0x60 1x30"},
        {'podium_learned_demotions_total{profile="gpu"}': "1x90"},
        {"profile": "gpu"},
    ),
    "PodiumExtenderFails": Case(
        "10% of the filter requests to safe fail",
        {
            'podium_extender_requests_total{agent="safe",verb="filter",outcome="failed"}': "0+10x90",
            'podium_extender_requests_total{agent="safe",verb="filter",outcome="answered"}': "0+90x90",
        },
        {'podium_extender_requests_total{agent="safe",verb="filter",outcome="answered"}': BUSY},
        {"agent": "safe", "verb": "filter"},
    ),
    "PodiumControllerFails": Case(
        "the controller podgroup fails for 10% of what it looks at",
        {
            'podium_controller_reconciles_total{controller="podgroup",result="failed"}': "0+10x90",
            'podium_controller_reconciles_total{controller="podgroup",result="written"}': "0+90x90",
        },
        {'podium_controller_reconciles_total{controller="podgroup",result="unchanged"}': BUSY},
        {"controller": "podgroup"},
    ),
}


def test_every_alert_has_a_case() -> None:
    assert sorted(CASES) == sorted(rule["alert"] for rule in alert_rules())


def test_promtool_agrees_that_each_fires_and_is_silent(prometheus_programs: None, tmp_path: Path) -> None:
    tests = [test for rule in alert_rules() for test in _tests(rule, CASES[rule["alert"]])]
    file = tmp_path / "alerts.test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}))
    promtool = programs(*MEASURED_LOAD)["promtool"]
    for command in (["check", "rules", str(ALERTS)], ["test", "rules", str(file)]):
        ran = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def _tests(rule: dict[str, Any], case: Case) -> list[dict[str, Any]]:
    alert = {
        "exp_labels": {"severity": rule["labels"]["severity"], **case.labels},
        "exp_annotations": {"summary": case.says, "runbook": rule["annotations"]["runbook"]},
    }
    return [_test(rule["alert"], case.fires, [alert]), _test(rule["alert"], case.silent, [])]


def _test(alert: str, series: dict[str, str], expected: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": f"{alert} {'fires' if expected else 'is silent'}",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": NOW, "alertname": alert, "exp_alerts": expected}],
    }


@pytest.mark.parametrize("rule", alert_rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_has_a_section_in_the_runbook(rule: dict[str, Any]) -> None:
    assert rule["annotations"]["runbook"] == f"docs/how-to/runbook.md#{rule['alert'].lower()}"
    assert rule["annotations"]["summary"]
    assert re.search(rf"^## {rule['alert']}$", RUNBOOK.read_text(), re.MULTILINE)
