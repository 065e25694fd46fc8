"""Jobs: the server makes the selector and labels that tie pods to their job, unless it selects by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubecel.names import dns_label_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import invalid_value, not_supported, required
from podium_cluster.apiserver.kind import STATUS, Defaults, Fields, FieldValues, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.pod_templates import (
    TEMPLATE_COLUMNS,
    same_selector,
    selects_template,
)
from podium_cluster.apiserver.kinds.pods.defaults import POD_DEFAULTS
from podium_cluster.apiserver.kinds.pods.spec import template
from podium_cluster.apiserver.table_cells import (
    AGE,
    NAME,
    Cells,
    KindTable,
    TableColumn,
    age,
    condition,
    container_cells,
    human_duration,
    instant,
    selector_cell,
)
from podium_cluster.apiserver.validation.wording import Causes, Obj, non_negative, selector, unchanged
from podium_cluster.apiserver.write_context import WriteContext

_PREFIX: Final = "batch.kubernetes.io/"
_COLUMNS: Final = (
    NAME,
    TableColumn("Status", "What the job is doing."),
    TableColumn("Completions", "How many of the wanted pods have succeeded."),
    TableColumn("Duration", "How long the job took, or is taking."),
    AGE,
    *TEMPLATE_COLUMNS,
)
# The first that holds is the job's status.
_ENDS: Final = (("Complete", "Complete"), ("Failed", "Failed"))
_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _field_values(obj: dict[str, Any]) -> FieldValues:
    return (str((obj.get("status") or {}).get("succeeded", 0)),)


def _job_defaults(job: dict[str, Any]) -> None:
    labels = job.get("spec", {}).get("template", {}).get("metadata", {}).get("labels")
    if labels:
        job["metadata"].setdefault("labels", dict(labels))


def _spec_defaults(spec: dict[str, Any]) -> None:
    if "parallelism" not in spec:
        spec["parallelism"] = 1
        spec.setdefault("completions", 1)
    spec.setdefault("backoffLimit", (1 << 31) - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")


def _prepare_for_create(job: JsonObject, context: WriteContext) -> None:
    spec = job.setdefault("spec", {})
    if spec.get("manualSelector"):
        return
    metadata, template = job["metadata"], spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    shared = metadata.get("labels") == labels  # labels of the job that were taken over from its pods
    for name, value in (("controller-uid", metadata["uid"]), ("job-name", metadata.get("name", ""))):
        labels.setdefault(f"{_PREFIX}{name}", value)
        labels.setdefault(name, value)
    if shared or not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {})[f"{_PREFIX}controller-uid"] = metadata["uid"]


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    for name in ("parallelism", "completions"):
        yield from non_negative(f"spec.{name}", spec.get(name) or 0)
    mode, made, chosen = spec.get("completionMode"), spec.get("template") or {}, spec.get("selector") or {}
    if mode not in (None, "NonIndexed", "Indexed"):
        yield not_supported("spec.completionMode", mode, ("NonIndexed", "Indexed"))
    elif mode == "Indexed" and spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
    yield from template("spec.template", made)
    policy = (made.get("spec") or {}).get("restartPolicy", "")
    if policy not in ("OnFailure", "Never"):
        yield not_supported("spec.template.spec.restartPolicy", policy, ("OnFailure", "Never"))
    found = list(selector("spec.selector", chosen)) if chosen else [required("spec.selector")]
    yield from found or selects_template(chosen, made)
    if mode == "Indexed" and (spec.get("completions") or 0) > 0:
        name = obj["metadata"].get("name", "")
        last = f"{name}-{spec['completions'] - 1}"
        if dns_label_errors(last):
            yield invalid_value("metadata.name", name, f"will not able to create pod with invalid DNS label: {last}")


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from _check(new)
    after, before = new.get("spec") or {}, old.get("spec") or {}
    yield from same_selector(new, old)
    if not before.get("suspend"):
        yield from unchanged("spec.template", after.get("template"), before.get("template"))
    yield from unchanged("spec.completionMode", after.get("completionMode"), before.get("completionMode"))


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        _status(obj),
        _completions(obj),
        _duration(obj, now),
        age(obj, now),
        *container_cells(spec.get("template")),
        selector_cell(spec.get("selector")),
    ]


def _status(obj: JsonObject) -> str:
    conditions = (obj.get("status") or {}).get("conditions")
    for kind, word in _ENDS:
        if condition(conditions, kind) == "True":
            return word
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in _STATES if condition(conditions, kind) == "True"), "Running")


def _completions(obj: JsonObject) -> str:
    spec, succeeded = obj.get("spec") or {}, (obj.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: JsonObject, now: datetime) -> str:
    status = obj.get("status") or {}
    if not status.get("startTime"):
        return ""
    end = instant(status["completionTime"]) if status.get("completionTime") else now
    return human_duration((end - instant(status["startTime"])).total_seconds())


JOB_DEFAULTS: Final = POD_DEFAULTS | Defaults(
    {
        "batch.v1.JobSpec": {"completionMode": "NonIndexed", "suspend": False, "manualSelector": False},
        "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    },
    {"batch.v1.Job": _job_defaults, "batch.v1.JobSpec": _spec_defaults},
)
JOB: Final = KindRecord(
    built_in_kind(
        "batch/v1",
        "Job jobs",
        STATUS,
        categories="all",
        fields=Fields(("status.successful",), _field_values),
        defaults=JOB_DEFAULTS,
    ),
    KindRules(
        prepare_for_create=_prepare_for_create,
        validate=_check,
        validate_update=_check_update,
        generation="spec",
        empty_status={},
    ),
    KindTable(_COLUMNS, _cells),
)
