"""What the API server itself says was asked of it: every binding and every change of a lease, by whom, and the answer.

A scheduler's own log cannot prove that it bound nothing twice, and a watch shows only what changed. The API server's
audit log has each request with its user, before it answers; what is read from it here is written by the component that
decided. A server that is killed may lose the entry of a request it has carried out, never invent one.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Request", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods/binding"]}]},
        {
            "level": "Request",
            "verbs": ["create", "update", "patch"],
            "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
        },
        {"level": "None"},
    ],
}


class Request(NamedTuple):
    """One audited request; `time` is when the server had received it, in seconds since 1970."""

    kind: str  # "binding" or "lease"
    user: str
    namespace: str
    name: str
    status: int
    time: float
    body: dict[str, Any]

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def node(self) -> str:
        """Where a binding puts its pod; nowhere when its asker went away before the server had read it."""
        node: str = self.body.get("target", {}).get("name", "")
        return node

    @property
    def holder(self) -> str:
        """Who holds a lease after this request."""
        holder: str = self.body.get("spec", {}).get("holderIdentity") or ""
        return holder


class Access(NamedTuple):
    """What was asked for, and the answer's status."""

    group: str
    resource: str  # with its subresource: "pods/binding"
    verb: str
    status: int


def audit_flags(policy: Path, log: Path, *, everything: bool = False) -> list[str]:
    """The API server's flags for such a log, or for one that also has every other request; writes the policy."""
    rules: list[Any] = [*_POLICY["rules"][:-1], {"level": "Metadata" if everything else "None"}]
    policy.write_text(yaml.safe_dump({**_POLICY, "rules": rules}))
    # One file however long: a rotated one would hide its beginning.
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-maxsize=4096"]


def bindings(log: Path) -> list[Request]:
    """All requests to bind a pod, in the order in which they were answered."""
    return [request for request in _requests(log) if request.kind == "binding"]


def lease_changes(log: Path, name: str) -> list[Request]:
    """All requests to create or change the lease called `name`."""
    return [request for request in _requests(log) if request.kind == "lease" and request.name == name]


def accesses(log: Path, user: str) -> set[Access]:
    """All that a user asked for, of a log of everything; watches count when they begin."""
    found = set()
    for event in _events(log):
        subject = event.get("objectRef")
        if subject is not None and event["user"].get("username") == user:
            resource = "/".join(filter(None, (subject.get("resource", ""), subject.get("subresource", ""))))
            status = event.get("responseStatus", {}).get("code", 0)
            found.add(Access(subject.get("apiGroup", ""), resource, event["verb"], status))
    return found


def _events(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(line)
        except msgspec.DecodeError:  # the server was killed while it wrote this line
            continue


def _requests(log: Path) -> Iterator[Request]:
    for event in _events(log):
        subject = event.get("objectRef", {})
        if subject.get("subresource") != "binding" and subject.get("resource") != "leases":
            continue
        yield Request(
            kind="binding" if subject.get("subresource") == "binding" else "lease",
            user=event["user"].get("username", ""),
            namespace=subject.get("namespace", ""),
            name=subject.get("name", ""),
            status=event.get("responseStatus", {}).get("code", 0),
            time=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
            body=event.get("requestObject", {}),
        )
