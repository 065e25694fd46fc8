"""What a pod asks for: the specification's examples, and properties that hold for any pod."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubecel.quantity import MILLI, NANO
from podium.kube import Condition, Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements, Resources
from podium.kube.requests import (
    balanced_requests,
    exact_limits,
    exact_requests,
    fit_requests,
    has_pod_level_requests,
    is_extended_resource_name,
    is_scalar_resource_name,
    nonzero_requested,
    offered,
    pod_requests,
    requested,
    score_requests,
)

DEFAULT_MEMORY = 209715200


def asks(**requests: str | int) -> ResourceRequirements:
    return ResourceRequirements(requests={name.replace("_", "-"): amount for name, amount in requests.items()})


def container(name: str, restart: str | None = None, **requests: str | int) -> Container:
    return Container(name=name, resources=asks(**requests), restart_policy=restart)


APPS = (container("c1", cpu="200m"), container("c2", cpu="300m"))
INITS = (
    container("i1", cpu="600m"),
    container("i2", restart="Always", cpu="100m"),
    container("i3", cpu="500m"),
)
OVERHEAD: Resources = {"cpu": "50m"}


def test_init_containers_and_sidecars_raise_the_sum_and_overhead_comes_on_top() -> None:
    pod = Pod(spec=PodSpec(containers=APPS, init_containers=INITS, overhead=OVERHEAD))
    assert fit_requests(pod) == {"cpu": 650}
    assert requested(pod) == {"cpu": 650}
    assert balanced_requests(pod) == {"cpu": 650}


def limited(name: str, restart: str | None = None, **limits: str | int) -> Container:
    resources = ResourceRequirements(requests={"cpu": "1m"}, limits=dict(limits))
    return Container(name=name, resources=resources, restart_policy=restart)


def test_limits_are_summed_up_as_requests_are_and_overhead_raises_only_those_there_are() -> None:
    apps = (limited("c1", cpu="200m"), limited("c2", cpu="300m"))
    inits = (limited("i1", cpu="600m"), limited("i2", restart="Always", cpu="100m"), limited("i3", cpu="500m"))
    overhead: Resources = {"cpu": "50m", "memory": "1Gi"}
    pod = Pod(spec=PodSpec(containers=apps, init_containers=inits, overhead=overhead))
    assert exact_limits(pod) == {"cpu": 650 * MILLI}
    assert exact_requests(pod) == {"cpu": 53 * MILLI, "memory": 2**30 * NANO}


def test_limits_on_the_pod_itself_replace_those_of_its_containers() -> None:
    own = ResourceRequirements(requests={"cpu": 3}, limits={"cpu": 4, "example.com/gpu": 1})
    pod = Pod(spec=PodSpec(containers=(limited("a", cpu=1, memory=5),), resources=own))
    assert exact_limits(pod) == {"cpu": 4 * NANO, "memory": 5 * NANO}


def test_an_init_container_needs_room_beside_the_sidecars_started_before_it_only() -> None:
    app, sidecar = container("a", cpu="100m"), container("s", restart="Always", cpu="100m")
    init = container("i", cpu="500m")
    assert fit_requests(Pod(spec=PodSpec(containers=(app,), init_containers=(sidecar, init)))) == {"cpu": 600}
    assert fit_requests(Pod(spec=PodSpec(containers=(app,), init_containers=(init, sidecar)))) == {"cpu": 500}


def test_what_must_be_free_on_a_node_is_never_negative() -> None:
    pod = Pod(spec=PodSpec(containers=(container("a", cpu="-1", memory="1"),)))
    assert fit_requests(pod) == {"cpu": 0, "memory": 1}
    assert requested(pod) == {"cpu": -1000, "memory": 1}


def test_pod_level_requests_replace_the_containers_except_when_fit_is_scored() -> None:
    spec = PodSpec(containers=APPS, init_containers=INITS, overhead=OVERHEAD, resources=asks(cpu="1"))
    pod = Pod(spec=spec)
    assert fit_requests(pod)["cpu"] == 1050
    assert requested(pod)["cpu"] == 1050
    assert balanced_requests(pod)["cpu"] == 1050
    assert score_requests(pod)["cpu"] == 650


def test_a_container_without_a_cpu_request_counts_the_default_only_in_nonzero_sums() -> None:
    apps = (container("c1"), container("c2", cpu="300m"))
    pod = Pod(spec=PodSpec(containers=apps, init_containers=INITS, overhead=OVERHEAD))
    assert fit_requests(pod)["cpu"] == 650
    assert nonzero_requested(pod)[0] == 650
    without = Pod(spec=PodSpec(containers=apps, init_containers=INITS[1:2], overhead=OVERHEAD))
    assert fit_requests(without)["cpu"] == 450
    assert nonzero_requested(without)[0] == 550
    assert score_requests(without)["cpu"] == 550


def test_a_pod_without_requests_counts_100m_and_200_mebibytes_per_container() -> None:
    pod = Pod(spec=PodSpec(containers=(container("a"), container("b"))))
    assert nonzero_requested(pod) == (200, 2 * DEFAULT_MEMORY)
    assert score_requests(pod) == {"cpu": 200, "memory": 2 * DEFAULT_MEMORY}
    assert requested(pod) == {}
    assert balanced_requests(pod) == {}


def test_an_explicit_zero_is_not_replaced_by_the_default() -> None:
    pod = Pod(spec=PodSpec(containers=(container("a", cpu="0", memory=0),)))
    assert nonzero_requested(pod) == (0, 0)


def test_a_default_applies_to_init_containers_too() -> None:
    pod = Pod(spec=PodSpec(containers=(container("a", cpu="10m", memory="1"),), init_containers=(container("i"),)))
    assert nonzero_requested(pod) == (100, DEFAULT_MEMORY)


@pytest.mark.parametrize(
    ("pod_level", "containers", "nonzero"),
    [
        ({"cpu": "1"}, (container("a"),), (1000, DEFAULT_MEMORY)),
        ({"cpu": "1"}, (container("a", memory="1Mi"), container("b")), (1000, 1048576)),
        ({"cpu": "1", "memory": "1Gi"}, (container("a"),), (1000, 2**30)),
        ({"hugepages-2Mi": "2Mi"}, (container("a"), container("b")), (200, 2 * DEFAULT_MEMORY)),
        ({"example.com/gpu": "1"}, (container("a", memory="1Mi"), container("b")), (200, DEFAULT_MEMORY + 1048576)),
    ],
)
def test_with_pod_level_requests_a_default_needs_the_resource_to_be_absent_everywhere(
    pod_level: Resources, containers: tuple[Container, ...], nonzero: tuple[int, int]
) -> None:
    pod = Pod(spec=PodSpec(containers=containers, resources=ResourceRequirements(requests=pod_level)))
    assert nonzero_requested(pod) == nonzero


def test_only_cpu_memory_and_huge_pages_can_be_requested_by_the_pod_itself() -> None:
    resources = ResourceRequirements(requests={"example.com/gpu": "5", "hugepages-2Mi": "4Mi"})
    pod = Pod(spec=PodSpec(containers=(container("a", cpu="1"),), resources=resources))
    assert fit_requests(pod) == {"cpu": 1000, "hugepages-2Mi": 4194304}
    assert has_pod_level_requests(pod)
    assert not has_pod_level_requests(Pod(spec=PodSpec(resources=asks(storage="1"))))


def resized(spec: str, reason: str = "Deferred", sidecar: bool = False, with_status: bool = True) -> Pod:
    """A pod with 500m in force and 400m allocated."""
    one = Container(name="a", resources=asks(cpu=spec), restart_policy="Always" if sidecar else None)
    resources = asks(cpu="500m") if with_status else None
    status = ContainerStatus(name="a", resources=resources, allocated_resources={"cpu": "400m"})
    return Pod(
        spec=PodSpec(containers=() if sidecar else (one,), init_containers=(one,) if sidecar else ()),
        status=PodStatus(
            conditions=(Condition(type="PodResizePending", reason=reason),),
            container_statuses=() if sidecar else (status,),
            init_container_statuses=(status,) if sidecar else (),
        ),
    )


@pytest.mark.parametrize("sidecar", [False, True])
@pytest.mark.parametrize(
    ("spec", "reason", "cpu"),
    [
        ("300m", "", 500),
        ("300m", "Infeasible", 500),
        ("800m", "Deferred", 800),
        ("800m", "Infeasible", 500),
    ],
)
def test_a_pod_being_resized_counts_the_most_unless_infeasible(spec: str, reason: str, cpu: int, sidecar: bool) -> None:
    pod = resized(spec, reason, sidecar)
    assert requested(pod)["cpu"] == cpu
    assert nonzero_requested(pod)[0] == cpu
    assert balanced_requests(pod)["cpu"] == cpu
    asked = int(spec.removesuffix("m"))
    assert fit_requests(pod)["cpu"] == asked
    assert score_requests(pod)["cpu"] == asked


def test_a_status_without_resources_does_not_count() -> None:
    assert requested(resized("300m", with_status=False), by_sums=False)["cpu"] == 300


def test_an_ordinary_init_container_counts_with_its_status_from_1_37_on() -> None:
    pod = Pod(
        spec=PodSpec(init_containers=(container("i", cpu="1"),)),
        status=PodStatus(init_container_statuses=(ContainerStatus(name="i", resources=asks(cpu="9")),)),
    )
    assert (requested(pod)["cpu"], requested(pod, by_sums=False)["cpu"]) == (9000, 1000)


def test_only_the_first_resize_condition_speaks() -> None:
    pending = [Condition(type="PodResizePending", reason=reason) for reason in ("Deferred", "Infeasible")]
    pod = Pod(
        spec=PodSpec(containers=(container("a", cpu="2"),)),
        status=PodStatus(
            conditions=tuple(pending), container_statuses=(ContainerStatus(name="a", resources=asks(cpu="1")),)
        ),
    )
    assert requested(pod)["cpu"] == 2000


@pytest.mark.parametrize(
    ("reason", "cpu", "memory"),
    [("", 3000, 2**30), ("Infeasible", 2000, 0)],
)
def test_pod_level_requests_are_resized_likewise(reason: str, cpu: int, memory: int) -> None:
    pod = Pod(
        spec=PodSpec(containers=(container("a", cpu="1"),), resources=asks(cpu="3", memory="1Gi")),
        status=PodStatus(
            resources=asks(cpu="2"),
            allocated_resources={"cpu": "1500m"},
            conditions=(Condition(type="PodResizePending", reason=reason),),
        ),
    )
    assert requested(pod, by_sums=False) == {"cpu": cpu, "memory": memory}
    assert requested(pod) == {"cpu": cpu} | ({"memory": memory} if memory else {})


def test_amounts_are_summed_exactly_and_rounded_once() -> None:
    pod = Pod(spec=PodSpec(containers=tuple(container(f"c{i}", cpu="100u", memory="100m") for i in range(10))))
    assert fit_requests(pod) == {"cpu": 1, "memory": 1}


def test_resources_that_scheduling_does_not_count_are_dropped() -> None:
    names = ["cpu", "memory", "ephemeral-storage", "pods", "storage", "hugepages-1Gi", "example.com/gpu"]
    pod = Pod(spec=PodSpec(containers=(Container(resources=ResourceRequirements(requests=dict.fromkeys(names, "1"))),)))
    counted = {"cpu": 1000, "memory": 1, "ephemeral-storage": 1, "hugepages-1Gi": 1, "example.com/gpu": 1}
    assert requested(pod) == counted
    assert fit_requests(pod) == counted
    assert pod_requests(pod) == counted | {"pods": 1, "storage": 1}


def test_a_node_offers_counted_resources_and_a_number_of_pods() -> None:
    allocatable: Resources = {"cpu": "3920m", "memory": "7.5Gi", "pods": "110", "example.com/gpu": 2, "storage": "1"}
    assert offered(allocatable) == {"cpu": 3920, "memory": 8053063680, "pods": 110, "example.com/gpu": 2}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("cpu", False, False),
        ("pods", False, False),
        ("example.com/gpu", True, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("kubernetes.io/thing", False, True),
        ("sub.kubernetes.io/thing", False, True),
        ("requests.example.com/gpu", False, False),
        ("example.com/bad name", False, False),
        ("example.com/a/b", False, False),
        ("example.com/" + "a" * 64, False, False),
        ("e" * 245 + "/gpu", False, False),
    ],
)
def test_resource_names(name: str, extended: bool, scalar: bool) -> None:
    assert is_extended_resource_name(name) is extended
    assert is_scalar_resource_name(name) is scalar


amounts = st.sampled_from(["0", "1m", "150m", "1", "2500u", "1Ki", "1.5Gi", "1e3"])
containers = st.builds(
    lambda requests, restart: Container(
        name="c", resources=ResourceRequirements(requests=requests), restart_policy=restart
    ),
    st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), amounts),
    st.sampled_from([None, "Always"]),
)
pods = st.builds(
    lambda apps, inits: Pod(spec=PodSpec(containers=tuple(apps), init_containers=tuple(inits))),
    st.lists(containers, max_size=3),
    st.lists(containers, max_size=3),
)


@given(pods)
def test_defaults_never_lower_a_request(pod: Pod) -> None:
    plain, filled = pod_requests(pod), pod_requests(pod, nonzero=True)
    assert all(filled[name] >= amount for name, amount in plain.items())


@given(pods, containers)
def test_one_more_container_never_lowers_a_request(pod: Pod, more: Container) -> None:
    before = pod_requests(pod)
    grown = Pod(spec=PodSpec(containers=(*pod.spec.containers, more), init_containers=pod.spec.init_containers))
    assert all(pod_requests(grown)[name] >= amount for name, amount in before.items())


@given(pods)
def test_without_a_resize_the_status_changes_nothing(pod: Pod) -> None:
    assert pod_requests(pod, use_status=True) == pod_requests(pod)
