"""The kubeconfig of an embedded cluster: in the user's state folder, or somewhere else where that cannot be."""

import json
import tempfile
from pathlib import Path

import pytest

from podium.client import load_access
from podium_cluster.up.running_clusters import state_folder, write_kubeconfig


def test_the_file_leads_to_the_server_and_has_the_same_name_at_every_start(tmp_path: Path) -> None:
    path = write_kubeconfig("http://127.0.0.1:7070", 7070, tmp_path)
    assert path == tmp_path / "kubeconfig-7070"
    assert load_access(str(path)).server == "http://127.0.0.1:7070"
    assert write_kubeconfig("http://127.0.0.1:7070", 7070, tmp_path) == path


def test_it_is_kept_where_the_user_keeps_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "podium"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local/state/podium"


def test_a_folder_that_cannot_be_made_is_replaced_by_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(in_the_way))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = write_kubeconfig("http://127.0.0.1:1", 1)
    assert path.parent.parent == tmp_path
    assert json.loads(path.read_text())["kind"] == "Config"
