"""The real kubectl sees no difference: the same commands on a real API server and on the embedded one print the same.

Each scenario is a session somebody types, one command after the other, in a namespace of its own. Exit codes, output
and errors are compared word for word, but for what depends on the moment (tests.podium_cluster.apiserver.kubectl).
"""

import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.podium_cluster.apiserver.kubectl import Kubectl
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed import ControlPlane

MANIFESTS = Path(__file__).parent / "manifests"

SCENARIOS = {
    "a pod": """
        get pods
        create -f pod.yaml
        create -f pod.yaml
        get pods
        get pods -o wide --show-labels
        get pod web -o name
        get pod web -o yaml
        get pod web -o json
        get pod web missing
        get po,cm --no-headers
        get pods -l app=web,tier!=back -L tier
        get pods --field-selector status.phase=Running
        get pods -o jsonpath={.items[*].spec.containers[*].image}
        get pods -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[0].image
        get pods --sort-by=.metadata.name
        get -f pod.yaml
        describe pod web
        delete pod web --grace-period=0 --force
        get pods
        delete pod web
        delete pod web --ignore-not-found
    """,
    "what is refused": """
        create -f wrong.yaml
        create -f wrong.yaml --validate=false
        create -f wrong.yaml --validate=warn
        apply -f wrong.yaml
        create -f pod.yaml --dry-run=server
        create -f pod.yaml --dry-run=client -o name
        get pods
        get nonsense
        get pods -l a==b==c
        get pods --field-selector spec.nonsense=1
        create configmap Bad_Name
        create -f pod.yaml -n nowhere
    """,
    "apply": """
        apply -f pod.yaml
        apply -f pod.yaml
        diff -f pod.yaml
        diff -f pod-changed.yaml
        apply -f pod-changed.yaml
        apply -f pod-changed.yaml
        get pod web -o yaml
        apply view-last-applied pod/web
        apply -f deployment.yaml
        apply -f deployment-changed.yaml
        get deployment front -o yaml
        replace -f deployment.yaml
        replace --force -f deployment.yaml
        delete -f deployment.yaml --wait=false
        apply -f all.yaml
        apply -f all.yaml
        get cm,secret,svc,sa,pdb,pvc,lease,job,sts,ds
        delete -f all.yaml --wait=false
    """,
    "server-side apply": """
        apply --server-side -f pod.yaml
        apply --server-side -f pod.yaml
        apply --server-side -f pod-changed.yaml
        label pod web tier=middle --overwrite --field-manager=somebody
        apply --server-side -f pod-changed.yaml
        apply --server-side --force-conflicts -f pod-changed.yaml
        apply --server-side -f pod.yaml --field-manager=other
        get pod web -o yaml
        diff --server-side -f pod-changed.yaml
        apply --server-side -f deployment.yaml
        scale deployment front --replicas=4
        apply --server-side -f deployment-changed.yaml
    """,
    "changes": """
        create -f pod.yaml
        label pod web colour=red
        label pod web colour=blue
        label pod web colour=blue --overwrite
        label pod web colour-
        label pods --all all=yes
        annotate pod web note=hello
        annotate pod web note-
        patch pod web -p {"metadata":{"labels":{"patched":"strategic"}}}
        patch pod web -p {"spec":{"containers":[{"name":"main","image":"nginx:1.31"}]}}
        patch pod web -p {"spec":{"tolerations":[{"key":"a","operator":"Exists"}]}}
        patch pod web --type=merge -p {"metadata":{"labels":{"patched":null}}}
        patch pod web --type=json -p [{"op":"add","path":"/metadata/labels/json","value":"yes"}]
        patch pod web --type=json -p [{"op":"remove","path":"/metadata/labels/none"}]
        patch pod web --type=json -p [{"op":"test","path":"/metadata/name","value":"other"}]
        patch pod web -p nonsense
        patch pod web --subresource=status --type=merge -p {"status":{"phase":"Running"}}
        set image pod/web main=nginx:1.32
        get pod web --show-labels
        get pod web -o yaml
    """,
    "deployments": """
        create deployment front --image=nginx --replicas=2 --port=80
        get deployments -o wide
        describe deployment front
        scale deployment front --replicas=4
        scale deployment front --replicas=5 --current-replicas=3
        get deployment front --subresource=scale -o yaml
        set image deployment/front nginx=nginx:2
        set resources deployment front --requests=cpu=10m
        set env deployment/front A=b
        rollout restart deployment front
        rollout pause deployment front
        rollout resume deployment front
        expose deployment front --port=80
        get svc
        autoscale deployment front --max=3 --dry-run=client -o name
        delete deployment front --wait=false
        delete svc front
        create job once --image=busybox -- date
        get jobs
        create configmap settings --from-literal=a=1 --from-literal=b=2
        create secret generic password --from-literal=a=1
        describe configmap settings
        describe secret password
        create serviceaccount robot
        create priorityclass urgent --value=10
        get priorityclass urgent
        delete priorityclass urgent
        create pdb front --selector=app=front --min-available=1
        get pdb
        create poddisruptionbudget other --selector=app=front --max-unavailable=1 -o yaml --dry-run=server
        get events --field-selector=type=Normal
    """,
    "nodes": """
        create -f node.yaml
        get nodes
        get nodes -o wide
        get node big -o yaml
        taint node big disk=slow:NoExecute
        taint node big disk=fast:NoExecute
        taint node big disk=fast:NoExecute --overwrite
        taint node big disk:NoExecute-
        taint node big disk:NoExecute-
        cordon big
        cordon big
        get nodes
        uncordon big
        label node big zone=a
        drain big --ignore-daemonsets
        uncordon big
        delete node big
    """,
    "custom kinds": """
        create -f definition.yaml
        wait --for=condition=Established crd/widgets.shop.example --timeout=20s
        get crd widgets.shop.example -o name
        create -f widget.yaml
        create -f widget-wrong.yaml
        get widgets
        get wd bolt -o yaml
        apply -f widget.yaml
        patch widget bolt --type=merge -p {"spec":{"size":4}}
        patch widget bolt --type=merge -p {"spec":{"size":"x"}}
        patch widget bolt -p {"spec":{"size":4}}
        label widget bolt a=b
        delete widget bolt
        delete crd widgets.shop.example
    """,
    "questions": """
        auth can-i create pods
        auth can-i "*" "*"
        get --raw /healthz
        get --raw /readyz
        get --raw /livez
        get --raw /nonsense
        get ns default -o yaml
        get all
        wait --for=condition=Ready pod/none --timeout=1s
        wait --for=delete pod/none --timeout=1s
        get priorityclasses
        get namespaces kube-system default
    """,
}


