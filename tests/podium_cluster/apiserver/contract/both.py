"""A contract: one case, told to two servers, that must hear the same from both.

A case is a test function that takes a Session. What it asserts must hold on each server; everything it hears is noted
and must be the same on both, errors included. What the real kube-apiserver says is kept in `recorded/`, so that the
embedded API is compared with it where there is no real one; where there is one, what was recorded is compared too.

    # writes down what the real one says today
    PODIUM_RECORD=1 make integration TESTS=tests/podium_cluster/apiserver/contract
"""

from __future__ import annotations

import difflib
import functools
import gzip
import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.podium_cluster.apiserver.contract.session import Server, Session

Case = Callable[[Session], None]

REFUSED_IN_OTHER_WORDS = frozenset(
    (
        "test_device_claims.test_claims_refused",
        "test_device_claims.test_classes_refused",
        "test_device_claims.test_statuses_refused",
        "test_device_claims.test_templates_refused",
        "test_random_device_objects.test_new_device_objects",
        "test_random_device_objects.test_new_states_of_device_objects",
        "test_random_device_objects.test_new_statuses_of_allocated_claims",
        "test_random_device_objects.test_new_statuses_of_claims",
        "test_random_device_objects.test_patches_of_statuses",
        "test_resource_slices.test_slices_refused",
    )
)
"""Cases in which the embedded API refuses the same, and not in the words of 1.37: objects of devices with mistakes."""

_REFUSAL = re.compile(r"[\w.\[\]-]+: (Invalid|Required|Forbidden|Duplicate|Too|Unsupported|Not found)")
RECORDED = Path(__file__).parent / "recorded"


class Servers:
    """The embedded server, and the real one where it runs."""

    def __init__(self, real: Server | None, embedded: Server) -> None:
        self.real = real
        self.embedded = embedded

    def compare(self, case: Case) -> None:
        name = "c-" + hashlib.sha256(_title(case).encode()).hexdigest()[:10]
        expected = self._expected(case, name)
        found = json.loads(json.dumps(transcript(self.embedded, case, name)))
        if _title(case) in REFUSED_IN_OTHER_WORDS:
            found, expected = _without_words(found), _without_words(expected)
        _same(found, expected, "kube-apiserver", "embedded")

    def _expected(self, case: Case, name: str) -> list[Any]:
        if self.real is None:
            return recorded(case)
        heard: list[Any] = json.loads(json.dumps(transcript(self.real, case, name)))
        if os.environ.get("PODIUM_RECORD") == "1":
            record(case, heard)
        _same(heard, recorded(case), "recorded", "kube-apiserver")
        return heard


def recorded(case: Case) -> list[Any]:
    """What the real server said when it was last recorded."""
    with gzip.open(_file(case), "rt", encoding="utf-8") as file:
        found: list[Any] = json.load(file)
    return found


def record(case: Case, heard: list[Any]) -> None:
    file = _file(case)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(json.dumps(heard, separators=(",", ":")).encode(), mtime=0))


def _title(case: Case) -> str:
    """Names a case whatever folder it lies in."""
    return f"{case.__module__.rpartition('.')[2]}.{case.__name__}"


def _file(case: Case) -> Path:
    return RECORDED / f"{_title(case)}.json.gz"


def _same(found: list[Any], expected: list[Any], first: str, second: str) -> None:
    for at, (one, other) in enumerate(zip(expected, found, strict=False)):
        assert other == one, f"answer {at} differs:\n{_difference(one, other, first, second)}"
    assert len(found) == len(expected)


def _without_words(heard: Any) -> Any:
    """The answers with no more of a refusal than that it was one."""
    if isinstance(heard, dict):
        if heard.get("kind") == "Status" and heard.get("reason") == "Invalid":
            return {"kind": "Status", "reason": "Invalid"}
        return {name: _without_words(value) for name, value in heard.items()}
    if isinstance(heard, list):
        refusals = [each for each in heard if isinstance(each, str) and _REFUSAL.match(each)]
        return ["refused"] if refusals else [_without_words(each) for each in heard]
    return heard


def transcript(server: Server, case: Case, namespace: str) -> list[Any]:
    session = Session(server, namespace)
    try:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        assert session.create("/api/v1/namespaces", made, note=False).code == 201
        case(session)
    finally:
        session.close()
    return session.transcript


def contract(case: Case) -> Callable[[Servers], None]:
    """Makes a test of a case: compared with what was recorded, and with the real server where it runs."""

    @functools.wraps(case)
    def test(servers: Servers) -> None:
        servers.compare(case)

    del test.__wrapped__  # pytest would ask for the case's own argument
    return test


def _difference(one: Any, other: Any, first: str, second: str) -> str:
    before, after = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (one, other))
    return "\n".join(difflib.unified_diff(before, after, first, second, lineterm=""))
