"""Checks what kinds that make pods share: selector, template, and what stays as it was; and the columns about them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from podium.kube.meta import LabelSelector
from podium.kube.selector import compile_label_selector
from podium_cluster.apiserver.errors import field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.kinds.pods.spec import template
from podium_cluster.apiserver.table_cells import CONTAINERS, IMAGES, SELECTOR
from podium_cluster.apiserver.validation.wording import Causes, Obj, selector, shown_selector, sorted_map, unchanged

TEMPLATE_COLUMNS: Final = (CONTAINERS, IMAGES, SELECTOR)
MISMATCH: Final = "`selector` does not match template `labels`"


def selector_and_template(spec: Obj, kind: str, owner: str) -> Causes:
    chosen, made = spec.get("selector"), spec.get("template") or {}
    if chosen is None:  # selects nothing, and so not the template either
        yield required("spec.selector")
        yield invalid_value("spec.template.metadata.labels", template_labels(made), MISMATCH)
    else:
        found = list(selector("spec.selector", chosen))
        yield from found
        if not (chosen.get("matchLabels") or chosen.get("matchExpressions")):
            yield invalid_value("spec.selector", shown_selector(chosen), f"empty selector is invalid for {kind}")
        elif found:
            detail = "invalid label selector" if kind == "deployment" else ""
            yield invalid_value("spec.selector", shown_selector(chosen), detail)
            return
        elif not selects(chosen, made):
            yield invalid_value("spec.template.metadata.labels", template_labels(made), MISMATCH)
    yield from template("spec.template", made)
    yield from always_restarted("spec.template", made, owner)


def always_restarted(path: str, made: Obj, owner: str) -> Causes:
    spec = made.get("spec") or {}
    if spec.get("restartPolicy", "") != "Always":
        yield not_supported(f"{path}.spec.restartPolicy", spec.get("restartPolicy", ""), ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {owner} is not Supported"
        yield field_forbidden(f"{path}.spec.activeDeadlineSeconds", detail)


def same_selector(new: Obj, old: Obj) -> Causes:
    after, before = (shown_selector((obj.get("spec") or {}).get("selector")) for obj in (new, old))
    yield from unchanged("spec.selector", after, before)


def selects(chosen: Obj, made: Obj) -> bool:
    selected = (made.get("metadata") or {}).get("labels") or {}
    try:
        return compile_label_selector(msgspec.convert(chosen, LabelSelector)).matches(selected)
    except (ValueError, msgspec.ValidationError):
        return True


def template_labels(made: Obj) -> dict[str, Any] | None:
    return sorted_map((made.get("metadata") or {}).get("labels"))


def go_rolling(rolling: Obj) -> dict[str, Any]:
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


def default_rolling_update(strategy: dict[str, Any], **defaults: Any) -> None:
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy["rollingUpdate"] = defaults | strategy.get("rollingUpdate", {})
