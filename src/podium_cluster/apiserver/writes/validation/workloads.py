"""Validates Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs: selector, template, counts, what stays as it
was.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubecel.names import dns_label_errors
from podium.kube.meta import LabelSelector
from podium.kube.selector import compile_label_selector
from podium_cluster.apiserver.errors import field_forbidden, immutable, invalid_value, not_supported, required
from podium_cluster.apiserver.writes.validation.pod_spec import template
from podium_cluster.apiserver.writes.validation.wording import (
    Causes,
    Obj,
    amount,
    at_most_all,
    dns_label,
    int_or_percent,
    non_negative,
    selector,
    shown_selector,
    sorted_map,
)

MISMATCH: Final = "`selector` does not match template `labels`"
STATEFUL_SET_MAY_CHANGE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_SET_CHANGEABLE: Final = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)


def deployment(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from non_negative("spec.replicas", spec.get("replicas", 1))
    yield from _selector_and_template(spec, "deployment", "ReplicaSet")
    yield from _strategy("spec.strategy", spec.get("strategy") or {})
    ready = spec.get("minReadySeconds", 0)
    yield from non_negative("spec.minReadySeconds", ready)
    yield from non_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit", 0))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from non_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= ready:
            yield invalid_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def deployment_update(new: Obj, old: Obj) -> Causes:
    yield from deployment(new)
    yield from _same_selector(new, old)


def replica_set(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from non_negative("spec.replicas", spec.get("replicas", 1))
    yield from non_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    yield from _selector_and_template(spec, "deployment", "ReplicaSet")


def replica_set_update(new: Obj, old: Obj) -> Causes:
    yield from replica_set(new)
    yield from _same_selector(new, old)


def stateful_set(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = (spec.get("updateStrategy") or {}).get("type", "")
    if not strategy:
        yield required("spec.updateStrategy")
    elif strategy not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": strategy, "RollingUpdate": None}
        yield invalid_value("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    yield from non_negative("spec.replicas", spec.get("replicas", 1))
    yield from non_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    yield from non_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start", 0))
    if spec.get("serviceName"):
        yield from dns_label("spec.serviceName", spec["serviceName"])
    yield from _selector_and_template(_with_claimed_volumes(spec), "statefulset", "StatefulSet")


def stateful_set_update(new: Obj, old: Obj) -> Causes:
    yield from stateful_set(new)
    after, before = (_fixed_part(obj.get("spec") or {}) for obj in (new, old))
    if after != before:
        yield field_forbidden("spec", STATEFUL_SET_MAY_CHANGE)


def daemon_set(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    chosen, made = spec.get("selector"), spec.get("template") or {}
    yield from selector("spec.selector", chosen)
    if chosen is None or not _selects(chosen, made):
        yield invalid_value("spec.template.metadata.labels", _labels(made), MISMATCH)
    if chosen is not None and not (chosen.get("matchLabels") or chosen.get("matchExpressions")):
        yield invalid_value("spec.selector", shown_selector(chosen), "empty selector is invalid for daemonset")
    yield from template("spec.template", made)
    yield from _always("spec.template", made, "DaemonSet")
    yield from non_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    yield from _daemon_strategy("spec.updateStrategy", spec.get("updateStrategy") or {})
    yield from non_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit", 0))


def daemon_set_update(new: Obj, old: Obj) -> Causes:
    yield from _same_selector(new, old)
    yield from daemon_set(new)


def job(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    for name in (
        *("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"),
        *("backoffLimitPerIndex", "maxFailedIndexes"),
    ):
        yield from non_negative(f"spec.{name}", spec.get(name) or 0)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from _completion_mode(spec)
    made = spec.get("template") or {}
    yield from template("spec.template", made)
    yield from _job_restarts(spec, made)
    chosen = spec.get("selector")
    if chosen is None:
        yield required("spec.selector")
    yield from selector("spec.selector", chosen)
    if chosen is not None and not _selects(chosen, made):
        yield invalid_value("spec.template.metadata.labels", _labels(made), MISMATCH)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        name = obj["metadata"].get("name", "")
        last = f"{name}-{spec['completions'] - 1}"
        if dns_label_errors(last):
            detail = f"will not able to create pod with invalid DNS label: {last}"
            yield invalid_value("metadata.name", name, detail)


def job_update(new: Obj, old: Obj) -> Causes:
    yield from job(new)
    after, before = new.get("spec") or {}, old.get("spec") or {}
    if after.get("completionMode") != "Indexed":
        yield from _unchanged("spec.completions", after.get("completions"), before.get("completions"))
    elif after.get("completions") not in (None, before.get("completions"), after.get("parallelism")):
        detail = "can only be modified in tandem with spec.parallelism"
        yield invalid_value("spec.completions", after.get("completions"), detail)
    yield from _same_selector(new, old)
    if not before.get("suspend"):
        yield from _unchanged("spec.template", after.get("template"), before.get("template"))
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from _unchanged(f"spec.{name}", after.get(name), before.get(name))


def _completion_mode(spec: Obj) -> Causes:
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        yield not_supported("spec.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        if spec.get("completions") is None:
            yield required("spec.completions", "when completion mode is Indexed")
        return
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(name) is not None and mode in (None, "NonIndexed"):
            yield invalid_value(f"spec.{name}", spec[name], "requires indexed completion mode")


def _job_restarts(spec: Obj, made: Obj) -> Causes:
    field = "spec.template.spec.restartPolicy"
    policy = (made.get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        yield required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(field, policy, ("OnFailure", "Never"))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        yield invalid_value(field, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _selector_and_template(spec: Obj, kind: str, owner: str) -> Causes:
    chosen, made = spec.get("selector"), spec.get("template") or {}
    if chosen is None:  # selects nothing, and so not the template either
        yield required("spec.selector")
        yield invalid_value("spec.template.metadata.labels", _labels(made), MISMATCH)
    else:
        found = list(selector("spec.selector", chosen))
        yield from found
        if not (chosen.get("matchLabels") or chosen.get("matchExpressions")):
            yield invalid_value("spec.selector", shown_selector(chosen), f"empty selector is invalid for {kind}")
        elif found:
            detail = "invalid label selector" if kind == "deployment" else ""
            yield invalid_value("spec.selector", shown_selector(chosen), detail)
            return
        elif not _selects(chosen, made):
            yield invalid_value("spec.template.metadata.labels", _labels(made), MISMATCH)
    yield from template("spec.template", made)
    yield from _always("spec.template", made, owner)


def _always(path: str, made: Obj, owner: str) -> Causes:
    spec = made.get("spec") or {}
    if spec.get("restartPolicy", "") != "Always":
        yield not_supported(f"{path}.spec.restartPolicy", spec.get("restartPolicy", ""), ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {owner} is not Supported"
        yield field_forbidden(f"{path}.spec.activeDeadlineSeconds", detail)


def _strategy(path: str, strategy: Obj) -> Causes:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield field_forbidden(f"{path}.rollingUpdate", detail)
    elif kind == "RollingUpdate":
        if rolling is None:
            yield required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")
        else:
            yield from _rolling(f"{path}.rollingUpdate", rolling)
    else:
        shown = {"Type": kind, "RollingUpdate": rolling and _go_rolling(rolling)}
        yield not_supported(path, shown, ("Recreate", "RollingUpdate"))


def _go_rolling(rolling: Obj) -> dict[str, Any]:
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


def _rolling(path: str, rolling: Obj) -> Causes:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from int_or_percent(f"{path}.maxUnavailable", unavailable)
    yield from int_or_percent(f"{path}.maxSurge", surge)
    if amount(unavailable) == 0 and amount(surge) == 0:
        yield invalid_value(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(f"{path}.maxUnavailable", unavailable)


def _daemon_strategy(path: str, strategy: Obj) -> Causes:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": kind, "RollingUpdate": rolling and _go_rolling(rolling)}
        yield not_supported(path, shown, ("RollingUpdate", "OnDelete"))
    elif kind == "RollingUpdate" and rolling is None:
        yield required(f"{path}.rollingUpdate")
    elif kind == "RollingUpdate" and rolling is not None:
        unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
        for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
            yield from int_or_percent(f"{path}.rollingUpdate.{name}", value)
        for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
            yield from at_most_all(f"{path}.rollingUpdate.{name}", value)
        if amount(unavailable) and amount(surge):
            detail = "may not be set when maxUnavailable is non-zero"
            yield invalid_value(f"{path}.rollingUpdate.maxSurge", surge, detail)
        elif not amount(unavailable) and not amount(surge):
            yield required(f"{path}.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _same_selector(new: Obj, old: Obj) -> Causes:
    after, before = (shown_selector((obj.get("spec") or {}).get("selector")) for obj in (new, old))
    yield from _unchanged("spec.selector", after, before)


def _unchanged(field: str, after: Any, before: Any) -> Causes:
    if after != before:
        yield immutable(field, after)


def _selects(chosen: Obj, made: Obj) -> bool:
    selected = (made.get("metadata") or {}).get("labels") or {}
    try:
        return compile_label_selector(msgspec.convert(chosen, LabelSelector)).matches(selected)
    except (ValueError, msgspec.ValidationError):
        return True


def _labels(made: Obj) -> dict[str, Any] | None:
    return sorted_map((made.get("metadata") or {}).get("labels"))


def _with_claimed_volumes(spec: Obj) -> dict[str, Any]:
    """The template as its pods will have it: with a volume for every claim template."""
    made = spec.get("template") or {}
    inner = dict(made.get("spec") or {})
    inner.pop("hostname", None)
    inner.pop("subdomain", None)
    claimed = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for claim in spec.get("volumeClaimTemplates") or ()
        if (name := (claim.get("metadata") or {}).get("name"))
    ]
    if claimed:
        names = {volume["name"] for volume in claimed}
        inner["volumes"] = claimed + [each for each in inner.get("volumes") or () if each.get("name") not in names]
    return {**spec, "template": {**made, "spec": inner}}


def _fixed_part(spec: Obj) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_SET_CHANGEABLE}
