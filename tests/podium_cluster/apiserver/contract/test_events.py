"""Events: one collection in two forms."""

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.session import Session

CORE = "/api/v1/namespaces/{ns}/events"
MODERN = "/apis/events.k8s.io/v1/namespaces/{ns}/events"


def old_event(api: Session, name: str = "e") -> dict[str, object]:
    about = {"kind": "Pod", "namespace": api.namespace, "name": "p", "apiVersion": "v1"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": about,
        "reason": "Started",
        "message": "hello",
        "type": "Normal",
        "count": 2,
        "firstTimestamp": "2020-01-01T00:00:00Z",
        "lastTimestamp": "2020-01-01T00:00:10Z",
        "source": {"component": "kubelet", "host": "n"},
    }


def new_event(api: Session, name: str = "n") -> dict[str, object]:
    about = {"kind": "Pod", "namespace": api.namespace, "name": "p", "apiVersion": "v1"}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "eventTime": "2020-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": about,
        "note": "Successfully assigned",
        "type": "Normal",
    }


@contract
def test_an_event_in_the_old_form_is_read_in_the_new(api: Session) -> None:
    assert api.create(CORE, old_event(api)).code == 201
    found = api.get(f"{MODERN}/e").body
    assert (found["note"], found["deprecatedCount"]) == ("hello", 2)


@contract
def test_an_event_in_the_new_form_is_read_in_the_old(api: Session) -> None:
    assert api.create(MODERN, new_event(api)).code == 201
    found = api.get(f"{CORE}/n").body
    assert (found["message"], found["involvedObject"]["name"]) == ("Successfully assigned", "p")
    api.patch(f"{MODERN}/n", {"series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:05.000000Z"}})


@contract
def test_events_are_selected_by_what_they_are_about(api: Session) -> None:
    api.create(CORE, old_event(api), note=False)
    api.create(MODERN, new_event(api), note=False)
    for path, selector in (
        (CORE, "involvedObject.name=p"),
        (CORE, "reason=Started"),
        (CORE, "type=Warning"),
        (CORE, "source=kubelet"),
        (CORE, "reportingComponent=default-scheduler"),
        (MODERN, "regarding.kind=Pod,reason=Scheduled"),
    ):
        api.note(selector, api.get(path, query={"fieldSelector": selector}, note=False).names())
    api.get(MODERN, query={"fieldSelector": "involvedObject.name=p"})
