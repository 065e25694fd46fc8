"""Checks what kinds that make pods share: selector, template, and what stays as it was; and the columns about them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from podium.kube.meta import LabelSelector
from podium.kube.selector import compile_label_selector
from podium_cluster.apiserver.errors import field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.kinds.pods.spec import template
from podium_cluster.apiserver.table_cells import CONTAINERS, IMAGES, SELECTOR
from podium_cluster.apiserver.validation.wording import (
    Causes,
    Obj,
    int_or_percent,
    selector,
    shown_selector,
    sorted_map,
    unchanged,
)

TEMPLATE_COLUMNS: Final = (CONTAINERS, IMAGES, SELECTOR)
_MISMATCH: Final = "`selector` does not match template `labels`"


def selector_and_template(spec: Obj, owner: str) -> Causes:
    """The selector must choose the pods of the template: a controller that does not see its pods makes more."""
    chosen, made = spec.get("selector") or {}, spec.get("template") or {}
    found = list(selector("spec.selector", chosen))
    yield from found
    if not (chosen.get("matchLabels") or chosen.get("matchExpressions")):
        yield required("spec.selector", "must choose the pods of the template")
    elif not found:
        yield from selects_template(chosen, made)
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


def selects_template(chosen: Obj, made: Obj) -> Causes:
    """Of a selector that can be read."""
    selected = (made.get("metadata") or {}).get("labels") or {}
    if not compile_label_selector(msgspec.convert(chosen, LabelSelector)).matches(selected):
        yield invalid_value("spec.template.metadata.labels", sorted_map(selected), _MISMATCH)


def rolling_update(path: str, strategy: Obj, other: str) -> Causes:
    """A strategy is a rolling update, whose amounts must be ones, or the `other` one."""
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate") or {}
    if kind not in (other, "RollingUpdate"):
        yield not_supported(f"{path}.type", kind, (other, "RollingUpdate"))
    for name in ("maxUnavailable", "maxSurge"):
        yield from int_or_percent(f"{path}.rollingUpdate.{name}", rolling.get(name, 0))


def default_rolling_update(strategy: dict[str, Any], **defaults: Any) -> None:
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy["rollingUpdate"] = defaults | strategy.get("rollingUpdate", {})
