"""Objects in a file: they come back, after an orderly end and after a kill, and nobody else may write them."""

import random
import shutil
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StorageError
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from podium_cluster.apiserver.store.database import Database, DatabaseError, Row
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed.apiclient import ApiError

CONFIG_MAP = built_in("v1", "ConfigMap")
DEFINITION = built_in("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def opened(path: Path) -> EmbeddedApi:
    return EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1), database=Database(path))


def closed(api: EmbeddedApi) -> None:
    assert api.database is not None
    api.database.close()


def test_everything_comes_back_as_it_was(tmp_path: Path) -> None:
    first = opened(tmp_path / "data")
    for name in ("a", "b", "c"):
        first.create(CONFIG_MAP, {"metadata": {"name": name}, "data": {"k": name}})
    first.delete(CONFIG_MAP, "default", "b")
    changed = first.get(CONFIG_MAP, "default", "c")
    first.update(CONFIG_MAP, changed | {"data": {"k": "new"}})
    before, revision = first.list(CONFIG_MAP), first.store.revision
    closed(first)
    second = opened(tmp_path / "data")
    assert second.list(CONFIG_MAP) == before
    assert second.store.revision == revision, "what every cluster has was there already"
    closed(second)


def test_the_same_seed_does_not_give_the_same_uid_twice(tmp_path: Path) -> None:
    uids = set()
    for name in ("a", "b", "c"):
        api = opened(tmp_path / "data")
        uids.add(api.create(CONFIG_MAP, {"metadata": {"name": name}})["metadata"]["uid"])
        closed(api)
    assert len(uids) == 3


def test_custom_objects_come_back_with_their_definition(tmp_path: Path) -> None:
    first = opened(tmp_path / "data")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    first.create(
        DEFINITION,
        {
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        },
    )
    thing = first.kinds.by_kind("example.com/v1", "Thing")
    assert thing is not None
    made = first.create(thing, {"metadata": {"name": "t"}, "spec": {"size": 3}})
    closed(first)
    second = opened(tmp_path / "data")
    thing = second.kinds.by_kind("example.com/v1", "Thing")
    assert thing is not None
    assert second.get(thing, "default", "t") == made
    closed(second)


def test_what_cannot_be_written_has_not_happened(tmp_path: Path) -> None:
    api = opened(tmp_path / "data")
    small = api.create(CONFIG_MAP, {"metadata": {"name": "small"}})
    assert api.database is not None
    connection = api.database._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")  # the disk is full
    seen: list[str] = []
    api.store.listen(lambda change: seen.append(change.new.name))
    revision = api.store.revision
    large = {"metadata": {"name": "large"}, "data": {"k": "v" * 20_000}}
    full = pytest.raises(StorageError, match=r"data cannot be written: database or disk is full")
    with full:
        api.create(CONFIG_MAP, large)
    with full:
        api.update(CONFIG_MAP, {**small, "data": large["data"]})
    assert (api.list(CONFIG_MAP, "default"), seen, api.store.revision) == ([small], [], revision)
    assert status_of(api, "/readyz") == status_of(api, "/readyz/etcd") == 500
    assert status_of(api, "/livez") == 200
    connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StorageError):
        api.delete(CONFIG_MAP, "default", "small")
    connection.execute("PRAGMA query_only = OFF")
    assert api.list(CONFIG_MAP, "default") == [small]
    connection.execute(f"PRAGMA max_page_count = {pages + 100}")
    assert status_of(api, "/readyz") == 200
    made = api.create(CONFIG_MAP, large)
    closed(api)
    again = opened(tmp_path / "data")
    assert again.list(CONFIG_MAP, "default") == [made, small]
    closed(again)


def test_versions_never_go_back_after_a_kill(tmp_path: Path) -> None:
    api = opened(tmp_path / "data")
    for name in ("a", "b"):
        api.create(CONFIG_MAP, {"metadata": {"name": name}})
    revisions = [copied_while_open(tmp_path).store.revision]
    api.delete(CONFIG_MAP, "default", "b")
    revisions.append(copied_while_open(tmp_path).store.revision)
    assert revisions == [api.store.revision - 1, api.store.revision]
    closed(api)


def copied_while_open(folder: Path) -> EmbeddedApi:
    """The API of a copy of the file as it is now, which is what a kill leaves."""
    copy = Path(tempfile.mkdtemp(dir=folder))
    for file in folder.glob("data*"):
        shutil.copy(file, copy)
    api = opened(copy / "data")
    closed(api)
    return api


def status_of(api: EmbeddedApi, path: str) -> int:
    answer = RequestHandler(api).handle(ApiRequest("GET", path))
    assert isinstance(answer, ApiResponse)
    return answer.status


