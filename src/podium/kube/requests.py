"""Sums what a pod requests of a node, per resource.

App containers run together, so their requests add up. Init containers run one after another before them, except
sidecars (restartPolicy Always), which stay: an init container needs its own request plus that of the sidecars started
before it. The pod needs the larger of the two phases:

    max(Σ app + Σ sidecars, max over init containers(own + earlier sidecars)) + overhead

Requests on the pod itself replace the sum for cpu, memory and huge pages. A pod being resized in place has three such
sums: what is asked for, what is allocated and what is in force; per resource the largest counts. What is asked for is
left out once the resize was declared infeasible. Before 1.37 (`by_sums` False), the largest of the three was taken for
each container, and then summed. Quantities are summed exactly and rounded up once, at the end: cpu to thousandths, the
rest to units.

Scheduling reads this sum in five ways, which differ in whether the status counts, whether the pod's own requests
count, and whether containers without a cpu or memory request are taken to ask for a default; they are the public
functions `requested`, `nonzero_requested`, `fit_requests`, `score_requests` and `balanced_requests`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from kubecel.names import qualified_name_errors
from kubecel.quantity import MILLI, NANO, milli_of, parse, units_of
from podium.kube.meta import Resources
from podium.kube.pod import Container, ContainerStatus, Pod, ResourceRequirements

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024

_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"
_ATTACHABLE: Final = "attachable-volumes-"
_QUOTA: Final = "requests."
_DEFAULTS: Final[Mapping[str, int]] = {CPU: DEFAULT_MILLI_CPU * MILLI, MEMORY: DEFAULT_MEMORY * NANO}

Nanos = dict[str, int]
"""Resource name to exact amount in nano units."""


def pod_requests(
    pod: Pod, *, use_status: bool = False, pod_level: bool = True, nonzero: bool = False, by_sums: bool = True
) -> dict[str, int]:
    """The pod's requests under their resource names: cpu in thousandths, everything else in units.

    `use_status` takes in-place resizes into account, `pod_level` the requests on the pod itself, and `nonzero` gives
    every container without a cpu or memory request the default one.
    """
    return _rounded(_sum(pod, use_status, pod_level, _DEFAULTS if nonzero else {}, by_sums))


def requested(pod: Pod, *, by_sums: bool = True) -> dict[str, int]:
    """What the pod takes from the node it is on; resources that scheduling does not count are left out."""
    return _counted(_rounded(_sum(pod, True, True, {}, by_sums)))


def nonzero_requested(pod: Pod, *, by_sums: bool = True) -> tuple[int, int]:
    """The cpu (thousandths) and memory (bytes) the pod takes when nodes are compared, defaults included.

    Where the pod itself states requests, a default steps in only for a resource that nothing asks for.
    """
    defaults = _DEFAULTS
    if has_pod_level_requests(pod):
        stated = _sum(pod, True, True, {}, by_sums)
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in stated}
    total = _sum(pod, True, True, defaults, by_sums)
    return milli_of(total.get(CPU, 0)), units_of(total.get(MEMORY, 0))


def fit_requests(pod: Pod) -> dict[str, int]:
    """What must be free on a node before the pod may go there; never negative."""
    amounts = _counted(_rounded(_sum(pod, False, True, {})))
    return {name: max(0, amount) for name, amount in amounts.items()}


def score_requests(pod: Pod) -> dict[str, int]:
    """What the pod adds to a node when its fullness is scored: containers only, defaults included."""
    return pod_requests(pod, pod_level=False, nonzero=True)


def balanced_requests(pod: Pod, *, by_sums: bool = True) -> dict[str, int]:
    """What the pod adds to a node when the balance between resources is scored."""
    return pod_requests(pod, use_status=True, by_sums=by_sums)


def exact_requests(pod: Pod) -> Nanos:
    """What the pod's spec requests, in nano units; nothing is rounded or left out."""
    return _sum(pod, False, True, {})


