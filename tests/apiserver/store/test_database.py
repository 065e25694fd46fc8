"""Objects in a file: they come back, after an orderly end and after a kill, and nobody else may write them."""

import asyncio
import random
import sqlite3
import threading
from pathlib import Path

import pytest

from podium.apiserver.api import EmbeddedApi
from podium.apiserver.kinds import built_in
from podium.apiserver.store.database import Database, DatabaseError
from podium.framework.clock import ManualClock
from tests.apiserver.server import EmbeddedServer
from tests.testbed.apiclient import ApiError

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


def test_writes_of_one_turn_share_a_commit(tmp_path: Path) -> None:
    async def main() -> None:
        api = opened(tmp_path / "data")
        commits: list[str] = []
        assert api.database is not None
        api.database._connection.set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
        for number in range(20):
            api.create(CONFIG_MAP, {"metadata": {"name": f"c{number}"}})
        await api.committed()
        assert len(commits) == 1
        closed(api)

    asyncio.run(main())


def test_a_file_that_cannot_be_written_fails_the_request_and_is_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        api = opened(tmp_path / "data")
        assert api.database is not None
        connection = api.database._connection
        connection.execute("PRAGMA query_only = ON")
        api.create(CONFIG_MAP, {"metadata": {"name": "a"}})
        with pytest.raises(DatabaseError, match="cannot be written"):
            await api.committed()
        connection.execute("PRAGMA query_only = OFF")
        api.create(CONFIG_MAP, {"metadata": {"name": "b"}})
        await api.committed()
        closed(api)

    asyncio.run(main())
    again = opened(tmp_path / "data")
    assert [each["metadata"]["name"] for each in again.list(CONFIG_MAP, "default")] == ["a", "b"]
    closed(again)


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