def test_a_file_that_is_cut_or_has_any_page_overwritten_is_refused(tmp_path: Path) -> None:
    """Unless nothing is lost by it: then everything is there."""
    api = opened(tmp_path / "whole")
    for number in range(40):
        api.create(CONFIG_MAP, {"metadata": {"name": f"c{number}"}, "data": {"k": f"{number}" * 1500}})
    closed(api)
    whole = (tmp_path / "whole").read_bytes()
    expected = content(tmp_path / "whole")
    page = 4096
    starts = range(0, len(whole), page)
    variants = [
        whole[:at] + junk + whole[at + page :]
        for junk in (bytes(page), b"x" * page, whole[page : 2 * page])
        for at in starts
    ]
    variants += [whole[:size] for size in (100, 600, 5000, len(whole) - 100, len(whole) - page)]
    refused = 0
    for variant in variants:
        damaged = tmp_path / "damaged"
        damaged.write_bytes(variant)
        try:
            assert content(damaged) == expected
        except DatabaseError as error:
            refused += 1
            assert str(error).startswith(f"{damaged} ")
            assert "\n" not in str(error)
        for each in tmp_path.glob("damaged*"):
            each.unlink()
    assert refused > 2 * len(starts)


def content(path: Path) -> list[Row]:
    database = Database(path)
    try:
        return sorted(database.rows())
    finally:
        database.close()


def test_a_file_of_the_first_format_is_read_and_gets_checksums(tmp_path: Path) -> None:
    api = opened(tmp_path / "data")
    api.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    revision = api.store.revision
    closed(api)
    old = sqlite3.connect(tmp_path / "data")
    old.execute("ALTER TABLE objects DROP COLUMN checksum")
    old.execute("PRAGMA user_version = 1")
    old.close()
    again = opened(tmp_path / "data")
    assert again.store.revision == revision
    again.create(CONFIG_MAP, {"metadata": {"name": "b"}})
    closed(again)
    third = opened(tmp_path / "data")
    assert [each["metadata"]["name"] for each in third.list(CONFIG_MAP, "default")] == ["a", "b"]
    closed(third)


@pytest.mark.long
def test_a_second_process_is_told_that_the_file_is_in_use(tmp_path: Path) -> None:
    with (
        EmbeddedServer(data=tmp_path / "data"),
        pytest.raises(RuntimeError, match="is in use by another process: stop it, or give another file"),
    ):
        EmbeddedServer(data=tmp_path / "data").start()


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is not a database " * 100)
    with pytest.raises(DatabaseError, match="text is not a database of Podium"):
        Database(tmp_path / "text")
    with pytest.raises(DatabaseError, match="there is no folder"):
        Database(tmp_path / "no" / "data")
    newer = sqlite3.connect(tmp_path / "newer")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(DatabaseError, match="written by another version"):
        Database(tmp_path / "newer")
    foreign = sqlite3.connect(tmp_path / "foreign")
    foreign.execute("CREATE TABLE accounts (name)")
    foreign.close()
    with pytest.raises(DatabaseError, match="it holds another program's tables"):
        Database(tmp_path / "foreign")
    with sqlite3.connect(tmp_path / "foreign") as foreign:
        assert foreign.execute("SELECT name FROM sqlite_master").fetchall() == [("accounts",)]
        assert foreign.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    foreign.close()


@pytest.mark.long
def test_a_kill_in_the_middle_of_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Several clients create until the server is gone; whatever they got an answer for must be there afterwards."""
    acknowledged: set[str] = set()
    deleting: set[str] = set()
    deleted: set[str] = set()
    server = EmbeddedServer(data=tmp_path / "data")
    server.start()
    enough = threading.Event()

    def load(worker: int) -> None:
        with server.new_client() as client:
            for number in range(100_000):
                name = f"c{worker}-{number}"
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
                try:
                    client.create(body)
                    acknowledged.add(name)
                    if number % 3 == 0:
                        deleting.add(name)
                        client.delete("ConfigMap", name)
                        deleted.add(name)
                except (OSError, ApiError):
                    return
                if len(acknowledged) > 400:
                    enough.set()

    workers = [threading.Thread(target=load, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    assert enough.wait(60)
    server.kill()
    for worker in workers:
        worker.join()
    server.stop()
    with EmbeddedServer(data=tmp_path / "data") as again:
        found = {each["metadata"]["name"] for each in again.client.list("ConfigMap", "default")}
    assert acknowledged - deleting <= found
    assert not deleted & found


def test_only_its_owner_may_read_the_file_and_those_beside_it(tmp_path: Path) -> None:
    (tmp_path / "old").touch(mode=0o644)
    for name in ("new", "old"):
        api = opened(tmp_path / name)
        api.create(CONFIG_MAP, {"metadata": {"name": "a"}})
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob(f"{name}*")}
        assert set(modes.values()) == {0o600}, modes
        assert len(modes) > 1, "the log beside it too"
        closed(api)
