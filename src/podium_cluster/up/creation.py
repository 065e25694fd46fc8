"""Creates the objects of a workload in the API, and leaves those alone that are there already.

The custom resources that Podium's plugins schedule by are installed before, so that a workload may have some. Kinds
that nothing here acts on (Ingress, CronJob, …) are stored and counted.
`demonstrate` shows what `make demo` is about: once the workload is decided, explains a pod that fits nowhere.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from podium.controllers.catalog import definitions
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.up import UpError
from podium_cluster.up.manifests import Manifest
from podium_cluster.up.pod_tracker import PodTracker
from podium_cluster.up.screen import Screen, counted

_MANAGER = "podium-up"


class CreatedObjects(NamedTuple):
    """How many objects were created, and how many there are of each kind that nothing here acts on."""

    objects: int
    inert: Counter[str]


def install_definitions(api: EmbeddedApi) -> None:
    """Have the API serve PodGroups, ElasticQuotas and the others (podium crds)."""
    for definition in definitions().values():
        _create(api, definition)


def create(api: EmbeddedApi, workload: list[Manifest]) -> CreatedObjects:
    """Create the objects; raises UpError with the API's words for one that is refused, and before anything is created
    where a kind is not served."""
    _check_kinds(api, workload)
    created = 0
    inert: Counter[str] = Counter()
    for manifest in workload:
        try:
            created += _create(api, manifest.obj)
        except StatusError as error:
            raise UpError(f"--workload: {manifest.obj['kind']} {manifest.name}: {error.message}") from None
        kind = api.kinds.by_kind(*manifest.api_kind)
        inert[manifest.obj["kind"]] += kind is not None and kind.inert
    return CreatedObjects(created, +inert)


def _create(api: EmbeddedApi, obj: JsonObject) -> bool:
    """Create one object; False where it is there already."""
    kind = api.kinds.by_kind(obj["apiVersion"], obj["kind"])
    if kind is None:  # its definition is in the workload, and was refused its names
        raise StatusError(404, "NotFound", f"its kind is not served in version {obj['apiVersion']}")
    try:
        api.create(kind, obj, field_validation="Strict", manager=_MANAGER)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
        return False
    return True


def _check_kinds(api: EmbeddedApi, workload: list[Manifest]) -> None:
    """Refuse a workload with kinds that neither the API serves nor the workload defines, all in one sentence."""
    defined = set(_defined(each.obj for each in workload))
    unknown = [each for each in workload if api.kinds.by_kind(*each.api_kind) is None and each.api_kind not in defined]
    if unknown:
        what = "this kind" if len({each.api_kind for each in unknown}) == 1 else "these kinds"
        advice = "add the CustomResourceDefinition to the workload, or leave the object out"
        listed = ", ".join(_located(api, each) for each in unknown)
        raise UpError(f"--workload: {listed}: this API does not serve {what}; {advice}")


def _located(api: EmbeddedApi, manifest: Manifest) -> str:
    """The object, its version and file, and the versions that the API has of a kind of that name."""
    version, kind = manifest.api_kind
    served = dict.fromkeys(each.api_version for each in api.kinds if each.kind == kind)
    instead = f", served as {' and '.join(served)}" if served else ""
    return f"{kind} {manifest.name} ({version}{instead}, in {manifest.file})"


def _defined(workload: Iterable[JsonObject]) -> Iterator[tuple[str, str]]:
    """The apiVersions and kinds that the definitions among these objects bring, as far as they are well formed."""
    for obj in workload:
        if obj["kind"] == "CustomResourceDefinition" and isinstance(spec := obj.get("spec"), dict):
            names, versions = spec.get("names"), spec.get("versions")
            if isinstance(names, dict) and isinstance(versions, list):
                for version in versions:
                    if isinstance(version, dict):
                        yield f"{spec.get('group')}/{version.get('name')}", str(names.get("kind"))


_LOOK: Final = 0.05
_QUIET: Final = 0.5
"""Seconds without a new pod after which a workload counts as decided."""
_LONGEST: Final = 60.0
"""Seconds after which the demonstration goes on, decided or not."""
_WIDTH: Final = 120
_REPLICATED: Final = (built_in("apps/v1", "Deployment"), built_in("apps/v1", "StatefulSet"))


async def demonstrate(api: EmbeddedApi, tracker: PodTracker, screen: Screen, kubeconfig: Path) -> None:
    """Returns when there is nothing more to show."""
    await _until_decided(api, tracker)
    refused = tracker.refused()
    screen.say(f"{counted(tracker.placed, 'pod')} placed, {len(refused)} without a node")
    if refused:
        command = ["explain", refused[0].pod, "--kubeconfig", str(kubeconfig)]
        screen.show_page(f"$ podium {' '.join(command)}", await _podium(*command))


async def _until_decided(api: EmbeddedApi, tracker: PodTracker) -> None:
    """Wait until every pod has a node or a refusal, and no new ones come for a moment."""
    end = time.monotonic() + _LONGEST
    quiet_since, seen = time.monotonic(), -1
    while time.monotonic() < end and (time.monotonic() - quiet_since < _QUIET or not tracker.pods):
        await asyncio.sleep(_LOOK)
        if tracker.pods != seen or tracker.undecided or not _made(api):
            quiet_since, seen = time.monotonic(), tracker.pods


def _made(api: EmbeddedApi) -> bool:
    """Whether every pod is there that Deployments and StatefulSets ask for."""
    return all(
        (obj.get("status") or {}).get("replicas", 0) == obj["spec"].get("replicas", 1)
        for kind in _REPLICATED
        for obj in api.list(kind)
    )


async def _podium(*arguments: str) -> str:
    """What another podium prints, as wide as this one may."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "podium",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": str(shutil.get_terminal_size((_WIDTH, 0)).columns)},
    )
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    return out.decode().rstrip()
