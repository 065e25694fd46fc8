"""Shows learners what becomes of pods, by watching the API server, and stores their lessons in ConfigMaps.

    read the ConfigMap → watch all pods, ended ones too → show them to the learners → write, a while after a lesson

A ConfigMap is written by its resource version. When another replica was there first, its lessons are read, the learner
puts both together, and that is written. The version of the newest pod that a lesson came from is written along: after a
restart, pods that have not changed since then teach nothing a second time.

Where a ConfigMap cannot be read or written, that is reported, and learning goes on in memory. Replicas that do not lead
learn as well, and write nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

import msgspec

from podium.client.api_errors import ApiError, ClientError, missing_rule
from podium.client.client import Client
from podium.client.problem_reports import ProblemReports
from podium.client.reflector import Reflector
from podium.client.resource import ApiResource
from podium.framework.clock import Clock
from podium.framework.pod_outcomes import ConfigMapName, Learner, LearnerFailed, PodOutcome
from podium.kube.bounds import UNDECODABLE

PODS = ApiResource("/api/v1/pods", PodOutcome)
UNTIL = "podium.dev/learnt-until"
SETTLE = 5.0
"""Seconds from a first lesson until all are written: a crash rarely comes alone."""
RETRY = 30.0
"""Seconds until what could not be read or written is tried again."""
TURNS = 5
"""How often a write that others come before is tried at once."""

L = TypeVar("L", bound=Learner)


class WatchedOutcomes:
    """A `framework.pod_outcomes.PodOutcomes`; does nothing while no plugin learns. `run` it; `flush` at the end."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        rng: random.Random,
        report: Callable[[str], None],
        may_write: Callable[[], bool] = lambda: True,
        settle: float = SETTLE,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._report = report
        self._may_write = may_write
        self._settle = settle
        self._pages: dict[ConfigMapName, _Page] = {}
        self._unwritten = asyncio.Event()
        self._recalled = asyncio.Event()

    def follow(self, config_map: ConfigMapName, make: Callable[[], L], failed: LearnerFailed) -> L:
        page = self._pages.get(config_map)
        if page is None:
            page = self._pages[config_map] = _Page(
                self._client, config_map, make(), failed, self._clock, self._rng, self._report
            )
        return cast("L", page.learner)

    async def run(self) -> None:
        """Learn and write, until cancelled."""
        for page in self._pages.values():
            while not await page.read():  # noqa: ASYNC110  a retry
                await asyncio.sleep(RETRY)
        self._recalled.set()
        if not self._pages:
            return
        reflector = Reflector(
            self._client, PODS, on_set=self._observe, on_delete=_nothing, report=self._report, rng=self._rng
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reflector.run())
            tasks.create_task(self._keep())

    async def restored(self, seconds: float) -> None:
        """Wait until what was kept is known, but no longer than this; `run` does the reading."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._recalled.wait(), seconds)

    async def flush(self) -> None:
        """Write what is still unwritten."""
        for page in self._pages.values():
            if page.unwritten and self._may_write():
                await page.write()

    def _observe(self, pod: PodOutcome) -> None:
        now = self._clock.now()
        for page in self._pages.values():
            if page.observe(pod, now):
                self._unwritten.set()

    async def _keep(self) -> None:
        while True:
            await self._unwritten.wait()
            await asyncio.sleep(self._settle)
            self._unwritten.clear()
            await self.flush()
            if any(page.unwritten for page in self._pages.values()):
                await asyncio.sleep(RETRY)
                self._unwritten.set()


class _Page:
    """One ConfigMap, and who learns into it."""

    def __init__(
        self,
        client: Client,
        config_map: ConfigMapName,
        learner: Learner,
        failed: LearnerFailed,
        clock: Clock,
        rng: random.Random,
        report: Callable[[str], None],
    ) -> None:
        self.learner = learner
        self.unwritten = False
        self._failed = failed
        self._client = client
        self._config_map = config_map
        self._clock = clock
        self._rng = rng
        self._reports = ProblemReports(report)
        self._collection = f"/api/v1/namespaces/{config_map.namespace}/configmaps"
        self._found: dict[str, Any] | None = None
        self._learnt_before = 0
        self._newest = 0

    def observe(self, pod: PodOutcome, now: float) -> bool:
        version = _number(pod.metadata.resource_version)
        if 0 < version <= self._learnt_before:
            return False
        try:
            if not self.learner.observe(pod, now):
                return False
        except Exception as error:  # whatever the plugin raises; it is logged with its name
            self._failed(pod.key, error)
            return False
        self._newest = max(self._newest, version)
        self.unwritten = True
        return True

    async def read(self) -> bool:
        """Take over what was kept; whether there is an answer, be it that there is nothing, or that it is withheld."""
        try:
            await self._fetch()
        except ApiError as error:
            self._report_problem("read", error)
            return error.forbidden
        except ClientError as error:
            self._report_problem("read", error)
            return False
        self._learnt_before = self._newest
        return True

    async def write(self) -> None:
        try:
            for turn in range(TURNS):
                lessons = self._lessons()
                if lessons is None or await self._put(lessons):
                    self.unwritten = False
                    self._reports.end(f"lessons are kept again in the ConfigMap {self._name}")
                    return
                await asyncio.sleep(self._rng.uniform(0, 0.1 * 2**turn))
                await self._fetch()
            self._reports.begin(f"lessons are not kept: others write the ConfigMap {self._name} all the time")
        except ClientError as error:
            self._report_problem("written", error)

    def _lessons(self) -> dict[str, str] | None:
        """What the learner wants kept; None where it fails."""
        try:
            return self.learner.save(self._clock.now())
        except Exception as error:  # whatever the plugin raises; it is logged with its name
            self._failed("", error)
            return None

    async def _put(self, lessons: dict[str, str]) -> bool:
        """Write once; whether no other replica had written meanwhile."""
        annotations = {UNTIL: str(self._newest)} if self._newest else {}
        found = self._found or {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self._config_map.name}}
        metadata = found["metadata"]
        metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}
        metadata.pop("managedFields", None)
        wanted = {**found, "metadata": metadata, "data": lessons}
        try:
            if self._found is None:
                answer = await self._client.post(self._collection, wanted)
            else:
                answer = await self._client.put(f"{self._collection}/{self._config_map.name}", wanted)
        except ApiError as error:
            if error.conflict or (error.not_found and self._found is not None):
                return False
            raise
        self._found = _config_map(answer)
        return True

    async def _fetch(self) -> None:
        try:
            body = await self._client.get(f"{self._collection}/{self._config_map.name}")
        except ApiError as error:
            if not error.not_found:
                raise
            self._found = None
            return
        self._found = _config_map(body)
        annotations: Mapping[str, str] = self._found["metadata"].get("annotations") or {}
        self._newest = max(self._newest, _number(annotations.get(UNTIL, "")))
        try:
            self.learner.restore(self._found.get("data") or {}, self._clock.now())
        except Exception as error:  # whatever the plugin raises; it is logged with its name
            self._failed("", error)

    def _report_problem(self, what: str, error: ClientError) -> None:
        rule = missing_rule(error) if isinstance(error, ApiError) else ""
        needs = f": the role needs the rule {rule}" if rule else f": {error}"
        self._reports.begin(f"the ConfigMap {self._name}, where lessons are kept, cannot be {what}{needs}")

    @property
    def _name(self) -> str:
        return f"{self._config_map.namespace}/{self._config_map.name}"


def _number(version: str) -> int:
    """A resource version as a number; 0 where it is none, so that every pod counts as new."""
    return int(version) if version.isdecimal() and version.isascii() else 0


def _nothing(_pod: PodOutcome) -> None:
    """A pod that is gone teaches nothing: it went because it was meant to."""


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


def _config_map(body: bytes) -> dict[str, Any]:
    """The ConfigMap in an answer, with all that others keep in it."""
    try:
        msgspec.json.decode(body, type=_ConfigMap)
        found: dict[str, Any] = msgspec.json.decode(body)
    except UNDECODABLE as error:
        raise ClientError(f"the API server's answer is no ConfigMap: {error}") from None
    return found