def exact_limits(pod: Pod) -> Nanos:
    """The pod's limits, summed up as requests are; overhead raises only those there are."""
    spec = pod.spec
    limits = replace(
        spec,
        containers=tuple(map(_limits_as_requests, spec.containers)),
        init_containers=tuple(map(_limits_as_requests, spec.init_containers)),
        resources=None if spec.resources is None else ResourceRequirements(requests=spec.resources.limits),
        overhead={},
    )
    total = _sum(replace(pod, spec=limits), False, True, {})
    for name, amount in _exact(spec.overhead).items():
        if total.get(name):
            total[name] += amount
    return total


def _limits_as_requests(container: Container) -> Container:
    return replace(container, resources=ResourceRequirements(requests=container.resources.limits))


def offered(allocatable: Resources) -> dict[str, int]:
    """What a node offers, in the same units as requests, with the number of pods it takes under "pods"."""
    amounts = _rounded(_exact(allocatable))
    pods = {PODS: amounts[PODS]} if PODS in amounts else {}
    return _counted(amounts) | pods


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod itself, beside its containers, requests cpu, memory or huge pages."""
    return pod.spec.resources is not None and any(map(_allowed_on_pod, pod.spec.resources.requests))


@lru_cache(maxsize=4096)
def is_extended_resource_name(name: str) -> bool:
    """Whether this names a resource that Kubernetes does not define, such as "example.com/gpu"."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA):
        return False
    return not qualified_name_errors(_QUOTA + name)


@lru_cache(maxsize=4096)
def is_scalar_resource_name(name: str) -> bool:
    """Whether scheduling counts this resource beside cpu, memory and ephemeral storage."""
    return name.startswith((_HUGE_PAGES, _ATTACHABLE)) or _NATIVE in name or is_extended_resource_name(name)


def _sum(pod: Pod, use_status: bool, pod_level: bool, defaults: Mapping[str, int], by_sums: bool = True) -> Nanos:
    """A sum, to be read only. One decision asks for several of the same pod, and for most pods they are the same."""
    global _latest  # noqa: PLW0603  (what one decision asks for again)
    use_status = use_status and _has_status(pod)
    pod_level = pod_level and pod.spec.resources is not None
    if not use_status and all(_asks_for_defaults(each) for each in (*pod.spec.containers, *pod.spec.init_containers)):
        defaults = {}
    latest = _latest  # another thread may replace it
    if latest[0] is not pod:
        latest = _latest = pod, {}
    sums, way = latest[1], (use_status, use_status and by_sums, pod_level, *defaults)
    total = sums.get(way)
    if total is None:
        total = sums[way] = _add_up(pod, use_status, pod_level, defaults, by_sums)
    return total


_latest: tuple[Pod | None, dict[tuple[object, ...], Nanos]] = None, {}
"""The pod asked about last, and its sums by the ways they were taken."""


def _has_status(pod: Pod) -> bool:
    """Whether a resize in place may count."""
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses or status.resources)


def _asks_for_defaults(container: Container) -> bool:
    """Whether the container asks for everything itself that defaults could step in for."""
    requests = container.resources.requests
    return CPU in requests and MEMORY in requests


def _add_up(pod: Pod, use_status: bool, pod_level: bool, defaults: Mapping[str, int], by_sums: bool) -> Nanos:
    if not use_status:
        total = _containers(pod, lambda container: _exact(container.resources.requests), defaults)
    elif by_sums:
        total = _largest_sum(pod, defaults)
    else:
        total = _sum_of_largest(pod, defaults)
    if pod_level and pod.spec.resources is not None:
        for name, amount in _pod_level(pod, use_status, by_sums).items():
            total[name] = amount
    _add(total, _exact(pod.spec.overhead))
    return total


RequestsOf = Callable[[Container], Nanos]
"""What a container counts with."""


