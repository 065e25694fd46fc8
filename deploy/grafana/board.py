"""Writes the Grafana board, deploy/grafana/podium.json and its copy in the chart: rows of panels with their queries.

    python -m deploy.grafana.board

Metrics of kube-scheduler have its names, so the first rows work for a kube-scheduler as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

TARGET: Final = Path(__file__).parent / "podium.json"
IN_CHART: Final = Path(__file__).parents[1] / "helm" / "podium" / "files" / "dashboard.json"
WIDTH, HEIGHT, COLUMNS = 8, 8, 24
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
JOB: Final = 'job=~"$job"'


class Query(NamedTuple):
    """A PromQL expression, and what its lines are called."""

    expression: str
    legend: str


class Panel(NamedTuple):
    """A graph; `unit` is one of Grafana's."""

    title: str
    meaning: str
    unit: str
    queries: list[Query]


def rate(metric: str, labels: str = "") -> str:
    return f"rate({metric}{{{JOB}{',' if labels else ''}{labels}}}[$__rate_interval])"


def quantile(share: float, histogram: str, by: str = "", labels: str = "") -> str:
    grouped = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({grouped}) ({rate(f'{histogram}_bucket', labels)}))"


def total(metric: str, by: str) -> str:
    return f"sum by ({by}) ({metric}{{{JOB}}})"


def total_rate(metric: str, by: str = "", labels: str = "") -> str:
    return f"sum by ({by}) ({rate(metric, labels)})" if by else f"sum({rate(metric, labels)})"


