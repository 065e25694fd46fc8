"""Clusters written by hand, each about one rule of scheduling or admission, with the pods that are asked about.

`DUMPS` has by name what there is and what comes: `podium whatif` and `podium capacity` are asked about both, and a real
kube-scheduler gets them, too.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

Obj = dict[str, Any]
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Dump(NamedTuple):
    """A cluster, and the objects that are asked about, in the order in which they come."""

    cluster: list[Obj]
    question: list[Obj]
    options: tuple[str, ...] = ()
    terminating: tuple[str, ...] = ()
    """Pods of the cluster that are on their way out."""


DUMPS: Final[dict[str, Callable[[], Dump]]] = {}


def _dump(made: Callable[[], Dump]) -> Callable[[], Dump]:
    DUMPS[made.__name__] = made
    return made


def node(name: str, cpu: str = "4", labels: Obj | None = None, taints: list[Obj] | None = None, **more: Any) -> Obj:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "20", "ephemeral-storage": "50Gi", **more.pop("amounts", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, "kubernetes.io/os": "linux", **(labels or {})}},
        "spec": {**({"taints": taints} if taints else {}), **more},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def zones(number: int) -> list[Obj]:
    """Nodes that grow, in three zones."""
    return [
        node(f"n{each}", str(2 + each), {ZONE: "abc"[each % 3], "disk": ("hdd", "ssd")[each % 2]})
        for each in range(number)
    ]


def taint(key: str, effect: str, value: str = "") -> Obj:
    return {"key": key, "effect": effect, "value": value}


def container(cpu: str = "", **more: Any) -> Obj:
    requests = {**({"cpu": cpu} if cpu else {}), **more.pop("requests", {})}
    resources = {"requests": requests, "limits": more.pop("limits", {}), "claims": more.pop("claims", [])}
    return {"name": "c", "image": "app", "resources": {k: v for k, v in resources.items() if v}, **more}


def pod(name: str, cpu: str = "100m", *, on: str = "", namespace: str = "default", app: str = "", **spec: Any) -> Obj:
    made: Obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app or name, **spec.pop("labels", {})}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container(cpu)], **spec},
    }
    if on:
        made["spec"]["nodeName"] = on
        made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return made


def workload(kind: str, name: str, replicas: int, cpu: str = "100m", *, namespace: str = "default", **spec: Any) -> Obj:
    more = spec.pop("more", {})
    template: Obj = {"spec": {"containers": [container(cpu)], **spec}}
    body: Obj = {"template": template, **more}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        body |= {"parallelism": replicas, "completions": replicas}
    else:
        template["metadata"] = {"labels": {"app": name}}
        body |= {"selector": {"matchLabels": {"app": name}}} | ({} if kind == "DaemonSet" else {"replicas": replicas})
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": body}


def away_from(labels: Obj, key: str = HOSTNAME, **more: Any) -> Obj:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def near(labels: Obj, key: str = ZONE, **more: Any) -> Obj:
    return {"podAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}]}}


def spread(labels: Obj, key: str = ZONE, skew: int = 1, **more: Any) -> Obj:
    selector = {"matchLabels": labels}
    base = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {**base, **more}


def plain(version: str, kind: str, name: str, namespace: str = "", **body: Any) -> Obj:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **body.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


@_dump
def taints() -> Dump:
    nodes = [
        node("a", taints=[taint("x", "NoSchedule", "1")]),
        node("b", "5", taints=[taint("x", "NoExecute", "2")]),
        node("c", "8", taints=[taint("soft", "PreferNoSchedule")]),
        node("d", unschedulable=True),
        node("e", "1"),
    ]
    equal = {"key": "x", "operator": "Equal", "value": "1", "effect": "NoSchedule"}
    return Dump(
        nodes,
        [
            pod("p1", "500m", tolerations=[equal]),
            pod("p2", "3", tolerations=[{"key": "x", "operator": "Exists"}]),
            pod("p3", "3", tolerations=[{"operator": "Exists"}]),
            pod("p4", "7500m"),
            pod("p5", "6"),
            pod("p6", "900m"),
        ],
    )


@_dump
def affinity() -> Dump:
    other = plain("v1", "Namespace", "other", metadata={"labels": {"team": "x"}})
    db = {"app": "db"}
    nvme = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["nvme"]}]}]
    return Dump(
        [other, *zones(6), pod("db", on="n1", namespace="other"), pod("web0", on="n2", app="web")],
        [
            pod("p1", affinity=near(db, namespaces=["other"])),
            pod("p2", affinity=near(db, namespaceSelector={"matchLabels": {"team": "x"}})),
            pod("p3", affinity=near(db)),
            *(pod(f"p{number}", app="web", affinity=away_from({"app": "web"}, ZONE)) for number in (4, 5, 6)),
            pod("p7", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": nvme}}}),
        ],
    )


@_dump
def label_keys_of_affinity() -> Dump:
    nodes = [node(f"n{number}", labels={ZONE: "a"}) for number in range(3)]

    def asked(name: str, version: str, **keys: Any) -> Obj:
        return pod(name, app="q", labels={"v": version}, affinity=away_from({"app": "q"}, ZONE, **keys))

    web = workload("Deployment", "web", 4, affinity=away_from({"app": "web"}, matchLabelKeys=["pod-template-hash"]))
    match, mismatch = {"matchLabelKeys": ["v"]}, {"mismatchLabelKeys": ["v"]}
    return Dump(
        nodes,
        [
            web,
            asked("q1", "1", **match),
            asked("q2", "2", **match),
            asked("q3", "2", **match),
            asked("q4", "2", **mismatch),
        ],
    )


@_dump
def spreading() -> Dump:
    labels = {"app": "s"}
    both = [spread(labels, nodeTaintsPolicy="Honor"), spread(labels, HOSTNAME, 2)]
    nodes = [*zones(5), node("n9", labels={ZONE: "d"}, taints=[taint("x", "NoSchedule")])]
    return Dump(
        [*nodes, pod("s0", on="n0", app="s")],
        [
            workload("Deployment", "s", 9, "300m", topologySpreadConstraints=both),
            pod("t1", app="s", topologySpreadConstraints=[spread(labels, minDomains=5)]),
        ],
    )


def storage_class(name: str, mode: str = "WaitForFirstConsumer", *, default: bool = False) -> Obj:
    marks = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}} if default else {}
    body = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode}
    return plain("storage.k8s.io/v1", "StorageClass", name, metadata=marks, **body)


def volume(name: str, on: str, size: str = "10Gi") -> Obj:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}]
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/x"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return plain("v1", "PersistentVolume", name, spec=spec)


def claim_spec(storage_class: str | None = None) -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    return spec if storage_class is None else {**spec, "storageClassName": storage_class}


@_dump
def claims_of_a_stateful_set() -> Dump:
    more = {
        "serviceName": "st",
        "podManagementPolicy": "Parallel",
        "ordinals": {"start": 5},
        "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": claim_spec()}],
    }
    volumes = [volume("v1", "n0"), volume("v2", "n3"), volume("v3", "n1", "1Gi")]
    cluster = [*zones(4), storage_class("local", default=True), *volumes]
    return Dump(cluster, [workload("StatefulSet", "st", 2, more=more)])


@_dump
def ephemeral_volumes() -> Dump:
    made = [{"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec("local")}}}]
    cluster = [*zones(4), storage_class("local"), volume("v1", "n0"), volume("v2", "n3")]
    return Dump(cluster, [pod(f"e{number}", volumes=made) for number in range(3)])


@_dump
def claims() -> Dump:
    def claim(name: str, of: str) -> Obj:
        return plain("v1", "PersistentVolumeClaim", name, "default", spec=claim_spec(of))

    def using(name: str, of: str) -> Obj:
        return pod(name, volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": of}}])

    cluster = [
        *zones(4),
        storage_class("local"),
        storage_class("now", "Immediate"),
        volume("v1", "n2"),
        claim("i", "now"),
    ]
    return Dump(
        cluster,
        [
            claim("c1", "local"),
            using("a1", "c1"),
            using("a2", "i"),
            using("a3", "no"),
            claim("c2", "local"),
            using("a4", "c2"),
        ],
    )


@_dump
def limit_ranges() -> Dump:
    limits = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "700m", "memory": "1Gi"}}
    made = plain("v1", "LimitRange", "l", "t", spec={"limits": [{**limits, "max": {"cpu": "3"}}]})
    return Dump(
        [plain("v1", "Namespace", "t"), made, *zones(2)],
        [
            workload("Deployment", "d", 6, "", namespace="t"),
            pod("p1", "200m", namespace="t"),
            pod("p2", namespace="t", containers=[container("2500m", limits={"cpu": "4"})]),
        ],
    )


@_dump
def quotas() -> Dump:
    quota = plain("v1", "ResourceQuota", "q", "t", spec={"hard": {"requests.cpu": "2", "pods": "4"}})
    cluster = [plain("v1", "Namespace", "t"), quota, *zones(3), pod("old", "500m", on="n0", namespace="t")]
    return Dump(cluster, [pod(f"p{n}", cpu, namespace="t") for n, cpu in enumerate(("1", "1", "500m", ""))])


def priority(name: str, value: int, **more: Any) -> Obj:
    return plain("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **more)


@_dump
def priorities() -> Dump:
    classes = [priority("high", 1000), priority("usual", 10, globalDefault=True)]
    return Dump(
        [*classes, node("a"), node("b", "2")],
        [
            pod("p1", "1500m"),
            pod("p2", "1500m"),
            pod("p3", "3500m", priorityClassName="high"),
            pod("p4", priorityClassName="system-node-critical"),
        ],
    )


@_dump
def preemption() -> Dump:
    low = [pod(f"l{n}", cpu, on="a", priorityClassName="low") for n, cpu in enumerate(("1500m", "1"))]
    for number, each in enumerate(low):
        each["status"]["startTime"] = f"2026-01-01T00:0{number}:00Z"
    return Dump(
        [
            *(priority("high", 1000), priority("mid", 10), priority("low", -5)),
            priority("never", 2000, preemptionPolicy="Never"),
            *(node("a"), node("b"), *low, pod("m", "3500m", on="b", priorityClassName="mid")),
        ],
        [pod("h2", "4", priorityClassName="never"), pod("h1", "2", priorityClassName="high")],
        ("--preempt",),
    )


@_dump
def daemon_set() -> Dump:
    nodes = [
        *zones(4),
        node("x", taints=[taint("gpu", "NoSchedule")]),
        node("y", unschedulable=True),
        node("z", "100m"),
    ]
    made = workload("DaemonSet", "ds", 0, "500m", nodeSelector={"kubernetes.io/os": "linux"})
    return Dump([*nodes, pod("big", "1900m", on="n0")], [made])


def cards(on: str, number: int) -> Obj:
    devices = [{"name": f"g{n}", "capacity": {"memory": {"value": f"{10 * (n + 1)}Gi"}}} for n in range(number)]
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": on, "pool": pool, "devices": devices}
    return plain("resource.k8s.io/v1", "ResourceSlice", f"s-{on}", spec=spec)


def cards_class(**more: Any) -> Obj:
    selectors = [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]
    return plain("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": selectors, **more})


def claim_template(name: str, **exactly: Any) -> Obj:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}]
    spec = {"spec": {"devices": {"requests": requests}}}
    return plain("resource.k8s.io/v1", "ResourceClaimTemplate", name, "default", spec=spec)


def using_card(template: str) -> Obj:
    return {
        "containers": [container("100m", claims=[{"name": "g"}])],
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": template}],
    }


@_dump
def devices() -> Dump:
    large = {"cel": {"expression": "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('25Gi'))"}}
    templates = [claim_template("one"), claim_template("two", count=2), claim_template("large", selectors=[large])]
    return Dump(
        [cards_class(), *zones(4), cards("n1", 2), cards("n2", 3), *templates],
        [pod(f"d{n}", **using_card(name)) for n, name in enumerate(("two", "large", "two", "one", "large"))],
    )


@_dump
def devices_of_a_deployment() -> Dump:
    cluster = [cards_class(), *zones(3), cards("n1", 2), cards("n2", 3), claim_template("one")]
    return Dump(cluster, [workload("Deployment", "g", 6, **using_card("one"))])


@_dump
def extended_resource_of_devices() -> Dump:
    cluster = [cards_class(extendedResourceName="example.com/gpu"), *zones(3), cards("n1", 2)]
    wants = [container("100m", limits={"example.com/gpu": "1"})]
    return Dump(cluster, [pod(f"x{number}", containers=wants) for number in range(3)])


@_dump
def overhead() -> Dump:
    made = plain(
        "node.k8s.io/v1",
        "RuntimeClass",
        "kata",
        handler="kata",
        overhead={"podFixed": {"cpu": "500m", "memory": "100Mi"}},
        scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
    )
    able = {"kata": "yes"}
    nodes = [node("a", "2", able, [taint("kata", "NoSchedule")]), node("b", "8"), node("c", "1", able)]
    kata = [pod(f"p{n}", cpu, runtimeClassName="kata") for n, cpu in enumerate(("1", "600m"))]
    return Dump([made, *nodes], [*kata, pod("p3", "1")])


@_dump
def init_containers() -> Dump:
    def first(name: str, cpu: str, *, stays: bool = False) -> Obj:
        return {**container(cpu, name=name), **({"restartPolicy": "Always"} if stays else {})}

    running = pod("run", "500m", on="b", initContainers=[first("s", "500m", stays=True), first("i", "1")])
    mixed = [first("s1", "500m", stays=True), first("i1", "1500m"), first("s2", "300m", stays=True)]
    return Dump(
        [node("a", "2"), node("b", "3"), running],
        [
            pod("p1", "1", initContainers=mixed),
            pod("p2", "900m", initContainers=[first("s", "200m", stays=True)]),
            pod("p3", initContainers=[first("i", "2")]),
            pod("p4", "500m"),
        ],
    )


@_dump
def host_ports() -> Dump:
    def at(name: str, port: int, on: str = "", **more: Any) -> Obj:
        ports = [{"containerPort": 80, "hostPort": port, **more.pop("as_", {})}]
        return pod(name, on=on, containers=[container("100m", ports=ports)], **more)

    here = {"hostIP": "10.0.0.1"}
    taken = [at("used", 8080, "n0"), at("udp", 53, "n1", as_={"protocol": "UDP"}), at("ip", 9090, "n2", as_=here)]
    on_host = pod("p7", hostNetwork=True, containers=[container("100m", ports=[{"containerPort": 8080}])])
    other = at("p6", 9090, as_={"hostIP": "10.0.0.2"}, nodeSelector={HOSTNAME: "n2"})
    asked = [at(f"p{n}", port) for n, port in enumerate((8080, 8080, 8080, 53, 9090))]
    return Dump([*zones(3), *taken], [*asked, other, on_host])


@_dump
def unknown_resources() -> Dump:
    def wanting(name: str, **limits: str) -> Obj:
        return pod(name, containers=[container("100m", limits={"memory": "100Mi", **limits})])

    fpga, pages = "example.com/fpga", "hugepages-2Mi"
    return Dump(
        [node("a", amounts={fpga: "2"}), node("b", amounts={pages: "1Gi"}), node("c")],
        [
            *(wanting("p1", **{fpga: "2"}), wanting("p2", **{fpga: "1"})),
            *(wanting("p3", **{pages: "512Mi"}), wanting("p4", **{pages: "768Mi"})),
            pod("p5", containers=[container(requests={"ephemeral-storage": "60Gi"})]),
            wanting("p6", **{"example.com/none": "1"}),
        ],
    )


@_dump
def leaving_and_done() -> Dump:
    leaving, done = pod("t", "3", on="a"), pod("done", "3", on="b")
    leaving["metadata"]["finalizers"] = ["example.com/hold"]
    done["status"] = {"phase": "Succeeded"}
    nodes = [node("a"), node("b")]
    return Dump([*nodes, leaving, done], [pod("p1", "2"), pod("p2", "3"), pod("p3", "2")], terminating=("t",))


@_dump
def jobs() -> Dump:
    apart = workload("Job", "j", 5, affinity=away_from({"job-name": "j"}))
    spreads = [spread({"batch.kubernetes.io/job-name": "k"}, HOSTNAME)]
    return Dump(
        zones(4),
        [apart, workload("Job", "k", 5, topologySpreadConstraints=spreads, more={"completionMode": "Indexed"})],
    )


@_dump
def amounts_of_the_pod() -> Dump:
    two = [container("500m"), container("500m", name="e")]
    return Dump(
        [node("a", "2"), node("b", "3")],
        [
            pod("p1", containers=two, resources={"requests": {"cpu": "1500m"}}),
            pod("p2", "", resources={"requests": {"cpu": "2"}}),
            pod("p3", resources={"limits": {"cpu": "1"}}),
        ],
    )


@_dump
def held_and_bound() -> Dump:
    held = pod("p1", schedulingGates=[{"name": "example.com/held"}])
    return Dump(zones(2), [held, pod("p2", nodeName="n1"), pod("p3")])
