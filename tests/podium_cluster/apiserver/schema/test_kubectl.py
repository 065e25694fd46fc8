"""The real kubectl reads the embedded API's OpenAPI: it explains, validates, applies and patches without complaint."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.podium_cluster.apiserver.kubectl import Kubectl, printed
from tests.podium_cluster.apiserver.schema.custom_cases import definition, struct
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed.cluster import ControlPlane

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
THING = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 3}}


@pytest.fixture(scope="module")
def kubectl(testbed_programs: None) -> Iterator[Kubectl]:
    with EmbeddedServer() as server:
        yield Kubectl(server.kubeconfig_path, server.folder)


def test_fields_are_explained_as_by_the_server_but_for_texts(control_plane: ControlPlane, kubectl: Kubectl) -> None:
    real = Kubectl(control_plane.kubeconfig_path, control_plane.folder)
    for path in ("pod.spec.containers.resources", "deployment.spec.strategy", "node.status"):
        fields = [
            [line for line in printed(each("explain", path, "--recursive")).splitlines() if "<" in line]
            for each in (real, kubectl)
        ]
        assert len(fields[0]) > 2
        assert [line for line in fields[1] if line.strip() != "<empty>"] == fields[0]


def test_a_field_that_is_not_there_is_not_explained(kubectl: Kubectl) -> None:
    assert 'field "nonsense" does not exist' in kubectl("explain", "pod.spec.nonsense").err


def test_kubectl_lets_the_server_validate(kubectl: Kubectl) -> None:
    wrong = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "foo": 1}}  # type: ignore[dict-item]
    refused = kubectl("create", "--validate=strict", "-f", "-", stdin=json.dumps(wrong))
    assert 'strict decoding error: unknown field "spec.foo"' in refused.err
    warned = kubectl("create", "--validate=warn", "-f", "-", stdin=json.dumps(wrong))
    assert (warned.code, warned.err) == (0, 'Warning: unknown field "spec.foo"\n')


def test_custom_resources_are_explained_applied_and_patched(kubectl: Kubectl, tmp_path: Path) -> None:
    schema = struct(spec=struct(size={"type": "integer", "maximum": 10}, color={"type": "string", "default": "red"}))
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    crd = definition(schema, additionalPrinterColumns=columns)
    assert "created" in printed(kubectl("create", "-f", "-", stdin=json.dumps(crd)))
    printed(kubectl("wait", "--for=condition=Established", "crd/things.example.com", "--timeout=5s"))
    assert "size\t<integer>" in printed(kubectl("explain", "things.spec"))
    assert "created" in printed(kubectl("apply", "-f", "-", stdin=json.dumps(THING)))
    assert "unchanged" in printed(kubectl("apply", "-f", "-", stdin=json.dumps(THING)))
    bigger = json.dumps({**THING, "spec": {"size": 4}})
    assert "configured" in printed(kubectl("apply", "-f", "-", stdin=bigger))
    assert "serverside-applied" in printed(kubectl("apply", "--server-side", "-f", "-", stdin=bigger))
    assert printed(kubectl("get", "th")).split() == ["NAME", "SIZE", "t", "4"]
    too_big = kubectl("patch", "thing", "t", "--type=merge", "-p", '{"spec":{"size":99}}')
    assert "spec.size in body should be less than or equal to 10" in too_big.err
    assert "deleted" in printed(kubectl("delete", "crd", "things.example.com"))
    assert "the server doesn't have a resource type" in kubectl("get", "things", f"--cache-dir={tmp_path}").err
