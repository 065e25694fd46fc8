"""Types the objects that own or front pods. Scheduling reads only how each of them selects its pods."""

from msgspec import field

from podium.kube.meta import LabelSelector, Model, NamespacedObject


class ServiceSpec(Model, frozen=True, kw_only=True):
    selector: dict[str, str] = field(default_factory=dict)
    type: str = ""


class Service(NamespacedObject, frozen=True, kw_only=True):
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Model, frozen=True, kw_only=True):
    replicas: int | None = None
    selector: dict[str, str] = field(default_factory=dict)


class ReplicationController(NamespacedObject, frozen=True, kw_only=True):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(Model, frozen=True, kw_only=True):
    replicas: int | None = None
    selector: LabelSelector | None = None


class ReplicaSet(NamespacedObject, frozen=True, kw_only=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Model, frozen=True, kw_only=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""


class StatefulSet(NamespacedObject, frozen=True, kw_only=True):
    spec: StatefulSetSpec = StatefulSetSpec()
