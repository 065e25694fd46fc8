"""What a replica holds after any mix of events, old news and lists, and that its followers could follow."""

import asyncio
import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podium.client.reading import LineSplitter, Reader
from podium.client.replica import Replica
from tests.podium.client.followers import Follower
from tests.podium.client.misbehaving import NODES, line, node
from tools.kit.effort import examples

NAMES = st.sampled_from("abc")


class Server(RuleBasedStateMachine):
    """A server whose objects come, change and go, and a replica that hears of it through lines of a watch.

    The watch may be cut: the replica misses what happens then, and gets it later from where it stopped, or by a list.
    Between its news, it may be told anything that happened before once more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.history: list[bytes] = []
        self.heard = 0  # how much of the history the replica was told
        self.connected = True
        self.follower = Follower(NODES)
        self.reader = Reader(NODES)
        self.failures: list[str] = []
        self.replica: Replica[Any] = Replica(
            self.reader.identify,
            on_set=self.follower.on_set,
            on_delete=self.follower.on_delete,
            failed=lambda key, error: self.failures.append(f"{key}: {error!r}"),
        )

    @rule(name=NAMES)
    def set(self, name: str) -> None:
        self.version += 1
        known = self.objects.get(name)
        uid = f"uid-{self.version}" if known is None else known["metadata"]["uid"]
        self.objects[name] = node(name, self.version, uid)
        self._happened(line("ADDED" if known is None else "MODIFIED", self.objects[name]))

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.version += 1
        gone = self.objects.pop(data.draw(st.sampled_from(sorted(self.objects))))
        self._happened(line("DELETED", node(gone["metadata"]["name"], self.version, gone["metadata"]["uid"])))

    @rule()
    def cut(self) -> None:
        self.connected = False

    @rule()
    def go_on(self) -> None:
        self.connected = True
        for happened in self.history[self.heard :]:
            self._tell(happened)
        self.heard = len(self.history)

    @rule()
    def list_anew(self) -> None:
        self.connected = True
        self.heard = len(self.history)
        listed = [self.reader.object(msgspec.Raw(msgspec.json.encode(each))) for each in self.objects.values()]
        asyncio.run(self.replica.replace(listed, str(self.version)))

    @precondition(lambda self: self.heard)
    @rule(data=st.data())
    def say_again(self, data: st.DataObject) -> None:
        self._tell(self.history[data.draw(st.integers(0, self.heard - 1))])

    @invariant()
    def followers_have_what_the_replica_has(self) -> None:
        assert self.failures == []
        assert self.follower.copy == self.replica.store

    @invariant()
    def the_replica_has_what_the_server_has(self) -> None:
        if self.connected:
            held = {key: (obj.uid, obj.metadata.resource_version) for key, obj in self.replica.store.items()}
            truth = [each["metadata"] for each in self.objects.values()]
            assert held == {each["name"]: (each["uid"], each["resourceVersion"]) for each in truth}

    def _happened(self, event: bytes) -> None:
        self.history.append(event)
        if self.connected:
            self._tell(event)
            self.heard = len(self.history)

    def _tell(self, event: bytes) -> None:
        kind, found = self.reader.event(event.strip())
        if kind == "DELETED":
            self.replica.delete(found)
        else:
            self.replica.set(found)


Server.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
TestAnyStory = Server.TestCase


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_a_shuffled_and_doubled_history_leads_to_its_end(seed: int, keep_raw: bool) -> None:
    rng = random.Random(seed)
    objects: dict[str, dict[str, Any]] = {}
    history: list[bytes] = []
    for version in range(1, 60):
        name = rng.choice("abcdef")
        if name in objects and rng.random() < 0.4:
            history.append(line("DELETED", node(name, version, objects.pop(name)["metadata"]["uid"])))
            continue
        uid = objects[name]["metadata"]["uid"] if name in objects else f"uid-{version}"
        objects[name] = node(name, version, uid)
        history.append(line("MODIFIED", objects[name]))
    late = [*history, *rng.sample(history, 20)]
    rng.shuffle(late)

    follower, reader, lines = Follower(NODES), Reader(NODES, keep_raw=keep_raw), LineSplitter()
    failures: list[str] = []
    replica: Replica[Any] = Replica(
        reader.identify,
        on_set=follower.on_set,
        on_delete=follower.on_delete,
        failed=lambda key, error: failures.append(f"{key}: {error!r}"),
    )
    stream = b"".join(late)
    while stream:
        size = rng.randint(1, 300)
        for text in lines.feed(stream[:size]):
            kind, found = reader.event(text)
            (replica.delete if kind == "DELETED" else replica.set)(found)
        stream = stream[size:]
    assert failures == []
    assert follower.copy == replica.store
    assert {key: obj.metadata.resource_version for key, obj in replica.store.items()} == {
        name: obj["metadata"]["resourceVersion"] for name, obj in objects.items()
    }
    if keep_raw:
        assert {key: msgspec.json.decode(raw) for key, raw in replica.raw.items()} == objects
    else:
        assert replica.raw == {}
