"""Answers `/flagz` (the options in force) and `/statusz` (version, start, paths), as Kubernetes' components do.

Without an `Accept`, and for curl's `*/*`, both are plain text for people. A program asks for an object and names its
kind: `Accept: application/json;as=Statusz;v=v1beta1;g=config.k8s.io` (also `application/yaml`, and `v1alpha1`, which is
deprecated). Anything else is refused with 406, as by kube-scheduler.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import yaml
from aiohttp import web

from podium.framework.clock import SystemClock

COMPONENT: Final = "podium"
GROUP: Final = "config.k8s.io"
VERSIONS: Final = ("v1beta1", "v1alpha1")
_HEADER: Final = (
    "\n{component} {page}\n"
    "Warning: for people who look into a process: the form may change, so no program should read it.\n\n"
)
_ACCEPTED: Final = "only the following media types are accepted: application/json, application/yaml, text/plain"

Page = Callable[[web.Request], web.Response]


def flags_page(flags: Mapping[str, str], component: str = COMPONENT) -> Page:
    """`/flagz`: every option of the command line with its value."""

    def answer(request: web.Request) -> web.Response:
        lines = "".join(f"{name}={value}\n" for name, value in sorted(flags.items()))
        return _negotiated(request, "Flagz", component, lines, {"flags": dict(sorted(flags.items()))})

    return answer


def status_page(version: str, paths: Iterable[str], component: str = COMPONENT) -> Page:
    """`/statusz`: since when it runs, what it is, and where else to look."""
    clock = SystemClock()
    started = clock.now()
    folders = sorted({f"/{path.split('/')[1]}" for path in paths})

    def answer(request: web.Request) -> web.Response:
        up = max(0, int(clock.now() - started))
        start = datetime.fromtimestamp(int(started), UTC)
        lines = (
            f"Started: {start:%a %b %e %H:%M:%S UTC %Y}\n"
            f"Up: {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec\n"
            f"Python version: {platform.python_version()}\n"
            f"Binary version: {version}\n"
            f"Paths: {' '.join(folders)}\n"
        )
        fields = {
            "startTime": f"{start:%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": up,
            "goVersion": "",  # the field must be there; Podium has no Go in it
            "binaryVersion": version,
            "paths": folders,
        }
        return _negotiated(request, "Statusz", component, lines, fields)

    return answer


def _negotiated(request: web.Request, kind: str, component: str, lines: str, fields: Mapping[str, Any]) -> web.Response:
    """The answer in the first form of the `Accept` header that there is."""
    for clause in request.headers.get("Accept", "").split(","):
        media, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        if media in ("", "*/*", "text/*", "text/plain") and "as" not in parameters:
            text = _HEADER.format(component=component, page=kind.lower()) + lines
            return web.Response(text=text, content_type="text/plain", charset="utf-8")
        version = parameters.get("v", "")
        if (parameters.get("as"), parameters.get("g"), version in VERSIONS) != (kind, GROUP, True):
            continue
        value = {"kind": kind, "apiVersion": f"{GROUP}/{version}", "metadata": {"name": component}, **fields}
        response = _structured(media, value)
        if response is not None:
            if version != VERSIONS[0]:
                page = kind.lower()
                response.headers["Warning"] = (
                    f'299 - "This version of the {page} endpoint is deprecated. Please use a newer version."'
                )
            return response
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": _ACCEPTED}
    body = msgspec.json.encode({**status, "reason": "NotAcceptable", "code": 406}) + b"\n"
    return web.Response(status=406, body=body, content_type="application/json")


def _structured(media: str, value: Mapping[str, Any]) -> web.Response | None:
    if media in ("application/json", "application/*", "*/*"):
        return web.Response(body=msgspec.json.encode(value) + b"\n", content_type="application/json")
    if media == "application/yaml":
        return web.Response(text=yaml.safe_dump(value, sort_keys=True), content_type="application/yaml")
    return None
