"""A workload is read whole or refused with one sentence that says where."""

from pathlib import Path

import pytest

from podium_cluster.up.manifests import SAMPLE, WorkloadError, read_workload

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"


def names(path: Path) -> list[str]:
    return [each.name for each in read_workload(path)]


def test_the_sample_has_every_kind_of_workload_and_one_pod_that_fits_nowhere() -> None:
    kinds = {each.obj["kind"] for each in read_workload(SAMPLE)}
    assert kinds >= {"Deployment", "StatefulSet", "DaemonSet", "Job", "Pod", "Namespace", "PriorityClass"}


def test_a_folder_is_read_in_the_order_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(POD % "b")
    (tmp_path / "a.yml").write_text(POD % "a" + "---\n---\n" + POD % "a2")
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}')
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert names(tmp_path) == ["a", "a2", "b", "c"]


def test_what_others_need_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        POD % "pod"
        + "---\n"
        + (POD % "class").replace("Pod", "PriorityClass")
        + "---\n"
        + (POD % "space").replace("Pod", "Namespace")
    )
    assert names(file) == ["space", "class", "pod"]


def test_a_list_is_its_items(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    file.write_text("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]}")
    assert names(file) == ["a"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kind: Pod\n", "bad.yaml: document 1: apiVersion is missing"),
        ("- a\n- b\n", "bad.yaml: document 1: not an object"),
        (POD % "a" + "---\napiVersion: v1\n", "bad.yaml: document 2: kind is missing"),
        ("a: [\n", "bad.yaml:2: the YAML is broken: "),
        ("# nothing\n", "bad.yaml: no objects in it"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(WorkloadError) as refusal:
        read_workload(file)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"none\.yaml: there is no such file or folder"):
        read_workload(tmp_path / "none.yaml")
