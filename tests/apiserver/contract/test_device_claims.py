"""Resource claims, their templates and device classes: what both servers refuse, in the same words."""

from typing import Any

from tests.apiserver.contract.both import contract
from tests.apiserver.contract.session import Object, Session

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
    cases: tuple[list[Object], ...] = ([{}], selecting("1"), selecting("device.driver == 'a' ||"))
    for selectors in cases:
        kind = {"apiVersion": VERSION, "kind": "DeviceClass"}
        answer = api.create(CLASSES, {**kind, "metadata": {"name": "refused"}, "spec": {"selectors": selectors}})
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
