"""Keeps the results of units by the hash of the unit, and inputs by the hash of their content.

    inputs/<sha256>              a file that a unit reads, or its settings
    plans/<sha256>.json          what was to be run: a command and its units
    results/<2 digits>/<hash>    what came of a unit

A result is MessagePack: the unit, the payload, and the payload's SHA-256. Whatever is read is verified. Content that is
not what its name says (a file that is cut off, changed, or the result of another unit) is reported, removed, and made
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from podium_lab.units.places import FolderPlace, Place, open_place
from podium_lab.units.unit import DamagedError, StoreError, Unit, content_hash


class ResultFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a result file."""

    unit: Unit
    sha256: str
    payload: bytes


def encode_result(unit: Unit, payload: bytes) -> bytes:
    return msgspec.msgpack.encode(ResultFile(unit, content_hash(payload), payload), order="sorted")


def verified_payload(content: bytes, unit: Unit) -> bytes:
    """The payload of a unit; raises DamagedError where the content is no such thing."""
    try:
        found = _DECODER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = "is cut off" if "truncated" in str(error) else "is no result of a unit"
        raise DamagedError(why) from None
    if found.unit != unit:
        if found.unit.version != unit.version:
            raise DamagedError(f"was made by Podium {found.unit.version}, not {unit.version}")
        raise DamagedError(f"is the result of another unit ({found.unit.label})")
    if content_hash(found.payload) != found.sha256 or content != encode_result(unit, found.payload):
        raise DamagedError("was changed after it was written")
    return found.payload


_DECODER = msgspec.msgpack.Decoder(ResultFile)


READERS = 16
"""Requests to an object store at a time."""

Verify = Callable[[Unit, bytes], object]
"""Looks into a payload; raises DamagedError where it is not what it should be."""


class UnitPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was to be run."""

    command: str
    """What to type for the same."""
    units: tuple[Unit, ...]


class UnitStanding(NamedTuple):
    """How far some units are."""

    done: dict[str, float]
    """When the result of each unit that is done was written, by the unit's key."""
    damaged: dict[str, str]
    """What is wrong with the results of others, one sentence each."""


class UnitStore:
    """Results and inputs in one place."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @property
    def url(self) -> str:
        return self.place.url

    # Inputs

    def put_input(self, content: bytes) -> str:
        """Keep a content, unless it is there and right; its hash."""
        digest = content_hash(content)
        name = f"inputs/{digest}"
        there = self.place.read(name)
        if there is None or content_hash(there) != digest:
            self.place.write(name, content)
        return digest

    def input(self, digest: str) -> bytes:
        name = f"inputs/{digest}"
        content = self.place.read(name)
        if content is None:
            raise StoreError(f"{self.url}/{name}: there is no such input; start the same command again to add it")
        if content_hash(content) != digest:
            raise StoreError(
                f"{self.url}/{name}: the content does not match its name; start the same command again to replace it"
            )
        return content

    # Results

    def put_result(self, unit: Unit, payload: bytes) -> None:
        self.place.write(result_name(unit.key), encode_result(unit, payload))

    def result(self, unit: Unit) -> bytes | None:
        """The payload, None where there is none; raises DamagedError with what is wrong with it."""
        content = self.place.read(result_name(unit.key))
        return None if content is None else verified_payload(content, unit)

    def drop_result(self, key: str) -> None:
        """Remove a result that is wrong."""
        self.place.delete(result_name(key))

    def present(self) -> dict[str, float]:
        """When each result that is there was written, by its key; verified or not."""
        return {entry.name.rpartition("/")[2]: entry.written for entry in self.place.entries("results")}

    def standing(self, units: Sequence[Unit], verify: Verify | None = None) -> UnitStanding:
        """Which of these units are done."""
        present = self.present()
        done: dict[str, float] = {}
        damaged: dict[str, str] = {}
        there = [(unit, key) for unit in units if (key := unit.key) in present]
        for unit, key, problem in self._checked(there, verify):
            if problem is None:
                done[key] = present[key]
            else:
                damaged[key] = f"{self.url}/{result_name(key)}: {problem} ({unit.label})"
        return UnitStanding(done, damaged)

    def _checked(
        self, there: Iterable[tuple[Unit, str]], verify: Verify | None
    ) -> Iterator[tuple[Unit, str, str | None]]:
        def check(pair: tuple[Unit, str]) -> tuple[Unit, str, str | None]:
            unit, key = pair
            try:
                payload = self.result(unit)
                if payload is None:
                    return unit, key, "is gone"
                if verify is not None:
                    verify(unit, payload)
            except DamagedError as error:
                return unit, key, str(error)
            return unit, key, None

        if isinstance(self.place, FolderPlace):
            yield from map(check, there)
            return
        with ThreadPoolExecutor(READERS) as readers:
            yield from readers.map(check, there)

    # Plans

    def put_plan(self, plan: UnitPlan) -> str:
        """Keep a plan; its name."""
        content = msgspec.json.encode(plan, order="sorted")
        name = content_hash(content)
        if self.place.read(f"plans/{name}.json") != content:
            self.place.write(f"plans/{name}.json", content)
        return name

    def plan(self, name: str) -> UnitPlan:
        content = self.place.read(f"plans/{name}.json")
        if content is None or content_hash(content) != name:
            raise StoreError(f"{self.url}/plans/{name}.json: is missing or damaged; start the same command again")
        return msgspec.json.decode(content, type=UnitPlan)

    def plans(self) -> list[str]:
        """The names of all plans, the oldest first."""
        found = sorted(self.place.entries("plans"), key=lambda entry: (entry.written, entry.name))
        return [entry.name.removeprefix("plans/").removesuffix(".json") for entry in found]

    # What killed processes left behind

    def clean(self) -> int:
        """Remove partial files of processes that have ended; how many there were."""
        found = self.place.leftovers()
        for name in found:
            self.place.delete(name)
        return len(found)


def result_name(key: str) -> str:
    """Where a result lies in a store.

    >>> result_name("3fa9")
    'results/3f/3fa9'
    """
    return f"results/{key[:2]}/{key}"


def open_store(url: str) -> UnitStore:
    """The store at a folder or an address such as s3://bucket/prefix."""
    return UnitStore(open_place(url))
