"""Writes the bill of materials of a release, in CycloneDX: the packages of a lock file, with versions and hashes."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any, Final

_PACKAGE: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)((?:.*\\\n)*.*)", re.MULTILINE)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def sbom(version: str, lock: str) -> str:
    """The document for this version of Podium with the packages of a lock file; the same input gives the same text."""
    podium = {**_component("application", "podium", version), "licenses": [{"license": {"id": "Apache-2.0"}}]}
    packages = [
        {**_component("library", name, its_version), "hashes": _hashes(rest)}
        for name, its_version, rest in _PACKAGE.findall(lock)
    ]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, f'podium {version} {lock}')}",
        "version": 1,
        "metadata": {"component": podium},
        "components": packages,
    }
    return json.dumps(document, indent=2) + "\n"


def _component(kind: str, name: str, version: str) -> dict[str, Any]:
    address = f"pkg:pypi/{name}@{version}"
    return {"type": kind, "bom-ref": address, "name": name, "version": version, "purl": address}


def _hashes(text: str) -> list[dict[str, str]]:
    """One for each file of the package that may be installed."""
    return [{"alg": "SHA-256", "content": found} for found in _HASH.findall(text)]