ROWS: Final[dict[str, list[Panel]]] = {
    "Scheduling": [
        Panel(
            "Attempts",
            "Attempts to schedule a pod, by how they ended.",
            "ops",
            [Query(total_rate("scheduler_schedule_attempts_total", "result"), "{{result}}")],
        ),
        Panel(
            "From first try to binding",
            "How long pods waited from when they could first be tried until they were bound.",
            "s",
            [
                Query(quantile(share, "scheduler_pod_scheduling_sli_duration_seconds"), name)
                for share, name in ((0.5, "half"), (0.99, "99 %"))
            ],
        ),
        Panel(
            "Time of an attempt",
            "99 % of attempts took less, binding included; and choosing a node alone.",
            "s",
            [
                Query(quantile(0.99, "scheduler_scheduling_attempt_duration_seconds", "result"), "{{result}}"),
                Query(quantile(0.99, "scheduler_scheduling_algorithm_duration_seconds"), "choosing a node"),
            ],
        ),
    ],
    "Queue": [
        Panel(
            "Waiting pods",
            "By the part of the queue they are in.",
            "short",
            [Query(total("scheduler_pending_pods", "queue"), "{{queue}}")],
        ),
        Panel(
            "Why they wait",
            "Pods that a plugin turned away; one pod counts for each plugin that did.",
            "short",
            [Query(total("scheduler_unschedulable_pods", "plugin"), "{{plugin}}")],
        ),
        Panel(
            "What brings pods into the queue",
            "By the event that did.",
            "ops",
            [Query(total_rate("scheduler_queue_incoming_pods_total", "queue, event"), "{{queue}}: {{event}}")],
        ),
        Panel(
            "Preemption",
            "Attempts to make room, and pods evicted for it.",
            "ops",
            [
                Query(total_rate("scheduler_preemption_attempts_total"), "attempts"),
                Query(total_rate("scheduler_preemption_victims_sum"), "victims"),
            ],
        ),
        Panel(
            "Waits at Permit",
            "99 % of pods that a plugin held waited less.",
            "s",
            [Query(quantile(0.99, "scheduler_permit_wait_duration_seconds", "result"), "{{result}}")],
        ),
        Panel(
            "Pods and nodes",
            "What the scheduler knows of.",
            "short",
            [Query(total("scheduler_cache_size", "type"), "{{type}}")],
        ),
    ],
    "Plugins": [
        Panel(
            "Time at extension points",
            "99 % of attempts spent less there.",
            "s",
            [
                Query(
                    quantile(0.99, "scheduler_framework_extension_point_duration_seconds", "extension_point"),
                    "{{extension_point}}",
                )
            ],
        ),
        Panel(
            "Time of plugins",
            "The ten that take most: seconds of their calls, in sampled attempts.",
            "s",
            [
                Query(
                    f"topk(10, {total_rate('scheduler_plugin_execution_duration_seconds_sum', 'plugin')}"
                    f" / {total_rate('scheduler_plugin_execution_duration_seconds_count', 'plugin')})",
                    "{{plugin}}",
                )
            ],
        ),
        Panel(
            "Plugins that fail or block",
            "Exceptions a second; and the share of time for which calls over 100 ms held the process up.",
            "short",
            [
                Query(
                    total_rate("podium_plugin_failures_total", "plugin, extension_point"),
                    "{{plugin}} raises in {{extension_point}}",
                ),
                Query(
                    total_rate("podium_plugin_blocked_seconds_total", "plugin, method"),
                    "{{plugin}} blocks in {{method}}",
                ),
            ],
        ),
    ],
    "Answer cache": [
        Panel(
            "Decisions from cached answers",
            "The share; all others asked every plugin about every node.",
            "percentunit",
            [
                Query(
                    f"{total_rate('podium_answer_cache_decisions_total')}"
                    f" / {total_rate('scheduler_scheduling_algorithm_duration_seconds_count')}",
                    "share",
                )
            ],
        ),
        Panel(
            "Size of the cache",
            "Memory that cached answers take, about.",
            "bytes",
            [Query(total("podium_answer_cache_bytes", "instance"), "{{instance}}")],
        ),
        Panel(
            "Entries and errors",
            "Signatures with cached answers; exceptions in the cache, after which pods are decided without it.",
            "short",
            [
                Query(total("podium_answer_cache_entries", "instance"), "{{instance}} entries"),
                Query(total("podium_answer_cache_errors_total", "instance"), "{{instance}} errors"),
            ],
        ),
    ],
    "Measured load": [
        Panel(
            "Age of the newest value",
            "Values that are too old do not count in decisions.",
            "s",
            [Query(f"max by (source, query) (podium_load_age_seconds{{{JOB}}})", "{{query}}")],
        ),
        Panel(
            "Refreshes that failed",
            "The share; the log says why.",
            "percentunit",
            [
                Query(
                    f"{total_rate('podium_load_refresh_failures_total', 'query')}"
                    f" / {total_rate('podium_load_refreshes_total', 'query')}",
                    "{{query}}",
                )
            ],
        ),
        Panel(
            "Nodes with a value",
            "And what became of the samples of the last answer.",
            "short",
            [
                Query(f"max by (query) (podium_load_nodes{{{JOB}}})", "{{query}}"),
                Query(f"max by (query, outcome) (podium_load_samples{{{JOB}}})", "{{query}}: {{outcome}}"),
            ],
        ),
    ],
    "Promises (QosAware)": [
        Panel(
            "QoS against SLO",
            "The ten controllers nearest to breaking their promise: how far they are above it.",
            "percentunit",
            [
                Query(
                    f"bottomk(10, max by (controller) (podium_qos{{{JOB}}})"
                    f" - max by (controller) (podium_qos_slo{{{JOB}}}))",
                    "{{controller}}",
                )
            ],
        ),
        Panel(
            "Seconds until a promise is broken",
            "Below 0: seconds that a controller lacks.",
            "s",
            [Query(f"bottomk(10, max by (controller) (podium_qos_metric_seconds{{{JOB}}}))", "{{controller}}")],
        ),
        Panel(
            "Broken promises",
            "Controllers below their SLO, of the hundred nearest to it.",
            "short",
            [Query(f"sum(max by (controller) (podium_qos_metric_seconds{{{JOB}}}) < bool 0)", "controllers")],
        ),
    ],
    "Shadow and trained policies": [
        Panel(
            "Shadow: compared with the scheduler in charge",
            "Decisions by outcome: same, tie, differs, refused, only one of the two.",
            "ops",
            [Query(total_rate("podium_shadow_comparisons_total", "outcome"), "{{outcome}}")],
        ),
        Panel(
            "LearnedScore: who decided",
            "The model, or the fallback and why.",
            "ops",
            [Query(total_rate("podium_learned_decisions_total", "profile, source"), "{{profile}}: {{source}}")],
        ),
        Panel(
            "LearnedScore: late or failed answers",
            "The share of the last 1,000; and how many a second took longer than the deadline.",
            "short",
            [
                Query(f"max by (profile) (podium_learned_bad_ratio{{{JOB}}})", "{{profile}} share"),
                Query(total_rate("podium_learned_overruns_total", "profile"), "{{profile}} overruns"),
            ],
        ),
        Panel(
            "LearnedScore: drift",
            "The distance, 0 to 1, of the pods seen from those of the training.",
            "percentunit",
            [Query(f"max by (profile) (podium_learned_drift{{{JOB}}})", "{{profile}}")],
        ),
        Panel(
            "OnlineScore: who decided",
            "The model, or the fallback and why.",
            "ops",
            [Query(total_rate("podium_online_decisions_total", "profile, source"), "{{profile}}: {{source}}")],
        ),
        Panel(
            "OnlineScore: rewards to come",
            "Placements that wait for their reward.",
            "short",
            [Query(f"sum by (profile) (podium_online_waiting{{{JOB}}})", "{{profile}}")],
        ),
    ],
    "Extender and controllers": [
        Panel(
            "Requests to the extender",
            "By agent, verb and outcome.",
            "ops",
            [
                Query(
                    total_rate("podium_extender_requests_total", "agent, verb, outcome"),
                    "{{agent}} {{verb}}: {{outcome}}",
                )
            ],
        ),
        Panel(
            "Time of a request to the extender",
            "99 % took less.",
            "s",
            [Query(quantile(0.99, "podium_extender_request_duration_seconds", "agent, verb"), "{{agent}} {{verb}}")],
        ),
        Panel(
            "Custom resources looked at",
            "By controller and by what came of it.",
            "ops",
            [
                Query(
                    total_rate("podium_controller_reconciles_total", "controller, result"),
                    "{{controller}}: {{result}}",
                )
            ],
        ),
    ],
    "Process": [
        Panel(
            "Requests to the API server",
            "By answer.",
            "ops",
            [Query(total_rate("rest_client_requests_total", "code"), "{{code}}")],
        ),
        Panel(
            "Time of requests",
            "99 % began to be answered earlier.",
            "s",
            [Query(quantile(0.99, "rest_client_request_duration_seconds", "verb"), "{{verb}}")],
        ),
        Panel(
            "Watches",
            "Begun again, and collections that can be neither listed nor watched.",
            "short",
            [
                Query(total_rate("podium_watch_restarts_total", "resource"), "{{resource}} begun again"),
                Query(f"max by (resource) (podium_watch_trouble{{{JOB}}})", "{{resource}} in trouble"),
            ],
        ),
        Panel(
            "CPU",
            "Cores.",
            "short",
            [Query(total_rate("process_cpu_seconds_total", "job, instance"), "{{job}} {{instance}}")],
        ),
        Panel(
            "Memory",
            "Resident.",
            "bytes",
            [Query(total("process_resident_memory_bytes", "job, instance"), "{{job}} {{instance}}")],
        ),
        Panel(
            "Who leads, and which version",
            "1: leads.",
            "short",
            [
                Query(f"max by (name, instance) (leader_election_master_status{{{JOB}}})", "{{name}} {{instance}}"),
                Query(f"max by (version, python) (podium_build_info{{{JOB}}})", "version {{version}}"),
            ],
        ),
    ],
}


