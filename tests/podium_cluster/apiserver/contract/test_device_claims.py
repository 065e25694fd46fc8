"""Resource claims, their templates and device classes: what both servers refuse, in the same words."""

from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.session import Object, Session

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/{{ns}}/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/{{ns}}/resourceclaimtemplates"
CLASSES = f"{GROUP}/deviceclasses"
VERSION = "resource.k8s.io/v1"


def asking(*requests: Object, constraints: list[Object] | None = None) -> Object:
    return {"devices": {"requests": list(requests), **({"constraints": constraints} if constraints else {})}}


def exactly(name: str = "r", **fields: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **fields}}


def selecting(expression: str) -> list[Object]:
    return [{"cel": {"expression": expression}}]


REFUSED = (
    asking({"name": "r"}),
    asking({"name": "r", "exactly": {}}),
    asking(exactly(count=-1)),
    asking(exactly(allocationMode="All", count=2)),
    asking(exactly(allocationMode="Some")),
    asking(exactly(), exactly()),
    asking(exactly(selectors=[{}])),
    asking(exactly(selectors=selecting("1"))),
    asking(exactly(selectors=selecting("device.nothing"))),
    asking(exactly(selectors=selecting("device.driver == "))),
    asking({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu", "count": -1}]}),
    asking(exactly(), constraints=[{"requests": ["other"], "matchAttribute": "example.com/a"}]),
    asking(exactly(), constraints=[{"requests": ["r"]}]),
    asking(exactly("A b")),
    asking(exactly(deviceClassName="A_")),
    asking(exactly(selectors=selecting("true") * 33)),
    asking(exactly(selectors=selecting(""))),
    asking(exactly(adminAccess=True)),
    asking(*[exactly(f"r{number}") for number in range(33)]),
    asking(
        {
            "name": "r",
            "firstAvailable": [{"name": "A", "deviceClassName": "gpu"}, {"name": "A", "deviceClassName": "g_u"}],
        }
    ),
    asking(
        exactly(
            tolerations=[
                {"key": "a b", "operator": "X", "value": "v v", "effect": "Z"},
                {"operator": "Exists", "value": "x"},
                {"operator": "Equal"},
            ]
        )
    ),
    asking(
        exactly(),
        constraints=[
            {"requests": ["r"], "matchAttribute": "noslash"},
            {"matchAttribute": "a.b/c", "distinctAttribute": "x.y/z"},
            {"distinctAttribute": "/x"},
        ],
    ),
    {
        "devices": {
            "requests": [exactly()],
            "config": [
                {"requests": ["x"], "opaque": {"driver": "", "parameters": None}},
                {},
                {"opaque": {"driver": "a", "parameters": [1]}},
            ],
        }
    },
)
DEVICE = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}
USER = {"resource": "pods", "name": "user", "uid": "1"}


def given(*results: Object, **fields: Any) -> Object:
    """The status of a claim that has these devices."""
    return {"allocation": {"devices": {"results": list(results) or [DEVICE]}, **fields}}


def result(**fields: Any) -> Object:
    return {**DEVICE, **fields}


def reported(**fields: Any) -> Object:
    return {"driver": "gpu.example.com", "pool": "p", "device": "d", **fields}


CONFIG = [
    {"source": "", "requests": ["x"], "opaque": {"driver": "gpu.example.com", "parameters": {}}},
    {"source": "Else", "opaque": {"driver": "", "parameters": None}},
    {"source": "FromClaim"},
]
CONDITION = {"type": "a b", "status": "Maybe", "reason": "", "message": "x", "lastTransitionTime": None}
WRONG_KEY = {"matchExpressions": [{"key": "a b", "operator": "In", "values": ["x"]}]}
REFUSED_STATUSES: tuple[Object, ...] = (
    {"reservedFor": [USER]},
    {**given(), "reservedFor": [USER, USER]},
    {**given(), "reservedFor": [{"resource": "", "name": "", "uid": ""}]},
    {**given(), "reservedFor": [{**USER, "uid": str(number)} for number in range(257)]},
    given(result(request="x")),
    given(result(request="r/x")),
    given({"request": "", "driver": "", "pool": "", "device": ""}),
    given(result(driver="A_b")),
    given(result(driver="a" * 64)),
    given(result(pool="A/b_c")),
    given(result(pool="a" * 254)),
    given(result(device="D.e")),
    given(result(shareID="nope")),
    given(result(shareID="AAAAAAAA-AAAA-4AAA-8AAA-AAAAAAAAAAAA")),
    given(result(bindingFailureConditions=["a"])),
    given(result(bindingConditions=["a b"], bindingFailureConditions=["c"])),
    given(result(bindingConditions=[f"a{number}" for number in range(5)], bindingFailureConditions=["c"])),
    given(result(bindingConditions=["a"], bindingFailureConditions=["a"])),
    given(*[result(device=f"d{number}") for number in range(33)]),
    given(nodeSelector={"nodeSelectorTerms": []}),
    given(nodeSelector={"nodeSelectorTerms": [WRONG_KEY]}),
    {"allocation": {"devices": {"results": [DEVICE], "config": CONFIG}}},
    {**given(), "devices": [reported(device="other")]},
    {**given(), "devices": [reported(), reported()]},
    {**given(), "devices": [reported(conditions=[CONDITION])]},
    {**given(), "devices": [reported(data=[1])]},
    given(result(adminAccess=True)),
)


@contract
def test_claims_refused(api: Session) -> None:
    for spec in REFUSED:
        answer = api.create(
            CLAIMS, {"apiVersion": VERSION, "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec}
        )
        assert answer.code == 422, answer.body


@contract
def test_templates_refused(api: Session) -> None:
    for spec in REFUSED:
        kind = {"apiVersion": VERSION, "kind": "ResourceClaimTemplate"}
        answer = api.create(TEMPLATES, {**kind, "metadata": {"name": "t"}, "spec": {"spec": spec}})
        assert answer.code == 422, answer.body


@contract
def test_classes_refused(api: Session) -> None:
    cases: tuple[Object, ...] = (
        {"selectors": [{}]},
        {"selectors": selecting("1")},
        {"selectors": selecting("device.driver == 'a' ||")},
        {"selectors": selecting("true") * 33, "extendedResourceName": "cpu"},
        {"extendedResourceName": "a b"},
        {"config": [{}, {"opaque": {"driver": "A_", "parameters": {"a": 1}}}]},
    )
    for spec in cases:
        kind = {"apiVersion": VERSION, "kind": "DeviceClass"}
        answer = api.create(CLASSES, {**kind, "metadata": {"name": "refused"}, "spec": spec})
        assert answer.code == 422, answer.body


@contract
def test_claims_with_defaults(api: Session) -> None:
    kind = {"apiVersion": VERSION, "kind": "ResourceClaim"}
    first = {"name": "s", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}
    chosen = exactly("t", selectors=selecting('device.driver == "gpu.example.com"'))
    spec = asking(exactly(), exactly("all", allocationMode="All"), first, chosen)
    answer = api.create(CLAIMS, {**kind, "metadata": {"name": "c"}, "spec": spec})
    assert answer.code == 201, answer.body


@contract
def test_a_claim_is_allocated_and_reserved(api: Session) -> None:
    kind = {"apiVersion": VERSION, "kind": "ResourceClaim"}
    made = api.create(CLAIMS, {**kind, "metadata": {"name": "c"}, "spec": asking(exactly())})
    device = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}
    user = {"resource": "pods", "name": "user", "uid": "1"}
    status = {"allocation": {"devices": {"results": [device]}}, "reservedFor": [user]}
    assert api.put(f"{CLAIMS}/c/status", {**made.body, "status": status}).code == 200
    labelled = api.patch(f"{CLAIMS}/c", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.code == 200
    assert api.patch(f"{CLAIMS}/c/status", {"status": {"reservedFor": None}}).code == 200
    assert api.patch(f"{CLAIMS}/c/status", {"status": {"allocation": None}}).code == 200


@contract
def test_statuses_refused(api: Session) -> None:
    kind = {"apiVersion": VERSION, "kind": "ResourceClaim"}
    made = api.create(CLAIMS, {**kind, "metadata": {"name": "c"}, "spec": asking(exactly())}).body
    for status in REFUSED_STATUSES:
        answer = api.put(f"{CLAIMS}/c/status", {**made, "status": status})
        assert answer.code == 422, answer.body


@contract
def test_what_a_claim_was_given_can_be_taken_away_but_not_changed(api: Session) -> None:
    kind = {"apiVersion": VERSION, "kind": "ResourceClaim"}
    protected = {"name": "c", "finalizers": ["resource.kubernetes.io/delete-protection"]}
    made = api.create(CLAIMS, {**kind, "metadata": protected, "spec": asking(exactly())}).body
    del made["metadata"]["resourceVersion"]
    whole = {**given(), "reservedFor": [USER], "devices": [reported(conditions=None)]}
    assert api.put(f"{CLAIMS}/c/status", {**made, "status": whole}, note=False).code == 200
    changed = {**given(result(device="e")), "reservedFor": [USER]}
    refused = api.put(f"{CLAIMS}/c/status", {**made, "status": changed}, note=False)
    assert refused.code == 422
    assert refused.body["message"].endswith(": field cannot be modified once set")
    assert api.put(f"{CLAIMS}/c/status", {**made, "status": {"reservedFor": [USER]}}).code == 422
    without = api.put(f"{CLAIMS}/c/status", {**made, "status": {"devices": [reported()]}})
    assert without.body["status"] == {}
    assert api.put(f"{CLAIMS}/c/status", {**made, "status": given()}).code == 200
    assert api.delete(f"{CLAIMS}/c").code == 200
    assert api.put(f"{CLAIMS}/c/status", {**made, "status": {**given(), "reservedFor": [USER]}}).code == 422


@contract
def test_admin_access_is_for_namespaces_that_allow_it(api: Session) -> None:
    namespace = f"/api/v1/namespaces/{api.namespace}"
    labels = {"resource.kubernetes.io/admin-access": "true"}
    assert api.patch(namespace, {"metadata": {"labels": labels}}).code == 200
    kind = {"apiVersion": VERSION, "kind": "ResourceClaim"}
    asked = asking(exactly(adminAccess=True))
    made = api.create(CLAIMS, {**kind, "metadata": {"name": "c"}, "spec": asked})
    assert made.code == 201
    assert api.put(f"{CLAIMS}/c/status", {**made.body, "status": given(result(adminAccess=True))}).code == 200


@contract
def test_the_metadata_of_a_template_is_checked(api: Session) -> None:
    kind = {"apiVersion": VERSION, "kind": "ResourceClaimTemplate"}
    spec = {"spec": asking(exactly(adminAccess=True)), "metadata": {"labels": {"a b": "c"}, "finalizers": ["a"]}}
    assert api.create(TEMPLATES, {**kind, "metadata": {"name": "t"}, "spec": spec}).code == 422
