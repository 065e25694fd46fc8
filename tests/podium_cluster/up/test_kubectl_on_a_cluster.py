"""The real kubectl on `podium up`: workloads roll out, scale, drain and end as on any cluster, without complaints.

One cluster serves all tests, each in a namespace of its own; pods live fast in it.
"""

import re
from collections.abc import Callable, Iterator

import pytest

from tests.podium_cluster.apiserver.kubectl import Kubectl, printed
from tests.podium_cluster.up.up_process import PodiumUp

TIMEOUT = "--timeout=60s"


@pytest.fixture(scope="module")
def kubectl(testbed_programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("home")
    options = ("--port", "0", "--nodes", "6", "--workload", "none", "--speed", "50")
    with PodiumUp(*options, home=home) as up:
        yield Kubectl(up.kubeconfig, home)
        assert "Traceback" not in up.output


Typed = Callable[..., str]


@pytest.fixture
def typed(kubectl: Kubectl, request: pytest.FixtureRequest) -> Typed:
    """What a command prints in the test's namespace; it must work and complain of nothing."""
    namespace = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:60].strip("-")
    printed(kubectl("create", "namespace", namespace))

    def run(
        command: str, *more: str, stdin: str | None = None, errors: tuple[str, ...] = (), editor: str = "true"
    ) -> str:
        return printed(kubectl("-n", namespace, *command.split(), *more, stdin=stdin, editor=editor), errors=errors)

    return run


def test_a_deployment_rolls_out_and_back(typed: Typed) -> None:
    typed("create deployment web --image=nginx:1 --replicas=3")
    assert 'deployment "web" successfully rolled out' in typed(f"rollout status deployment web {TIMEOUT}")
    assert re.search(r"^web +3/3 +3 +3 ", typed("get deployment web"), re.M)
    assert len(re.findall(r" 1/1 +Running +0 ", typed("get pods"))) == 3
    typed("set image deployment/web nginx=nginx:2")
    typed("annotate deployment/web kubernetes.io/change-cause=second")
    typed(f"rollout status deployment web {TIMEOUT}")
    history = typed("rollout history deployment web")
    assert re.search(r"REVISION +CHANGE-CAUSE\n1 +<none>\n2 +second\n", history)
    assert "nginx:1" in typed("rollout history deployment web --revision=1")
    assert typed("rollout undo deployment web") == "deployment.apps/web rolled back\n"
    typed(f"rollout status deployment web {TIMEOUT}")
    assert typed("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}") == "nginx:1"
    typed("rollout restart deployment web")
    typed(f"rollout status deployment web {TIMEOUT}")
    assert len(typed("get replicasets -o name").split()) == 3