def _containers(pod: Pod, requests_of: RequestsOf, defaults: Mapping[str, int]) -> Nanos:
    """The sum over the containers, as their two phases have it."""

    def request_of(container: Container) -> Nanos:
        request = requests_of(container)
        for name, amount in defaults.items():
            request.setdefault(name, amount)
        return request

    running: Nanos = {}
    for container in pod.spec.containers:
        _add(running, request_of(container))
    if not pod.spec.init_containers:
        return running
    sidecars: Nanos = {}
    starting: Nanos = {}
    for container in pod.spec.init_containers:
        request = request_of(container)
        if container.sidecar:
            _add(running, request)
            _add(sidecars, request)
            _raise(starting, sidecars)
        else:
            _add(request, sidecars)
            _raise(starting, request)
    _raise(running, starting)
    return running


def _largest_sum(pod: Pod, defaults: Mapping[str, int]) -> Nanos:
    """The most of the three sums. Where a container's status says nothing, its spec counts, unless it is infeasible."""
    statuses, infeasible = _statuses(pod), _resize_is_infeasible(pod)
    whole = pod.status
    if whole.allocated_resources and whole.resources is not None and whole.resources.requests:
        sums = [_exact(whole.allocated_resources), _exact(whole.resources.requests)]
    else:

        def allocated(container: Container) -> Nanos:
            status = statuses.get(container.name)
            if status is not None and status.allocated_resources:
                return _exact(status.allocated_resources)
            return {} if infeasible else _exact(container.resources.requests)

        def actual(container: Container) -> Nanos:
            status = statuses.get(container.name)
            if status is not None and status.resources is not None and status.resources.requests:
                return _exact(status.resources.requests)
            return allocated(container)

        sums = [_containers(pod, allocated, defaults), _containers(pod, actual, defaults)]
    if not infeasible:
        sums.append(_containers(pod, lambda container: _exact(container.resources.requests), defaults))
    largest: Nanos = {}
    for each in sums:
        _raise(largest, each)
    return largest


def _sum_of_largest(pod: Pod, defaults: Mapping[str, int]) -> Nanos:
    """The sum of each container's most; of an ordinary init container the spec alone counts."""
    statuses = _statuses(pod)
    lasting = {each.name for each in (*pod.spec.containers, *pod.spec.init_containers) if each.sidecar}
    lasting |= {each.name for each in pod.spec.containers}

    def most(container: Container) -> Nanos:
        request = _exact(container.resources.requests)
        status = statuses.get(container.name) if container.name in lasting else None
        if status is None or status.resources is None:
            return request
        return _effective(pod, request, status.resources.requests, status.allocated_resources)

    return _containers(pod, most, defaults)


def _pod_level(pod: Pod, use_status: bool, by_sums: bool) -> Nanos:
    """What the pod itself asks for. Names that stand in the status alone count from 1.37 on."""
    assert pod.spec.resources is not None
    stated = _exact(pod.spec.resources.requests)
    effective = stated
    if use_status and pod.status.resources is not None:
        effective = _effective(pod, stated, pod.status.resources.requests, pod.status.allocated_resources)
    names = effective if by_sums and any(map(_allowed_on_pod, stated)) else stated
    return {name: effective.get(name, 0) for name in names if _allowed_on_pod(name)}


def _effective(pod: Pod, stated: Nanos, actual: Resources, allocated: Resources) -> Nanos:
    """The most of the three; what is stated does not count once the node has said it will never fit."""
    most = {} if _resize_is_infeasible(pod) else stated.copy()
    _raise(most, _exact(actual))
    _raise(most, _exact(allocated))
    return most


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    statuses: Iterable[ContainerStatus] = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return {status.name: status for status in statuses}


def _allowed_on_pod(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES)


def _exact(resources: Resources) -> Nanos:
    return {name: parse(amount) for name, amount in resources.items()}


def _add(total: Nanos, more: Nanos) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(highest: Nanos, other: Nanos) -> None:
    for name, amount in other.items():
        if name not in highest or amount > highest[name]:
            highest[name] = amount


def _rounded(total: Nanos) -> dict[str, int]:
    return {name: milli_of(amount) if name == CPU else units_of(amount) for name, amount in total.items()}


def _counted(amounts: dict[str, int]) -> dict[str, int]:
    return {
        name: amount
        for name, amount in amounts.items()
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource_name(name)
    }