def board() -> dict[str, Any]:
    """The whole board as Grafana reads it."""
    return {
        "title": "Podium",
        "uid": "podium",
        "tags": ["podium", "kubernetes", "scheduler"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_data_source_variable(), _job_variable()]},
        "panels": _panels(),
    }


def _panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        panels.append(_placed({"type": "row", "title": title, "collapsed": False, "panels": []}, 0, top, COLUMNS, 1))
        top += 1
        for number, panel in enumerate(row):
            line, column = divmod(number, COLUMNS // WIDTH)
            panels.append(_placed(_graph(panel), column * WIDTH, top + line * HEIGHT, WIDTH, HEIGHT))
        top += -(-len(row) * WIDTH // COLUMNS) * HEIGHT
    return [{"id": number, **panel} for number, panel in enumerate(panels, start=1)]


def _placed(panel: dict[str, Any], x: int, y: int, width: int, height: int) -> dict[str, Any]:
    return {**panel, "gridPos": {"x": x, "y": y, "w": width, "h": height}}


def _graph(panel: Panel) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.meaning,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": {"fillOpacity": 8}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": letter, "datasource": SOURCE, "expr": query.expression, "legendFormat": query.legend}
            for letter, query in zip("ABCDEF", panel.queries, strict=False)
        ],
    }


def _data_source_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _job_variable() -> dict[str, Any]:
    return {
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": "label_values(podium_build_info, job)", "refId": "jobs"},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": "All", "value": "$__all"},
    }


def text() -> str:
    return json.dumps(board(), indent=2) + "\n"


if __name__ == "__main__":
    for file in (TARGET, IN_CHART):
        file.write_text(text())
