"""What our own plugins declare holds: nothing else moves their answers, on the clusters of the parity runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from msgspec.structs import replace

from podium.framework import Plugin
from podium.kube import KINDS, Pod
from podium.plugins import load_registry
from podium.testing import try_declaration
from tools.parity.dice import Obj
from tools.parity.gen_cluster import make_cluster
from tools.parity.podium_side import decode_object

ADDRESS: Final = {"prometheusAddress": "http://prometheus"}
ARGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Peaks": {"watcherAddress": "http://watcher"},
    "MeasuredLoad": ADDRESS,
    "OnlineScore": ADDRESS,
    "NodeMetadata": {
        "metadataKey": "rank",
        "metadataSource": "Label",
        "metadataType": "Number",
        "scoringStrategy": "Highest",
    },
}
POINTS: Final = {"preFilter", "filter", "preScore", "score"}
OURS: Final = [plugin for plugin in load_registry().values() if plugin.points & POINTS]


def with_uid(written: Obj) -> Any:
    made = decode_object(written)
    return replace(made, metadata=replace(made.metadata, uid=made.key)) if isinstance(made, Pod) else made


def accusations(plugin: type[Plugin], seed: int) -> list[str]:
    plan = make_cluster(31, seed)
    written = [*plan.objects, *(each.pod for each in plan.bound)]
    objects = [with_uid(each) for each in written if (each["apiVersion"], each["kind"]) in KINDS]
    pods = [with_uid(each.plan.pod) for each in plan.pending[:3]]
    found = try_declaration(plugin, objects=objects, pods=pods, args=ARGS.get(plugin.name), seeds=[seed])
    return [str(each) for each in found]


@pytest.mark.parametrize("plugin", OURS, ids=lambda plugin: plugin.name)
def test_nothing_that_a_plugin_of_ours_does_not_declare_moves_its_answers(plugin: type[Plugin]) -> None:
    assert accusations(plugin, OURS.index(plugin)) == []


@pytest.mark.long
@pytest.mark.parametrize("plugin", OURS, ids=lambda plugin: plugin.name)
def test_nothing_undeclared_moves_the_answers_of_ours_in_many_worlds(plugin: type[Plugin]) -> None:
    assert [each for seed in range(12) for each in accusations(plugin, seed)] == []
