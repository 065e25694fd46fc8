"""ServiceAccounts, roles and their bindings, and reviews of who may do what.

This API has one user who may do everything, so all reviews have the same answer. Components ask on start and kubectl
asks before it prunes; they only need to hear yes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import ONLY_CREATE, Defaults, Kind, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age, name_and_age, wide

_USER: Final = {"username": "podium:admin", "groups": ["system:masters", "system:authenticated"]}
_ALLOWED: Final = {"allowed": True}
_EVERYTHING: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "SelfSubjectAccessReview": _ALLOWED,
    "SubjectAccessReview": _ALLOWED,
    "LocalSubjectAccessReview": _ALLOWED,
    "SelfSubjectRulesReview": _EVERYTHING,
    "SelfSubjectReview": {"userInfo": _USER},
    "TokenReview": {"authenticated": True, "user": _USER},
}
_RBAC: Final = "rbac.authorization.k8s.io"


def reviewed(kind: Kind, obj: dict[str, Any]) -> dict[str, Any] | None:
    """The answered review, or None where the kind is not one."""
    status = _ANSWERS.get(kind.kind)
    if status is None or not kind.group.startswith(("authentication", "authorization")):
        return None
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": obj.get("metadata") or {},
        **({"spec": obj["spec"]} if "spec" in obj else {}),
        "status": status,
    }


def _role_reference(reference: dict[str, Any]) -> None:
    reference["apiGroup"] = reference.get("apiGroup") or _RBAC


def _subject(subject: dict[str, Any]) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject.setdefault("apiGroup", _RBAC)


def _binding_columns(kind: str) -> tuple[TableColumn, ...]:
    return (
        NAME,
        TableColumn("Role", "The role that is given."),
        AGE,
        wide("Users", f"The users of the {kind}."),
        wide("Groups", f"The groups of the {kind}."),
        wide("ServiceAccounts", f"The service accounts of the {kind}."),
    )


def _binding(obj: JsonObject, now: datetime) -> Cells:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    users, groups = (
        ", ".join(each["name"] for each in subjects if each.get("kind") == kind) for kind in ("User", "Group")
    )
    accounts = (
        f"{each.get('namespace', '')}/{each['name']}" for each in subjects if each.get("kind") == "ServiceAccount"
    )
    given = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [obj["metadata"]["name"], given, age(obj, now), users, groups, ", ".join(accounts)]


_ROLE_DEFAULTS: Final = Defaults(rules={"rbac.v1.RoleRef": _role_reference, "rbac.v1.Subject": _subject})
_ROLE_RULES: Final = KindRules(update_creates=True)


def _role(names: str, *, cluster: bool = False, table: KindTable | None = None) -> KindRecord:
    where = "rbac.authorization.k8s.io/v1"
    return KindRecord(built_in_kind(where, names, cluster=cluster, defaults=_ROLE_DEFAULTS), _ROLE_RULES, table)


SERVICE_ACCOUNT: Final = KindRecord(
    built_in_kind("v1", "ServiceAccount serviceaccounts", short="sa"),
    KindRules(returns_deleted=True),
    KindTable((NAME, AGE), name_and_age),
)
ROLES: Final = (
    _role(
        "ClusterRoleBinding clusterrolebindings",
        cluster=True,
        table=KindTable(_binding_columns("cluster role binding"), _binding),
    ),
    _role("ClusterRole clusterroles", cluster=True),
    _role("RoleBinding rolebindings", table=KindTable(_binding_columns("role binding"), _binding)),
    _role("Role roles"),
)


def _review(where: str, names: str, *, cluster: bool = True) -> KindRecord:
    return KindRecord(built_in_kind(where, names, cluster=cluster, verbs=ONLY_CREATE))


REVIEWS: Final = (
    _review("authentication.k8s.io/v1", "SelfSubjectReview selfsubjectreviews"),
    _review("authentication.k8s.io/v1", "TokenReview tokenreviews"),
    _review("authorization.k8s.io/v1", "LocalSubjectAccessReview localsubjectaccessreviews", cluster=False),
    _review("authorization.k8s.io/v1", "SelfSubjectAccessReview selfsubjectaccessreviews"),
    _review("authorization.k8s.io/v1", "SelfSubjectRulesReview selfsubjectrulesreviews"),
    _review("authorization.k8s.io/v1", "SubjectAccessReview subjectaccessreviews"),
)
