"""Prepares DaemonSets: an annotation counts the versions of their template, as older clients expect."""

from typing import Final

from kubecel.strconv import parse_int64
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules

GENERATION: Final = "deprecated.daemonset.template.generation"


def _prepare_for_create(obj: JsonObject, context: WriteContext) -> None:
    given = (obj["metadata"].get("annotations") or {}).get(GENERATION, "")
    _set(obj, max(parse_int64(given) or 1, 1))


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    before = parse_int64((old["metadata"].get("annotations") or {}).get(GENERATION, "")) or 1
    changed = (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
    _set(new, before + changed)


def _set(obj: JsonObject, generation: int) -> None:
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), GENERATION: str(generation)}


DAEMON_SET_RULES: Final = KindRules(
    prepare_for_create=_prepare_for_create,
    prepare_for_update=_prepare_for_update,
    generation=True,
    empty_status={
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
)
