"""Label and field selectors as a request writes them."""

import pytest

from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import EVENT, NODE, POD, built_in
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.store.object_store import ObjectStore
from podium_cluster.apiserver.store.selection import parse_label_selector, selection

CONFIG_MAP = built_in("v1", "ConfigMap")


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("", "abc"),
        ("app=web", "a"),
        ("app==web", "a"),
        ("app!=web", "bc"),
        ("app", "ab"),
        ("!app", "c"),
        ("app in (web, db)", "ab"),
        ("app notin (web)", "bc"),
        ("app,tier=x", "b"),
        ("size>2", "b"),
        ("size<2", ""),
        ("app=", ""),
        ("app in ()", ""),
        (" app = web ", "a"),
    ],
)
def test_which_labels_match(text: str, matching: str) -> None:
    selector = parse_label_selector(text)
    labels = {"a": {"app": "web"}, "b": {"app": "db", "tier": "x", "size": "3"}, "c": {}}
    assert "".join(name for name, each in labels.items() if selector.matches(each)) == matching


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        (
            "a>xx",
            "unable to parse requirement: values[0]: Invalid value: \"xx\": for 'Gt', 'Lt' operators, the value must "
            "be an integer",
        ),
    ],
)
def test_what_is_wrong_with_a_label_selector(text: str, complaint: str) -> None:
    with pytest.raises(StatusError) as error:
        parse_label_selector(text)
    assert (error.value.code, error.value.message) == (400, complaint)


def stored_pod() -> Stored:
    pod = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"nodeName": "n1", "schedulerName": "podium"},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
    }
    return ObjectStore().put(POD, pod)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("metadata.name=p", True),
        ("metadata.name=p,metadata.namespace=default", True),
        ("metadata.namespace!=default", False),
        ("spec.nodeName=n1", True),
        ("spec.host=n1", True),
        ("spec.nodeName=", False),
        ("spec.schedulerName!=podium", False),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.podIP==10.0.0.1", True),
        ("status.podIPs=10.0.0.1", False),
        ("spec.hostNetwork=false", True),
    ],
)
def test_which_fields_of_a_pod_match(text: str, matches: bool) -> None:
    assert selection(POD, "", text).matches(stored_pod()) == matches


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        (POD, "spec.foo=x", "field label not supported: spec.foo"),
        (NODE, "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (EVENT, "regarding.name=x", "field label not supported: regarding.name"),
        (
            CONFIG_MAP,
            "data=x",
            '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (built_in("batch/v1", "Job"), "a=b", 'field label "a" not supported for Job'),
        (POD, "nonsense", "invalid selector: 'nonsense'; can't understand 'nonsense'"),
    ],
)
def test_what_is_wrong_with_a_field_selector(kind: Kind, text: str, complaint: str) -> None:
    with pytest.raises(StatusError) as error:
        selection(kind, "", text)
    assert (error.value.code, error.value.message) == (400, complaint)


def test_a_backslash_keeps_a_comma_in_a_value() -> None:
    [term] = selection(POD, "", r"metadata.name=a\,b\=c").fields
    assert term.value == "a,b=c"
