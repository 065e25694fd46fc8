"""Persistent volumes: the time of the last change of phase is the server's to write."""

from typing import Final

from podium.apiserver.rules.rule import Context, Obj, Rules


def _prepare_for_create(volume: Obj, context: Context) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.now}


def _prepare_for_status(new: Obj, old: Obj, context: Context) -> None:
    status, before = new.get("status") or {}, old.get("status") or {}
    if status.get("phase") != before.get("phase"):
        status["lastPhaseTransitionTime"] = context.now
    elif "lastPhaseTransitionTime" not in status and "lastPhaseTransitionTime" in before:
        status["lastPhaseTransitionTime"] = before["lastPhaseTransitionTime"]


VOLUME_RULES: Final = Rules(
    prepare_for_create=_prepare_for_create, prepare_for_status=_prepare_for_status, returns_deleted=True
)
