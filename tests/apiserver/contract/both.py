"""A contract: one case, told to both servers, that must hear the same from both.

A case is a test function that takes a Session. What it asserts must hold on each server; everything it hears is noted
and must be the same on both, errors included.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
from collections.abc import Callable
from typing import Any

from tests.apiserver.contract.session import Server, Session

Case = Callable[[Session], None]


class Servers:
    """The real server and the embedded one."""

    def __init__(self, real: Server, embedded: Server) -> None:
        self.real = real
        self.embedded = embedded

    def compare(self, case: Case) -> None:
        name = "c-" + hashlib.sha256(f"{case.__module__}.{case.__name__}".encode()).hexdigest()[:10]
        expected = transcript(self.real, case, name)
        found = transcript(self.embedded, case, name)
        for at, (real, embedded) in enumerate(zip(expected, found, strict=False)):
            assert embedded == real, f"answer {at} differs:\n{_difference(real, embedded)}"
        assert len(found) == len(expected)


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
    """Makes a test of a case: run on both servers, compared."""

    @functools.wraps(case)
    def test(servers: Servers) -> None:
        servers.compare(case)

    del test.__wrapped__  # pytest would ask for the case's own argument
    return test


def _difference(real: Any, embedded: Any) -> str:
    first, second = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (real, embedded))
    return "\n".join(difflib.unified_diff(first, second, "kube-apiserver", "embedded", lineterm=""))
