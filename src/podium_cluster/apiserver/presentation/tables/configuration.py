"""Tabulates what pods are given and who may do what: ConfigMaps, Secrets, the bindings of roles."""

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.tables.columns import AGE, NAME, Cells, KindTable, TableColumn, Tables, wide
from podium_cluster.apiserver.presentation.tables.formats import age

_CONFIG_MAP: Final = (NAME, TableColumn("Data", "How many keys it holds."), AGE)
_SECRET: Final = (
    NAME,
    TableColumn("Type", "What the secret is for."),
    TableColumn("Data", "How many keys it holds."),
    AGE,
)


def _binding_columns(kind: str) -> tuple[TableColumn, ...]:
    return (
        NAME,
        TableColumn("Role", "The role that is given."),
        AGE,
        wide("Users", f"The users of the {kind}."),
        wide("Groups", f"The groups of the {kind}."),
        wide("ServiceAccounts", f"The service accounts of the {kind}."),
    )


def _config_map(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _secret(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


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


TABLES: Final[Tables] = {
    ("", "ConfigMap"): KindTable(_CONFIG_MAP, _config_map),
    ("", "Secret"): KindTable(_SECRET, _secret),
    ("rbac.authorization.k8s.io", "RoleBinding"): KindTable(_binding_columns("role binding"), _binding),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): KindTable(_binding_columns("cluster role binding"), _binding),
}
