"""The Grafana board and the alerts on a real Prometheus that scrapes every process of Podium at work."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from deploy.grafana.board import TARGET, board, text

from docs.tables.metrics import metrics
from tests.deploy.traffic import Monitored, alert_rules, monitored
from tools.testbed import ControlPlane

PATIENCE = 240.0
LIMIT = re.compile(r"^(.*) [<>] [\d.]+$", re.DOTALL)
NAMES = re.compile(r"\b(?:scheduler|podium|rest_client|leader_election)_[a-z_]+")
PANELS: list[dict[str, Any]] = [panel for panel in board()["panels"] if panel["type"] != "row"]


@pytest.fixture(scope="module")
def at_work(prometheus_programs: None) -> Iterator[Monitored]:
    with ControlPlane() as plane, monitored(plane) as found:
        yield found


def test_every_panel_and_every_alert_finds_data(at_work: Monitored) -> None:
    """The two or three queries of a panel, and what an alert compares with its limit, each give numbers."""
    open_queries = {
        target["expr"].replace("$job", ".+").replace("$__rate_interval", "1m")
        for panel in PANELS
        for target in panel["targets"]
    }
    for rule in alert_rules():
        limited = LIMIT.match(rule["expr"])
        assert limited is not None, f"{rule['alert']} does not end with a limit"
        open_queries.add(limited[1])
    deadline = time.monotonic() + PATIENCE
    while open_queries and time.monotonic() < deadline:
        at_work.make_traffic()
        time.sleep(1)
        open_queries = {each for each in open_queries if not _numbers(at_work, each)}
    assert sorted(open_queries) == []


def _numbers(at_work: Monitored, query: str) -> list[float]:
    return [value for _, value in at_work.prometheus.query(query) if not math.isnan(value)]


def test_prometheus_evaluates_every_rule_and_one_fires(at_work: Monitored) -> None:
    deadline = time.monotonic() + PATIENCE
    while "firing" not in _states(at_work, "PodiumPluginRaises"):
        assert time.monotonic() < deadline, _states(at_work, "PodiumPluginRaises")
        at_work.make_traffic()
        time.sleep(1)
    rules = at_work.prometheus.rules()
    assert len(rules) == len(alert_rules())
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}


def _states(at_work: Monitored, alert: str) -> list[str]:
    [rule] = [each for each in at_work.prometheus.rules() if each["name"] == alert]
    return [each["state"] for each in rule["alerts"]]


def test_the_reference_has_every_metric_that_is_scraped(at_work: Monitored) -> None:
    listed = {metric.name for metric in metrics()}
    scraped = {labels["__name__"] for labels, _ in at_work.prometheus.query('{__name__=~"podium_.+|scheduler_.+"}')}
    assert scraped
    plain = {re.sub("_(bucket|sum|count)$", "", name) if name not in listed else name for name in scraped}
    assert plain - listed == set()


def test_the_board_is_what_its_program_writes() -> None:
    assert TARGET.read_text() == text(), "run python -m deploy.grafana.board"


def test_panels_do_not_overlap_and_have_titles() -> None:
    cells: dict[tuple[int, int], str] = {}
    for panel in board()["panels"]:
        at = panel["gridPos"]
        assert panel["title"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert cells.setdefault((x, y), panel["title"]) == panel["title"]
    titles = [panel["title"] for panel in board()["panels"]]
    assert len(titles) == len(set(titles))


def test_board_and_alerts_name_only_metrics_that_exist() -> None:
    written = json.dumps(board()) + json.dumps(alert_rules())
    names = {re.sub("_(bucket|sum|count)$", "", name) for name in NAMES.findall(written)}
    assert names <= {metric.name for metric in metrics()}
