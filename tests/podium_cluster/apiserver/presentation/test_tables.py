"""Every table is the real kube-apiserver's, column for column and cell for cell; only descriptions are our own."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from podium_cluster.apiserver.presentation.json_path import JsonPath, JsonPathError
from podium_cluster.apiserver.presentation.tables import table
from podium_cluster.apiserver.table_cells import human_duration, label_cell
from tools.testbed import ControlPlane
from tools.testbed.apiclient import ApiClient

FOLDER = Path(__file__).parent
AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Named(NamedTuple):
    group: str
    kind: str
    custom: bool = False


def objects(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / file).read_text()))


def kinds() -> list[str]:
    return sorted(
        {
            f"{obj['apiVersion']}/{obj['kind']}"
            for file in ("tables.yaml", "custom_tables.yaml")
            for obj in objects(file)
        }
    )


@pytest.fixture(scope="module")
def real(control_plane: ControlPlane) -> Iterator[ApiClient]:
    """A real API server that holds one object of every kind and state."""
    control_plane.wipe()
    client = control_plane.client
    custom = objects("custom_tables.yaml")
    for obj in objects("tables.yaml"):
        client.create(obj)
    client.poll("CustomResourceDefinition", lambda found: all(_established(each) for each in found))
    client = control_plane.new_client()
    for obj in custom:
        client.create(obj)
    client.delete("Pod", "going", "shown")
    yield client
    client.patch("Pod", "going", {"metadata": {"finalizers": None}}, "shown")
    for name in ("things.tables.example", "plains.tables.example"):
        client.delete("CustomResourceDefinition", name)
    client.close()
    control_plane.wipe()


def _established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@pytest.mark.parametrize("name", kinds())
def test_a_table_is_the_real_servers(real: ApiClient, name: str) -> None:
    path = real.resource(name).path()
    before = datetime.now(UTC)
    theirs = msgspec.json.decode(
        real.request("GET", path, query={"includeObject": "Object"}, headers={"Accept": AS_TABLE})
    )
    after = datetime.now(UTC)
    api_version, _, kind = name.rpartition("/")
    group = api_version.rpartition("/")[0]
    named = Named(group, kind, custom=group == "tables.example")
    held = [row["object"] for row in theirs["rows"]]
    assert held, "nothing to show"
    definition = _printer_columns(kind)
    # The server read its clock somewhere between the two.
    ours = [table(named, held, now, printer_columns=definition) for now in (before, after)]
    assert [_without_description(column) for column in ours[0]["columnDefinitions"]] == [
        _without_description(column) for column in theirs["columnDefinitions"]
    ]
    for row, early, late in zip(theirs["rows"], ours[0]["rows"], ours[1]["rows"], strict=True):
        assert row["cells"] in (early["cells"], late["cells"])
        assert row.get("conditions") == early.get("conditions")


def _printer_columns(kind: str) -> Any:
    for obj in objects("tables.yaml"):
        if obj["kind"] == "CustomResourceDefinition" and obj["spec"]["names"]["kind"] == kind:
            return obj["spec"]["versions"][0].get("additionalPrinterColumns")
    return None


def _without_description(column: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in column.items() if key != "description"}


@pytest.mark.parametrize("include", ["", "Metadata", "None"])
def test_a_row_holds_as_much_of_its_object_as_was_asked_for(real: ApiClient, include: str) -> None:
    query = {"includeObject": include} if include else {}
    path = "/api/v1/namespaces/shown/configmaps"
    theirs = msgspec.json.decode(real.request("GET", path, query=query, headers={"Accept": AS_TABLE}))
    held = real.list("ConfigMap", "shown")
    ours = table(Named("", "ConfigMap"), held, datetime.now(UTC), include=include or "Metadata")
    assert [row["object"] for row in ours["rows"]] == [row["object"] for row in theirs["rows"]]
    assert {**ours, "rows": [], "metadata": {}, "columnDefinitions": []} == {
        **theirs,
        "rows": [],
        "metadata": {},
        "columnDefinitions": [],
    }


def test_only_the_first_event_of_a_watch_has_columns() -> None:
    shown = table(Named("", "ConfigMap"), [], datetime.now(UTC), headers=False)
    assert shown["columnDefinitions"] is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (180 * 60, "3h"),
        (181 * 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_an_age_has_two_or_three_figures(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize(
    ("pairs", "text"), [({"b": "2", "a": "1"}, "a=1,b=2"), ({"a": ""}, "a="), ({}, "<none>"), (None, "<none>")]
)
def test_labels_are_one_cell_in_order_of_their_keys(pairs: dict[str, str] | None, text: str) -> None:
    assert label_cell(pairs) == text


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".a['b']", [1]),
        (".list[0].n", [1]),
        (".list[-1].n", [3]),
        (".list[0:2].n", [1, 2]),
        (".list[*].n", [1, 2, 3]),
        (".list[?(@.n>1)].t", ["y", "z"]),
        (".list[?(@.t=='y')].n", [2]),
        (".list[?(@.only)].n", [3]),
        (".missing.b", []),
        (".a[0]", []),
        (r".with\.dot", ["d"]),
    ],
)
def test_a_path_leads_to_values(path: str, found: list[Any]) -> None:
    obj = {
        "a": {"b": 1},
        "with.dot": "d",
        "list": [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}, {"n": 3, "t": "z", "only": None}],
    }
    assert JsonPath(path).find(obj) == found


@pytest.mark.parametrize("path", [".a[", "a b", ".a[?(@.x==y)]", ".a.."])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError, match="JSON path"):
        JsonPath(path)
