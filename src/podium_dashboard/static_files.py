"""Reads the built page once: every file with its type, packed for browsers that take that.

Names of files hold a hash of what is in them, so browsers keep them for ever; only `index.html` is asked for again.
"""

from __future__ import annotations

import gzip
import hashlib
from importlib.resources import files
from typing import Final, NamedTuple

INDEX: Final = "index.html"
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class StaticFile(NamedTuple):
    """A file of the page."""

    content_type: str
    body: bytes
    packed: bytes
    etag: str
    caching: str


def read_static_files() -> dict[str, StaticFile]:
    """The files by path below the page's own; nothing where the page was not built."""
    found: dict[str, StaticFile] = {}
    folders = [("", files("podium_dashboard") / "static")]
    for prefix, folder in folders:
        if not folder.is_dir():
            continue
        for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
            path = f"{prefix}{each.name}"
            if each.is_dir():
                folders.append((f"{path}/", each))
            elif (content_type := _TYPES.get(path.rpartition(".")[2])) is not None:
                found[path] = _read(content_type, each.read_bytes(), hashed=bool(prefix))
    return found


def _read(content_type: str, body: bytes, *, hashed: bool) -> StaticFile:
    digest = hashlib.sha256(body).hexdigest()[:16]
    packed = gzip.compress(body, 6, mtime=0)
    return StaticFile(content_type, body, packed, f'"{digest}"', _FOR_EVER if hashed else "no-cache")
