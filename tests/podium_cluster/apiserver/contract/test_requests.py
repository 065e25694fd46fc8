"""Requests that are wrong before any object is looked at: paths, methods, media types, bodies, kinds, options."""

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.objects import CONFIG_MAPS, DEPLOYMENTS, PODS, config_map, deployment, pod
from tests.podium_cluster.apiserver.contract.session import Session


@contract
def test_paths_that_lead_nowhere(api: Session) -> None:
    for path in (
        "/api/v1/nothing",
        "/api/v1/namespaces/{ns}/nothing",
        "/apis/none.example.com/v1/things",
        "/apis/apps/v9/deployments",
        "/api/v1/namespaces/{ns}/pods/p/nothing",
        "/api/v1/namespaces/{ns}/nodes",
        "/api/v1/pods/p",
        "/api/v2/pods",
        "/apis/apps/v1/namespaces/{ns}/deployments/d/binding",
    ):
        api.get(path)


@contract
def test_methods_that_are_not_allowed(api: Session) -> None:
    api.create(CONFIG_MAPS, config_map(), note=False)
    for method, path in (
        ("PUT", CONFIG_MAPS),
        ("PATCH", CONFIG_MAPS),
        ("POST", f"{CONFIG_MAPS}/c"),
        ("DELETE", f"{DEPLOYMENTS}/d/status"),
        ("POST", f"{DEPLOYMENTS}/d/scale"),
        ("GET", "/api/v1/namespaces/{ns}/bindings"),
        ("POST", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/configmaps"),
    ):
        found = api.call(method, path, b"{}", content_type="application/json", note=False)
        api.note(method, path, found.code, found.reason, found.message)


@contract
def test_bodies_that_cannot_be_read(api: Session) -> None:
    for body in (b"", b"{", b"[]", b'"x"', b"nonsense", b'{"metadata": }', b'{"metadata": {"name": "c"}', b"null"):
        found = api.call("POST", CONFIG_MAPS, body, note=False)
        api.note(body.decode(), found.code, found.reason, found.message)


@contract
def test_media_types_that_are_not_spoken(api: Session) -> None:
    found = api.call("POST", CONFIG_MAPS, b"x", content_type="text/plain", note=False)
    assert (found.code, found.reason) == (415, "UnsupportedMediaType")
    refused = api.get(CONFIG_MAPS, headers={"Accept": "text/html"}, note=False)
    assert (refused.code, refused.reason) == (406, "NotAcceptable")
    assert api.get(CONFIG_MAPS, headers={"Accept": "*/*"}).code == 200
    assert api.get(CONFIG_MAPS, headers={"Accept": "application/xml, application/json;q=0.5"}).code == 200
    assert api.get(CONFIG_MAPS, headers={"Accept": ""}).code == 200


@contract
def test_a_body_may_be_yaml(api: Session) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  when: '2020-01-01'\n"
    assert api.call("POST", CONFIG_MAPS, text, content_type="application/yaml").code == 201


@contract
def test_objects_of_another_kind_or_version(api: Session) -> None:
    for kind, version in (
        ("Pod", "v1"),
        ("ConfigMap", "v2"),
        ("Deployment", "apps/v1"),
        ("Nonsense", "v1"),
        ("ConfigMap", "apps/v1"),
    ):
        api.create(CONFIG_MAPS, {"apiVersion": version, "kind": kind, "metadata": {"name": "c"}})
    assert api.create(CONFIG_MAPS, {"metadata": {"name": "c"}}).code == 201


@contract
def test_values_of_the_wrong_type(api: Session) -> None:
    for data in ({"a": 1}, "x", ["x"], {"a": {"b": "c"}}):
        api.create(CONFIG_MAPS, {**config_map(), "data": data})
    wrong = deployment()
    wrong["spec"]["replicas"] = "three"
    api.create(DEPLOYMENTS, wrong)
    wrong["spec"]["replicas"] = 1.5
    api.create(DEPLOYMENTS, wrong)
    given = pod()
    given["spec"]["containers"] = {"name": "c"}
    api.create(PODS, given)
    given = pod()
    given["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}
    api.create(PODS, given)
    given = pod()
    given["metadata"]["labels"] = {"a": True}
    api.create(PODS, given)
    given = pod()
    given["metadata"]["creationTimestamp"] = "yesterday"
    api.create(PODS, given)


@contract
def test_unknown_and_repeated_fields(api: Session) -> None:
    for validation in ("", "Warn", "Strict", "Ignore", "Sometimes"):
        name = f"c-{validation.lower() or 'none'}"
        given = {**config_map(name, a="1"), "extra": {"b": 2}}
        given["metadata"]["more"] = 1
        query = {"fieldValidation": validation} if validation else {}
        found = api.create(CONFIG_MAPS, given, query=query)
        api.note(found.headers.get("warning"))
    text = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "twice"}, "data": {"a": "1", "a": "2"}}'
    api.note(api.call("POST", CONFIG_MAPS, text, query={"fieldValidation": "Strict"}).code)
    api.note(api.call("POST", CONFIG_MAPS, text).headers.get("warning"))


@contract
def test_options_that_make_no_sense(api: Session) -> None:
    for query in ({"dryRun": "Maybe"}, {"fieldManager": "x" * 129}, {"fieldManager": "a\x01b"}):
        api.create(CONFIG_MAPS, config_map(), query=query)
    api.create(CONFIG_MAPS, config_map(), note=False)
    api.put(f"{CONFIG_MAPS}/c", config_map(), query={"dryRun": "Maybe"})
    api.delete(f"{CONFIG_MAPS}/c", query={"gracePeriodSeconds": "x"})
    api.delete(f"{CONFIG_MAPS}/c", {"kind": "Nonsense", "apiVersion": "v1"})


@contract
def test_names_in_the_path_are_checked(api: Session) -> None:
    for name in ("Upper", "with%20space", "..", "a_b", "x" * 300):
        found = api.get(f"{CONFIG_MAPS}/{name}", note=False)
        api.note(name, found.code, found.reason)
