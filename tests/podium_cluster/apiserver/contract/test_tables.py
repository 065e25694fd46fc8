"""Tables, as kubectl asks for them: columns and cells."""

from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import DEPLOYMENTS, NODES, PODS, binding, deployment, node, pod
from tests.podium_cluster.apiserver.contract.session import Session, Watch

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def table(api: Session, path: str, **query: str) -> Any:
    found = api.get(path, headers={"Accept": TABLE}, query=query, note=False).body
    assert found["kind"] == "Table"
    columns = [column["name"] for column in found["columnDefinitions"]]
    rows = []
    for row in found["rows"]:
        row["cells"] = [
            "<age>" if name in ("Age", "Created At", "Last Seen", "First Seen") else cell
            for name, cell in zip(columns, row["cells"], strict=True)
        ]
        rows.append(row)
    described = [{**column, "description": None} for column in found["columnDefinitions"]]  # in our own words
    api.note(path, described, rows)
    return found


@contract
def test_pods(api: Session) -> None:
    api.create(PODS, pod("a"), note=False)
    api.create(PODS, pod("b"), note=False)
    api.create(f"{PODS}/b/binding", binding("b", "n"), note=False)
    running = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "containerStatuses": [
            {"name": "c", "ready": True, "restartCount": 2, "image": "i", "imageID": "", "state": {"running": {}}}
        ],
    }
    api.patch(f"{PODS}/b/status", {"status": running}, note=False)
    api.create(PODS, pod("g", schedulingGates=[{"name": "example.com/g"}]), note=False)
    found = table(api, PODS)
    assert [row["cells"][0] for row in found["rows"]] == ["a", "b", "g"]
    table(api, f"{PODS}/a")
    table(api, PODS, includeObject="None")
    table(api, PODS, includeObject="Object", labelSelector="none")


@contract
def test_nodes(api: Session) -> None:
    name = f"{api.namespace}-n"
    labels = {"only": api.namespace, "node-role.kubernetes.io/worker": ""}
    given = node(name, unschedulable=True)
    given["metadata"]["labels"] = labels
    given["status"] = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {
            "kubeletVersion": "v1.36.4",
            "osImage": "Linux",
            "kernelVersion": "6",
            "containerRuntimeVersion": "c",
        },
    }
    api.create(NODES, given, note=False)
    table(api, NODES, labelSelector=f"only={api.namespace}")
    api.delete(f"{NODES}/{name}", note=False)


@contract
def test_workloads(api: Session) -> None:
    api.create(DEPLOYMENTS, deployment(replicas=3), note=False)
    status = {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}
    api.patch(f"{DEPLOYMENTS}/d/status", {"status": status}, note=False)
    table(api, DEPLOYMENTS)
    for plural in ("replicasets", "statefulsets", "daemonsets"):
        table(api, f"/apis/apps/v1/namespaces/{{ns}}/{plural}")
    table(api, "/apis/batch/v1/namespaces/{ns}/jobs")


@contract
def test_an_empty_table_has_columns(api: Session) -> None:
    for path in ("configmaps", "events", "services", "persistentvolumeclaims", "secrets", "endpoints"):
        table(api, f"/api/v1/namespaces/{{ns}}/{path}")
    table(api, "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets")
    table(api, "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases")


@contract
def test_a_watch_of_tables_has_its_columns_once(api: Session) -> None:
    start = api.get(PODS, note=False).version
    for name in ("a", "b"):
        api.create(PODS, pod(name), note=False)
    query = {"watch": "true", "resourceVersion": start, "timeoutSeconds": "5"}
    with Watch(api, PODS, query, accept=TABLE) as watch:
        events = watch.collect(2)
    assert [event["object"]["kind"] for event in events] == ["Table", "Table"]
    api.note([bool(event["object"].get("columnDefinitions")) for event in events])


@contract
def test_tables_of_another_version_are_refused(api: Session) -> None:
    found = api.get(PODS, headers={"Accept": "application/json;as=Table;v=v7;g=meta.k8s.io"}, note=False)
    api.note(found.code, found.reason)
