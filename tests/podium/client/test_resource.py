import pytest

from podium.client import RESOURCES, ApiResource
from podium.kube import KINDS, PodGroup
from podium.kube.custom_object import CustomObject
from tools.testbed import ControlPlane


@pytest.mark.parametrize(
    ("path", "name", "group_version"),
    [
        ("/api/v1/pods", "pods", "v1"),
        ("/api/v1/namespaces", "namespaces", "v1"),
        ("/api/v1/namespaces/web/pods", "pods", "v1"),
        ("/apis/storage.k8s.io/v1/csinodes", "csinodes.storage.k8s.io", "storage.k8s.io/v1"),
        ("/apis/x-k8s.io/v1beta1/namespaces/web/gangs", "gangs.x-k8s.io", "x-k8s.io/v1beta1"),
    ],
)
def test_the_path_says_name_and_group(path: str, name: str, group_version: str) -> None:
    resource = ApiResource[object](path)
    assert (resource.name, resource.group_version) == (name, group_version)


def test_the_rule_that_is_needed() -> None:
    rule = 'apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list", "watch"]'
    assert ApiResource[object]("/apis/policy/v1/poddisruptionbudgets").rule == rule


def test_the_server_serves_each_kind_at_its_path(control_plane: ControlPlane) -> None:
    for (api_version, kind), type_ in KINDS.items():
        if type_ in (CustomObject, PodGroup):
            continue  # served where its CustomResourceDefinition is installed, or a gate of the API server is on
        served = control_plane.client.resource(f"{api_version}/{kind}")
        assert RESOURCES[type_].path == served.path(None)
        assert RESOURCES[type_].type is type_
