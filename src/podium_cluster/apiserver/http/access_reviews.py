"""Answers reviews of who may do what. This API has one user who may do everything, so they all have the same answer.

Components ask on start and kubectl asks before it prunes; they only need to hear yes.
"""

from typing import Any, Final

from podium_cluster.apiserver.kinds import Kind

_USER: Final = {"username": "podium:admin", "groups": ["system:masters", "system:authenticated"]}
_ALLOWED: Final = {"allowed": True}
_EVERYTHING: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_STATUS: Final[dict[str, dict[str, Any]]] = {
    "SelfSubjectAccessReview": _ALLOWED,
    "SubjectAccessReview": _ALLOWED,
    "LocalSubjectAccessReview": _ALLOWED,
    "SelfSubjectRulesReview": _EVERYTHING,
    "SelfSubjectReview": {"userInfo": _USER},
    "TokenReview": {"authenticated": True, "user": _USER},
}


def reviewed(kind: Kind, obj: dict[str, Any]) -> dict[str, Any] | None:
    """The answered review, or None where the kind is not one."""
    status = _STATUS.get(kind.kind)
    if status is None or not kind.group.startswith(("authentication", "authorization")):
        return None
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": obj.get("metadata") or {},
        **({"spec": obj["spec"]} if "spec" in obj else {}),
        "status": status,
    }
