"""Sets conditions in a status: one of each type; setting an equal one changes nothing."""

from __future__ import annotations

from podium.kube.json_object import JsonObject


def condition(status: JsonObject, kind: str) -> JsonObject | None:
    return next((each for each in status.get("conditions") or () if each["type"] == kind), None)


def without(status: JsonObject, kind: str) -> None:
    if "conditions" in status:
        status["conditions"] = [each for each in status["conditions"] if each["type"] != kind]
        if not status["conditions"]:
            del status["conditions"]


def put(status: JsonObject, new: JsonObject, *, keep_transition: bool = False) -> None:
    """Adds the condition at the end in place of the one of its type, unless status and reason are what they were.

    With `keep_transition` the time of the last change stays where the status did not change.
    """
    old = condition(status, new["type"])
    if old is not None and old["status"] == new["status"] and old.get("reason") == new.get("reason"):
        return
    if keep_transition and old is not None and old["status"] == new["status"]:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    status["conditions"] = [each for each in status.get("conditions") or () if each["type"] != new["type"]]
    status["conditions"].append(new)