class Plane(NamedTuple):
    name: str
    kubectl: Kubectl


@pytest.fixture(scope="module")
def planes(testbed_programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Plane, Plane]]:
    """The real API server and the embedded one, neither with controllers."""
    homes = [tmp_path_factory.mktemp(name) for name in ("real", "embedded")]
    with ControlPlane(priority_admission=True) as plane, EmbeddedServer() as embedded:
        yield (
            Plane("real", Kubectl(plane.kubeconfig_path, homes[0])),
            Plane("embedded", Kubectl(embedded.kubeconfig_path, homes[1])),
        )


@pytest.mark.parametrize("name", SCENARIOS)
def test_kubectl_prints_on_the_embedded_api_what_it_prints_on_a_real_one(
    planes: tuple[Plane, Plane], name: str
) -> None:
    namespace = name.replace(" ", "-")
    commands = [line.strip() for line in SCENARIOS[name].splitlines() if line.strip()]
    with ThreadPoolExecutor(2) as threads:
        real, embedded = threads.map(lambda plane: _session(plane.kubectl, namespace, commands), planes)
    for command, theirs, ours in zip(commands, real, embedded, strict=True):
        assert ours == theirs, f"kubectl {command}"


KINDS = (
    "pods,nodes,sa,limits,quota,rc,rs,deploy,sts,ds,controllerrevisions,jobs,svc,endpointslices,cm,secrets,events,leases",
    "pv,pvc,sc,volumeattributesclasses,volumeattachments,csinodes,csidrivers,csistoragecapacities,pdb,runtimeclasses",
    "roles,rolebindings,deviceclasses,resourceclaims,resourceclaimtemplates,resourceslices,priorityclasses,things,plains",
)
WARNED = ("deprecated", "serviceAccountTokenInSecrets")
"""Warnings about old ways that only the real server gives."""
REPAIRED = "ClusterIPNotAllocated"
"""The event of a busy kube-apiserver that hears of a new Service before it hears of its address."""


def test_objects_of_every_kind_look_the_same(planes: tuple[Plane, Plane], tmp_path: Path) -> None:
    definitions = [obj for obj in _every_object("tables.yaml") if obj["kind"] == "CustomResourceDefinition"]
    left_out = ("Endpoints", "CustomResourceDefinition")
    others = [obj for obj in _every_object("tables.yaml") if obj["kind"] not in left_out]
    for name, objects in (
        ("definitions", definitions),
        ("objects", others),
        ("custom", _every_object("custom_tables.yaml")),
    ):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(objects))
    commands = ["create -f definitions.yaml", "wait --for=condition=Established crd --all", "create -f objects.yaml"]
    commands += ["create -f custom.yaml"]
    for kinds in KINDS:
        commands += [f"get {kinds} -o wide", f"get {kinds} -o yaml", f"describe {kinds}"]
    commands += ["delete -f objects.yaml --wait=false", "delete crd --all"]
    for namespace in ("shown", "shown-again", "shown-once-more"):
        with ThreadPoolExecutor(2) as threads:
            real, embedded = threads.map(
                lambda plane, space=namespace: _session(plane.kubectl, space, commands, tmp_path), planes
            )
        if not any(REPAIRED in printed for printed in real):
            break
    for command, theirs, ours in zip(commands, real, embedded, strict=True):
        assert ours == _without_warnings(theirs), f"kubectl {command}"


def _every_object(file: str) -> list[dict[str, Any]]:
    found = yaml.safe_load_all((MANIFESTS.parent / "presentation" / file).read_text())
    # An empty list is nothing at all where objects are kept in protobuf.
    return [obj for obj in found if (obj["kind"], obj["metadata"]["name"]) != ("EndpointSlice", "empty")]


def _without_warnings(printed: str) -> str:
    lines = [
        line for line in printed.splitlines() if not (line.startswith("Warning: ") and any(w in line for w in WARNED))
    ]
    return "\n".join(lines)


def _session(kubectl: Kubectl, namespace: str, commands: list[str], folder: Path = MANIFESTS) -> list[str]:
    kubectl("create", "namespace", namespace)
    printed = []
    for command in commands:
        arguments = _arguments(command)
        if "-n" not in arguments:
            arguments = ["-n", namespace, *arguments]
        code, out, err = kubectl(*arguments, folder=folder).comparable()
        printed.append(f"{out}\n{err}\n(exit code {code})")
    return printed


def _arguments(command: str) -> list[str]:
    """The words of a command; a patch is one word with its quotation marks."""
    head, mark, patch = command.partition(" -p ")
    return [*shlex.split(head), "-p", patch] if mark else shlex.split(command)
