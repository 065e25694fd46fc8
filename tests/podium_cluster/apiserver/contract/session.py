"""One server seen by one case: requests as they go over the wire, and a transcript that two servers can share.

What differs from run to run is replaced in the transcript: uids, resource versions, times, and the made-up ends of
generated names. managedFields are left out (the embedded server keeps them only from the first apply on), and so
are hashes of storage versions in discovery, which it has none of. Refusals of kinds that nobody schedules with are
compared without their words, unless these are about metadata.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
OWN_WORDS = frozenset(
    (
        *("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ConfigMap", "Secret", "Event"),
        *("CustomResourceDefinition", "Thing"),
    )
)
"""Kinds whose refusals the embedded API words itself."""
LAYOUT = re.compile(
    r'(parsing time "[^"]*"|illegal base64 data|json parse error|continue key is not valid(?=: (invalid char|1:))).*'
)
"""What a text is refused for, without what the server's decoder says about it."""
FLAW = re.compile(
    "unknown patch type|order in patch list|merge key|list element types|failed to create typed patch object|expected a"
)
"""Flaws of a patch."""
SCHEME = re.compile(r' in scheme "[^"]*"')  # a line of kube-apiserver's own source
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class Answer:
    """Code and body of one answer."""

    def __init__(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.code = code
        self.headers = headers
        self.warnings: list[str] = []
        self.raw = body
        try:
            self.body: Any = json.loads(body) if body else None
        except ValueError:
            self.body = body.decode(errors="replace")

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else ""

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", "")) if isinstance(self.body, dict) else ""

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


class Server:
    """How to reach a server: http or https, with or without a token."""

    def __init__(self, url: str, *, token: str = "", ca_path: Path | None = None) -> None:
        self.url = urlsplit(url)
        self.token = token
        self.tls = ssl.create_default_context(cafile=str(ca_path)) if ca_path else None

    def connect(self, timeout: float = 30.0) -> http.client.HTTPConnection:
        assert self.url.hostname is not None
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=timeout)


