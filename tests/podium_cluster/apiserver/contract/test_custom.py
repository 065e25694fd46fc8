"""Custom kinds: a definition makes a kind, its schema is kept to, and it goes with the definition."""

from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.session import APPLY, JSON_PATCH, MERGE, STRATEGIC, Session

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Object = dict[str, Any]


def definition(group: str, **spec: Any) -> Object:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
                        },
                    },
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version], **spec},
    }


def defined(api: Session, **fields: Any) -> tuple[str, str]:
    """Defines the kind, with these fields too, and waits until it is served; its group and its collection's path."""
    group = f"{api.namespace}.example.com"
    assert api.create(DEFINITIONS, with_fields(definition(group), fields), note=False).code == 201
    path = f"/apis/{group}/v1/namespaces/{{ns}}/things"
    for _ in range(200):
        if api.get(path, note=False).code == 200:
            break
    else:
        raise AssertionError("the kind was never served")
    return group, path


def with_fields(made: Object, fields: Object) -> Object:
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].update(fields)
    return made


def thing(group: str, name: str = "t", **spec: Any) -> Object:
    return {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 1, **spec}}


@contract
def test_a_custom_object_is_defaulted_pruned_and_kept(api: Session) -> None:
    group, path = defined(api)
    created = api.create(path, thing(group, unknown=1))
    assert created.body["spec"] == {"size": 1, "color": "red"}
    api.get(f"{path}/t")
    api.get(path)
    api.note(created.headers.get("warning"))
    api.create(path, thing(group, "strict", unknown=1), query={"fieldValidation": "Strict"})
    api.delete(f"{DEFINITIONS}/things.{group}", note=False)


@contract
def test_a_custom_object_must_keep_to_its_schema(api: Session) -> None:
    group, path = defined(api)
    specs: tuple[Object, ...] = (
        {"size": 0},
        {"size": "x"},
        {"size": None},
        {"color": "green"},
        {"parts": [{"name": "a"}, {"name": "a"}]},
        {"parts": [{}]},
        {"parts": "x"},
    )
    for spec in specs:
        api.create(path, thing(group, **spec))
    api.create(path, {**thing(group), "spec": {}})
    api.create(
        path, {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "Bad_Name"}, "spec": {"size": 1}}
    )
    api.delete(f"{DEFINITIONS}/things.{group}", note=False)


@contract
def test_custom_objects_are_patched_but_not_strategically(api: Session) -> None:
    group, path = defined(api)
    api.create(path, thing(group), note=False)
    assert api.patch(f"{path}/t", {"spec": {"size": 2}}, MERGE).body["spec"]["size"] == 2
    assert api.patch(f"{path}/t", [{"op": "replace", "path": "/spec/size", "value": 3}], JSON_PATCH).code == 200
    refused = api.patch(f"{path}/t", {"spec": {"size": 4}}, STRATEGIC)
    assert refused.code == 415
    api.patch(f"{path}/t", {"spec": {"size": 0}}, MERGE)
    api.delete(f"{DEFINITIONS}/things.{group}", note=False)


@contract
def test_custom_objects_are_applied_with_their_lists_as_maps(api: Session) -> None:
    group, path = defined(api)
    api.apply(f"{path}/t", thing(group, parts=[{"name": "a", "weight": 1}]), "one")
    shared = api.apply(f"{path}/t", thing(group, parts=[{"name": "b"}]), "two")
    assert [part["name"] for part in shared.body["spec"]["parts"]] == ["a", "b"]
    api.apply(f"{path}/t", thing(group, size=5), "two")
    api.call("PATCH", f"{path}/t", b"{}", content_type=APPLY, query={"fieldManager": "m"})
    api.delete(f"{DEFINITIONS}/things.{group}", note=False)


@contract
def test_the_status_of_a_custom_object_is_written_apart(api: Session) -> None:
    group, path = defined(api)
    created = api.create(path, {**thing(group), "status": {"a": 1}}).body
    assert "status" not in created
    assert api.patch(f"{path}/t/status", {"status": {"ready": True}}, MERGE).body["status"] == {"ready": True}
    assert api.patch(f"{path}/t", {"spec": {"size": 7}}, MERGE).body["metadata"]["generation"] == 2
    created["spec"]["size"] = 9
    api.put(
        f"{path}/t", {key: value for key, value in created.items() if key != "metadata"} | {"metadata": {"name": "t"}}
    )
    api.get(f"{path}/t/scale")
    api.delete(f"{DEFINITIONS}/things.{group}", note=False)


@contract
def test_a_kind_goes_with_its_definition(api: Session) -> None:
    group, path = defined(api)
    for _ in range(400):  # discovery follows a little later
        if api.get(f"/apis/{group}/v1", note=False).code == 200:
            break
    api.get(f"/apis/{group}/v1")
    api.delete(f"{DEFINITIONS}/things.{group}", keep=("kind",))
    for _ in range(400):
        if api.get(path, note=False).code == 404:
            break
    api.get(f"/apis/{group}/v1/namespaces/{{ns}}/others")


@contract
def test_definitions_that_make_no_sense(api: Session) -> None:
    group = f"{api.namespace}.example.com"
    wrong = definition(group)
    wrong["metadata"]["name"] = "other"
    api.create(DEFINITIONS, wrong)
    api.create(DEFINITIONS, definition(group, scope="Everywhere"))
    without = definition(group)
    del without["spec"]["versions"][0]["schema"]
    api.create(DEFINITIONS, without)


