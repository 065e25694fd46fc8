"""Prepares Nodes: who creates one may set its status too, as a kubelet does; podCIDR is the first of podCIDRs."""

from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules


def _prepare_for_create(node: JsonObject, context: WriteContext) -> None:
    _agree_on_cidrs(node)


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    _agree_on_cidrs(new)


def _agree_on_cidrs(node: JsonObject) -> None:
    spec = node.get("spec")
    if not spec:
        return
    if spec.get("podCIDR") and (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]


NODE_RULES: Final = KindRules(
    prepare_for_create=_prepare_for_create,
    prepare_for_update=_prepare_for_update,
    status_on_create=True,
    empty_status={},
)
