"""Discovery: the same groups, resources, verbs and short names, but for what is left out on purpose."""

from typing import Any, Final

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.session import Session

# What the embedded API does not serve; docs/reference/embedded-api.md says so too.
LEFT_OUT_GROUPS: Final = {
    "apiregistration.k8s.io",
    "autoscaling",
    "certificates.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "storagemigration.k8s.io",
}
LEFT_OUT: Final = {
    *("componentstatuses", "nodes/proxy", "services/proxy", "serviceaccounts/token"),
    *("pods/attach", "pods/ephemeralcontainers", "pods/exec", "pods/log", "pods/portforward", "pods/proxy"),
    *("ipaddresses", "servicecidrs", "servicecidrs/status"),
}
GROUPS: Final = (
    *("apps", "batch", "policy", "events.k8s.io", "coordination.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
    *("rbac.authorization.k8s.io", "apiextensions.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io"),
    *("authentication.k8s.io", "authorization.k8s.io", "networking.k8s.io", "admissionregistration.k8s.io"),
)


def served(name: str) -> bool:
    return name not in LEFT_OUT_GROUPS and not name.endswith(".example.com")


@contract
def test_the_groups(api: Session) -> None:
    found = api.get("/apis", note=False).body
    api.note([group for group in found["groups"] if served(group["name"])])
    api.get("/api", keep=("kind", "versions"))
    api.get("/apis/apps")
    api.get("/apis/none")


@contract
def test_the_resources_of_each_group(api: Session) -> None:
    for path in ("/api/v1", *(f"/apis/{group}/v1" for group in GROUPS)):
        found = api.get(path, note=False).body
        api.note(path, [each for each in found["resources"] if each["name"] not in LEFT_OUT])
    api.get("/apis/apps/v7")
    api.get("/api/v7")


@contract
def test_discovery_in_one_document(api: Session) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for path in ("/api", "/apis"):
        found = api.get(path, headers={"Accept": accept}, note=False).body
        assert found["kind"] == "APIGroupDiscoveryList"
        for group in found["items"]:
            name = group["metadata"].get("name", "")
            if served(name):
                api.note(name, [_resources(version) for version in group["versions"]])


def _resources(version: dict[str, Any]) -> list[Any]:
    found = []
    for each in version["resources"]:
        if each["resource"] in LEFT_OUT:
            continue
        parts = [
            part for part in each.get("subresources", []) if f"{each['resource']}/{part['subresource']}" not in LEFT_OUT
        ]
        parts.sort(key=lambda part: str(part["subresource"]))
        found.append({**each, "subresources": [{**part, "acceptedTypes": None} for part in parts]})
    return sorted(found, key=lambda each: str(each["resource"]))


@contract
def test_the_server_says_how_it_is(api: Session) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping", "/healthz/none"):
        found = api.get(path, note=False)
        api.note(path, found.code, found.raw.decode())
    version = api.get("/version", note=False).body
    api.note(version["major"], version["minor"])
    api.get("/nonsense")