def test_a_deployment_is_described_with_what_happened(typed: Typed) -> None:
    typed("create deployment web --image=nginx --replicas=2")
    typed(f"rollout status deployment web {TIMEOUT}")
    described = typed("describe deployment web")
    assert re.search(r"Replicas: +2 desired \| 2 updated \| 2 total \| 2 available \| 0 unavailable", described)
    assert re.search(
        r"Normal +ScalingReplicaSet +\S+ +deployment-controller +Scaled up replica set web-\w+ from 0 to 2", described
    )
    pod = typed(f"describe {typed('get pods -o name').split()[0]}")
    assert re.search(r"Normal +Scheduled +\S+ +default-scheduler +Successfully assigned \S+/web-\S+ to \w+-\d", pod)
    assert re.search(r"Controlled By: +ReplicaSet/web-\w+", pod)
    events = typed("get events --sort-by=.metadata.creationTimestamp")
    assert {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled"} <= set(events.split())


def test_scaling_and_deleting_wait_for_pods(typed: Typed) -> None:
    typed("create deployment web --image=nginx --replicas=1")
    typed("scale deployment web --replicas=4")
    typed(f"wait --for=jsonpath={{.status.readyReplicas}}=4 deployment/web {TIMEOUT}")
    typed("scale deployment web --replicas=2")
    typed(f"wait --for=jsonpath={{.status.replicas}}=2 deployment/web {TIMEOUT}")
    assert typed("delete deployment web --cascade=orphan").startswith('deployment.apps "web" deleted')
    assert len(typed("get pods -o name").split()) == 2
    typed("delete replicasets --all --cascade=foreground")
    typed(f"wait --for=delete pods -l app=web {TIMEOUT}")
    assert typed("get pods -o name") == ""


def test_a_pod_is_waited_for_edited_and_deleted(typed: Typed) -> None:
    typed("run web --image=nginx --labels=colour=red")
    assert typed(f"wait --for=condition=Ready pod/web {TIMEOUT}") == "pod/web condition met\n"
    assert "pod/web edited" in typed("edit pod web", editor="sed -i s/colour:.red/colour:\\ blue/")
    assert typed("get pods -l colour=blue -o name") == "pod/web\n"
    typed("edit pod web", errors=("Edit cancelled, no changes made.",))
    assert 'pod "web" deleted' in typed("delete pod web --wait")
    assert typed("get pods -o name") == ""


def test_a_job_completes(typed: Typed) -> None:
    typed("create job once --image=busybox -- date")
    typed(f"wait --for=condition=complete job/once {TIMEOUT}")
    assert re.search(r"^once +Complete +1/1 ", typed("get jobs"), re.M)
    assert re.search(r" 0/1 +Completed +0 ", typed("get pods"))
    assert re.search(r"Normal +Completed +\S+ +job-controller +Job completed", typed("describe job once"))


STATEFUL = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: postgres}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: agent}]}}
"""


def test_stateful_and_daemon_sets_roll_out(typed: Typed) -> None:
    typed("apply -f -", stdin=STATEFUL)
    assert "roll out complete: 2 new pods have been updated" in typed(f"rollout status statefulset db {TIMEOUT}")
    assert re.findall(r"^(db-\d) +1/1 +Running", typed("get pods -l app=db"), re.M) == ["db-0", "db-1"]
    typed(f"rollout status daemonset agent {TIMEOUT}")
    assert len(typed("get pods -l app=agent -o name").split()) == 6
    typed("rollout restart daemonset agent")
    typed(f"rollout status daemonset agent {TIMEOUT}")


BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""


def test_a_node_is_drained_within_a_budget(typed: Typed, kubectl: Kubectl) -> None:
    typed("apply -f -", stdin=STATEFUL.partition("---")[2])
    typed("create deployment web --image=nginx --replicas=3")
    typed("apply -f -", stdin=BUDGET)
    typed(f"rollout status deployment web {TIMEOUT}")
    typed(f"rollout status daemonset agent {TIMEOUT}")
    node = typed("get pods -l app=web -o jsonpath={.items[0].spec.nodeName}")
    refused = kubectl("drain", node)
    assert refused.code == 1
    assert "cannot delete DaemonSet-managed Pods" in refused.err
    drained = kubectl("drain", node, "--ignore-daemonsets", "--force", TIMEOUT)
    assert drained.code == 0, drained
    assert f"node/{node} drained" in drained.out
    assert "Warning: ignoring DaemonSet-managed Pods" in drained.err
    assert node not in typed("get pods -l app=web -o jsonpath={.items[*].spec.nodeName}").split()
    assert re.search(rf"^{node} +Ready,SchedulingDisabled ", typed("get nodes"), re.M)
    typed(f"uncordon {node}")
    typed(f"rollout status deployment web {TIMEOUT}")


def test_a_taint_that_does_not_let_pods_stay_moves_them(typed: Typed) -> None:
    typed("create deployment web --image=nginx --replicas=1")
    typed(f"rollout status deployment web {TIMEOUT}")
    node = typed("get pods -o jsonpath={.items[0].spec.nodeName}")
    typed(f"taint node {node} broken=yes:NoExecute")
    typed(f"wait --for=delete pod --field-selector spec.nodeName={node} {TIMEOUT}")
    typed(f"rollout status deployment web {TIMEOUT}")
    typed(f"taint node {node} broken-")


def test_nodes_are_described_and_measured(typed: Typed) -> None:
    typed(
        "run web --image=nginx --overrides",
        '{"spec":{"containers":[{"name":"web","image":"nginx","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]}}',
    )
    typed(f"wait --for=condition=Ready pod/web {TIMEOUT}")
    node = typed("get pod web -o jsonpath={.spec.nodeName}")
    described = typed(f"describe node {node}")
    assert re.search(r"Ready +True +.* KubeletReady", described)
    assert re.search(r" web +500m \(\d+%\) ", described)
    assert re.search(rf"^{node} +\d+m +\d+% +\d+Mi +\d+%", typed("top nodes"), re.M)
    assert re.search(r"^web +\d+m +\d+Mi", typed("top pods"), re.M)


def test_a_watch_shows_what_happens(kubectl: Kubectl, typed: Typed) -> None:
    namespace = re.search(r"namespace: (\S+)", typed("create configmap here -o yaml"))
    assert namespace is not None
    typed("run first --image=nginx")
    watching = kubectl.start("-n", namespace[1], "get", "pods", "-w", "--output-watch-events")
    try:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:4] == ["EVENT", "NAME", "READY", "STATUS"]
        assert watching.stdout.readline().split()[:2] == ["ADDED", "first"]  # it watches by now
        typed("run web --image=nginx")
        typed(f"wait --for=condition=Ready pod/web {TIMEOUT}")
        typed("delete pod web")
        seen = []
        for line in watching.stdout:
            event = line.split()[:4]
            if event[1] == "web":
                seen.append(event)
                if event[0] == "DELETED":
                    break
    finally:
        watching.kill()
        watching.communicate()
    assert seen[0][:3] == ["ADDED", "web", "0/1"]
    assert ["MODIFIED", "web", "1/1", "Running"] in seen
    assert ["MODIFIED", "web", "1/1", "Terminating"] in seen


def test_the_api_explains_itself(typed: Typed) -> None:
    explained = typed("explain pod.spec.nodeName")
    assert re.search(r"KIND: +Pod\nVERSION: +v1", explained)
    assert "FIELD: nodeName <string>" in explained
    assert re.search(r"^ +template\t<PodTemplateSpec> -required-", typed("explain deployment.spec"), re.M)
    resources = typed("api-resources")
    assert re.search(r"^deployments +deploy +apps/v1 +true +Deployment$", resources, re.M)
    assert re.search(r"^nodes +no +v1 +false +Node$", resources, re.M)
    assert typed("auth can-i delete pods") == "yes\n"
    assert typed("get --raw /healthz") == "ok"
    assert "Server Version: v1.37" in typed("version")


def test_a_namespace_goes_with_everything_in_it(typed: Typed, kubectl: Kubectl) -> None:
    printed(kubectl("create", "namespace", "doomed"))
    printed(kubectl("-n", "doomed", "create", "deployment", "web", "--image=nginx", "--replicas=2"))
    printed(kubectl("-n", "doomed", "create", "configmap", "settings"))
    printed(kubectl("delete", "namespace", "doomed", TIMEOUT))
    assert "doomed" not in typed("get pods,deployments,replicasets,configmaps,namespaces -A")
