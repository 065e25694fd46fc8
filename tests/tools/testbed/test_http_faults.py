"""The misbehaving API server: each fault as a client sees it, and nothing when no fault is asked for."""

import gc
import http.client
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tools.testbed import ApiClient, ApiError, ControlPlane
from tools.testbed.http_faults import FaultProxy, Faults
from tools.testbed.objects import make_node, make_pod


@contextmanager
def through_proxy(plane: ControlPlane, faults: Faults) -> Iterator[tuple[FaultProxy, ApiClient]]:
    with (
        FaultProxy(plane, Faults(), seed=1) as proxy,
        ApiClient(proxy.url, ca_path=plane.ca_path, token=plane.token) as client,
    ):
        client.find_resource("Pod")  # what it must know first, it learns undisturbed
        proxy.faults = faults
        yield proxy, client


def test_without_faults_everything_passes(empty_control_plane: ControlPlane) -> None:
    with through_proxy(empty_control_plane, Faults()) as (proxy, client):
        client.create_all([make_node("one"), make_pod("a"), make_pod("b")])
        assert {pod["metadata"]["name"] for pod in client.list("Pod")} == {"a", "b"}
        client.bind("a", "one")
        version = client.list_response("Pod")["metadata"]["resourceVersion"]
        events = client.watch("Pod", resource_version=version)
        client.delete("Pod", "b")
        assert next(events)["object"]["metadata"]["name"] == "b"
        events.close()
        assert empty_control_plane.client.get("Pod", "a")["spec"]["nodeName"] == "one"
        assert proxy.injected == []


@pytest.mark.parametrize(
    ("faults", "code"),
    [(Faults(conflict=1), 409), (Faults(too_many=1), 429), (Faults(server_error=1), 500)],
    ids=["conflict", "too_many", "server_error"],
)
def test_a_refused_write_is_not_carried_out(empty_control_plane: ControlPlane, faults: Faults, code: int) -> None:
    with through_proxy(empty_control_plane, faults) as (proxy, client):
        with pytest.raises(ApiError) as caught:
            client.create(make_node())
        assert caught.value.code == code
        assert [each.method for each in proxy.injected] == ["POST"]
    assert empty_control_plane.client.list("Node") == []


def test_a_false_error_is_carried_out_all_the_same(empty_control_plane: ControlPlane) -> None:
    with through_proxy(empty_control_plane, Faults(false_error=1)) as (_, client), pytest.raises(ApiError, match="500"):
        client.create(make_node())
    assert len(empty_control_plane.client.list("Node")) == 1


def test_a_conflict_concerns_writes_only(empty_control_plane: ControlPlane) -> None:
    with through_proxy(empty_control_plane, Faults(conflict=1)) as (_, client):
        assert client.list("Node") == []


@pytest.mark.parametrize(("faults", "created"), [(Faults(lost_answer=1), 1), (Faults(refused=1), 0)])
def test_a_hung_up_connection_tells_nothing(empty_control_plane: ControlPlane, faults: Faults, created: int) -> None:
    with (
        through_proxy(empty_control_plane, faults) as (proxy, _),
        # Not the client that learned the kinds: it would try once more, as its connection was used before.
        ApiClient(proxy.url, ca_path=empty_control_plane.ca_path, token=empty_control_plane.token) as client,
        pytest.raises((http.client.HTTPException, OSError)),
    ):
        client.request("POST", "/api/v1/nodes", make_node())
    assert len(empty_control_plane.client.list("Node")) == created


@pytest.mark.parametrize("read", [lambda client: client.list("Pod"), lambda client: list(client.watch("Pod"))])
def test_lists_and_watches_break_in_the_middle(
    empty_control_plane: ControlPlane, read: Callable[[ApiClient], object]
) -> None:
    empty_control_plane.client.create_all([make_pod(f"pod-{number}") for number in range(100)])
    with through_proxy(empty_control_plane, Faults(truncated=1)) as (proxy, client):
        with pytest.raises((http.client.IncompleteRead, ValueError)):
            read(client)
        assert proxy.counts == {"truncated": 1}


def test_open_watches_can_be_cut_from_outside(empty_control_plane: ControlPlane) -> None:
    with through_proxy(empty_control_plane, Faults()) as (proxy, client):
        version = client.list_response("Pod")["metadata"]["resourceVersion"]
        events = client.watch("Pod", resource_version=version)
        client.create(make_pod())
        next(events)
        assert proxy.cut_watches() == 1
        assert list(events) == []
        assert proxy.counts == {"cut": 1}


def test_a_client_that_never_closes_leaves_nothing_open(control_plane: ControlPlane) -> None:
    gc.collect()  # what tests before left is none of this one's
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always")
        with FaultProxy(control_plane, Faults()) as proxy:
            client = ApiClient(proxy.url, ca_path=control_plane.ca_path, token=control_plane.token)
            client.list("Node")
        del proxy
        gc.collect()
    client.close()
    assert [str(each.message) for each in left_open if "unclosed" in str(each.message)] == []