class Session:
    """What one case says to one server, and what it hears."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.server = server
        self.namespace = namespace
        self.transcript: list[Any] = []
        self._connection = server.connect()

    def close(self) -> None:
        self._connection.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        content_type: str = "application/json",
        note: bool = True,
        keep: tuple[str, ...] = (),
    ) -> Answer:
        """Send a request; the answer is noted unless told not to. `{ns}` in the path is the case's namespace.

        `keep` notes only these fields of the body, where the rest is known to differ.
        """
        path = path.replace("{ns}", self.namespace)
        target = f"{path}?{urlencode(query)}" if query else path
        sent = {"Accept": "application/json", **(headers or {})}
        if self.server.token:
            sent["Authorization"] = f"Bearer {self.server.token}"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", content_type)
        try:
            self._connection.request(method, target, body=data, headers=sent)
            response = self._connection.getresponse()
        except (http.client.HTTPException, ConnectionError):
            self._connection.close()
            self._connection.request(method, target, body=data, headers=sent)
            response = self._connection.getresponse()
        found = {key.lower(): value for key, value in response.getheaders()}
        answer = Answer(response.status, response.read(), found)
        answer.warnings = response.headers.get_all("Warning") or []
        if note:
            shown = answer.body
            if keep and isinstance(shown, dict) and shown.get("kind") != "Status":
                shown = {key: shown.get(key) for key in keep}
            self.note(f"{method} {path}", answer.code, shown)
        return answer

    def note(self, *what: Any) -> None:
        self.transcript.append([normalised(part, self.namespace) for part in what])

    # What cases say most.

    def create(self, path: str, body: Object, **options: Any) -> Answer:
        return self.call("POST", path, body, **options)

    def get(self, path: str, **options: Any) -> Answer:
        return self.call("GET", path, **options)

    def put(self, path: str, body: Object, **options: Any) -> Answer:
        return self.call("PUT", path, body, **options)

    def patch(self, path: str, body: Any, content_type: str = MERGE, **options: Any) -> Answer:
        return self.call("PATCH", path, body, content_type=content_type, **options)

    def apply(self, path: str, body: Object, manager: str, *, force: bool = False, **options: Any) -> Answer:
        query = {"fieldManager": manager, "force": "true" if force else "false", **options.pop("query", {})}
        return self.call("PATCH", path, body, content_type=APPLY, query=query, **options)

    def delete(self, path: str, body: Object | None = None, **options: Any) -> Answer:
        return self.call("DELETE", path, body, **options)

    def watch(self, path: str, *, seconds: int = 1, until: int | None = None, **query: str) -> list[Object]:
        """The events of a watch: until so many have come, or until the server ends it after `seconds`."""
        with Watch(self, path, {"watch": "true", "timeoutSeconds": str(seconds), **query}) as events:
            found = []
            for event in events:
                found.append(event)
                if until is not None and len(found) >= until:
                    break
        return found


class Watch:
    """An open watch; iterating gives its events as they come."""

    def __init__(self, session: Session, path: str, query: dict[str, str], accept: str = "application/json") -> None:
        self.session = session
        self.connection = session.server.connect(timeout=15.0)
        sent = {"Accept": accept}
        if session.server.token:
            sent["Authorization"] = f"Bearer {session.server.token}"
        target = f"{path.replace('{ns}', session.namespace)}?{urlencode(query)}"
        self.connection.request("GET", target, headers=sent)
        self.response = self.connection.getresponse()
        self.code = self.response.status

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def __iter__(self) -> Iterator[Object]:
        if self.code != 200:
            yield {"code": self.code, "object": json.loads(self.response.read())}
            return
        for line in self.response:
            if line.strip():
                yield json.loads(line)

    def collect(self, count: int) -> list[Object]:
        """The next events, so many of them."""
        found = []
        for event in self:
            found.append(event)
            if len(found) == count:
                break
        return found


def seen(events: list[Object]) -> list[Any]:
    """Watch events in short: type and name."""
    return [[event.get("type"), (event["object"].get("metadata") or {}).get("name")] for event in events]


def key_conflicts(causes: Any) -> bool:
    """Conflicts of several managers come in any order."""
    return bool(causes) and all(cause.get("reason") == "FieldManagerConflict" for cause in causes)


def without_own_words(status: Object) -> Object:
    """A refusal as far as both servers say it in the same words."""
    details = status.get("details") or {}
    fields = [cause.get("field", "") for cause in details.get("causes") or ()]
    worded = details.get("kind") in OWN_WORDS and not all(field.startswith("metadata") for field in fields)
    if status.get("reason") == "Invalid" and (worded or fields == ["patch"]):
        details = {key: value for key, value in details.items() if key != "causes"}
        return {"kind": "Status", "code": status["code"], "reason": "Invalid", "details": details}
    if status.get("code") == 500 and (found := FLAW.search(status["message"])):
        return {**status, "message": found[0]}
    return status


def normalised(value: Any, namespace: str = "") -> Any:
    if isinstance(value, dict):
        if value.get("kind") == "Status" and "code" in value:
            value = without_own_words(value)
        found: Object = {}
        for key, inner in value.items():
            if key in ("managedFields", "storageVersionHash"):
                continue
            if key == "resourceVersion" and inner:
                found[key] = "<version>"
            elif key == "continue" and inner:
                found[key] = "<continue>"
            else:
                found[key] = normalised(inner, namespace)
        if key_conflicts(found.get("causes")):
            found["causes"].sort(key=lambda cause: (cause["message"], cause["field"]))
        if found.get("generateName") and found.get("name", "").startswith(found["generateName"]):
            found["name"] = found["generateName"] + "<generated>"
        return found
    if isinstance(value, list | tuple):
        return [normalised(inner, namespace) for inner in value]
    if isinstance(value, str):
        return LAYOUT.sub(r"\1", SCHEME.sub(" in scheme", TIME.sub("<time>", UID.sub("<uid>", value))))
    return value