WRONG_PATTERNS = (
    "(a",
    "a)",
    "a**",
    "*a",
    "[a",
    "[z-a]",
    r"\y",
    r"(a)\1",
    "(?=a)",
    "(?<=a)",
    "(?<!a)",
    "(?#a)",
    "(?P<n",
    "(?P<>a)",
    "(?P=n)",
    "a{1001}",
    "a{2,1}",
    "(a{100}){100}",
    "a\\",
    "[[:letters:]]",
    r"\pX",
    r"\p{^}",
    r"\8",
    r"\x{110000}",
    r"\xg",
    "a{3}{3}",
    "a+*",
    "(?z)",
    "(|*)",
    "[\\",
)


@contract
def test_a_pattern_that_is_none_is_refused(api: Session) -> None:
    for number, pattern in enumerate(WRONG_PATTERNS):
        field = {"name": {"type": "string", "pattern": pattern}}
        made = with_fields(definition(f"p{number}.{api.namespace}.example.com"), field)
        assert api.create(DEFINITIONS, made).code == 422


PATTERNS = (
    (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", ("a", "a-b", "-a", "a\n", "")),
    (r"^(a+)+$", ("aaa", "aab")),
    (r"^\pL+\d$", ("é1", "é٣", "1")),
    (r"(?m)^b$", ("a\nb\nc", "ab")),
    (r"(?i)straße", ("STRASSE", "STRAßE", "x")),
    (r"\bfoo\b", ("a foo", "afoo", "éfoo")),
    (r"^[\w-]+@[^\s]+\.\D{2,3}$", ("a-b@x.com", "a@x.c", "ä@x.com")),
    (r"^\Qa.b\E{2}$", ("a.bb", "a.ba.b")),
    (r"^a{,2}$", ("a{,2}", "aa")),
    (r"^[[:upper:][:^ascii:]]+$", ("Aé", "a")),
    (r"a|^$", ("", "b")),
    (r"^.$", ("😀", "\n", "ab")),
)


@contract
def test_patterns_mean_what_they_mean_in_go(api: Session) -> None:
    fields = {f"f{number}": {"type": "string", "pattern": pattern} for number, (pattern, _) in enumerate(PATTERNS)}
    group, path = defined(api, **fields)
    for number, (_, values) in enumerate(PATTERNS):
        for value in values:
            api.create(path, thing(group, **{f"f{number}": value}), query={"dryRun": "All"})
    api.delete(f"{DEFINITIONS}/things.{group}", note=False)


def ruled(api: Session) -> tuple[str, str]:
    """Defines the kind with rules at its root, on its spec, parts and status."""
    group = f"{api.namespace}.example.com"
    made = with_fields(definition(group), {"limit": {"type": "integer", "default": 10}})
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = [
        {"rule": "self.metadata.name.size() < 6", "messageExpression": "self.metadata.name + ' is too long'"},
        {"rule": "!has(self.status) || self.status.done <= self.spec.size", "fieldPath": ".status.done"},
    ]
    spec = schema["properties"]["spec"]
    spec["x-kubernetes-validations"] = [
        {"rule": "self.size <= self.limit", "message": "size is above its limit", "fieldPath": ".size"},
        {"rule": "self.color == oldSelf.color", "reason": "FieldValueForbidden", "message": "the color stays"},
    ]
    weight = spec["properties"]["parts"]["items"]["properties"]["weight"]
    weight["x-kubernetes-validations"] = [{"rule": "self >= oldSelf", "message": "a weight only grows"}]
    done = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    schema["properties"]["status"] = {"type": "object", "properties": {"done": done}}
    assert api.create(DEFINITIONS, made, note=False).code == 201
    path = f"/apis/{group}/v1/namespaces/{{ns}}/things"
    while api.get(path, note=False).code != 200:
        pass
    return group, path


@contract
def test_rules_of_a_definition_are_kept_to(api: Session) -> None:
    group, path = ruled(api)
    assert api.create(path, thing(group, size=11)).code == 422
    assert api.create(path, thing(group, "much-too-long")).code == 422
    parts = [{"name": "a", "weight": 3}, {"name": "b", "weight": 5}]
    assert api.create(path, thing(group, size=5, parts=parts)).code == 201
    for change in (
        {"color": "blue"},
        {"parts": [{"name": "b", "weight": 4}, {"name": "a", "weight": 4}]},
        {"parts": [{"name": "c", "weight": 1}]},
        {"limit": 3},
    ):
        api.patch(f"{path}/t", {"spec": change}, query={"dryRun": "All"})
    api.apply(f"{path}/t", thing(group, size=50), "other", force=True)
    for done in (4, 3, 6):
        api.patch(f"{path}/t/status", {"status": {"done": done}})
    api.delete(f"{DEFINITIONS}/things.{group}", note=False)


@contract
def test_definitions_are_refused_for_their_rules(api: Session) -> None:
    group = f"{api.namespace}.example.com"
    for rules in (
        [{"rule": "self.nothing == 1"}],
        [{"rule": "self.size"}],
        [{"rule": "self.size > 1", "messageExpression": "self.size"}],
        [{"rule": " "}],
        [{"rule": "self.size < 9223372036854775808"}],
        [{"rule": "cel.bind(x, self.size, x > 1)"}],
    ):
        made = definition(group)
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = (
            rules
        )
        assert api.create(DEFINITIONS, made, query={"dryRun": "All"}).code == 422, rules
