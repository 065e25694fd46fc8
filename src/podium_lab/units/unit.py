"""Defines a unit of work, and the hash that names its result.

A result depends on what is run, the profile, the seeds, the content of every input, and the code. The hash covers all
of these and nothing else: not where a file lies, and not which machine did the work.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

import msgspec

from podium.errors import UserError
from podium.packages import version


class UnitError(UserError):
    """A unit cannot be run, or not with these options."""


class StoreError(UserError):
    """The store cannot be read or written."""


class DamagedError(Exception):
    """Content of a store that is not what its name says; the text says why."""


PACKAGES = ("kubecel", "podium", "podium_plugins", "podium_lab")
"""The packages whose code may change a result."""
CODE = frozenset((".py", ".json", ".yaml"))


class Unit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One piece of work."""

    what: str
    """What is run: a name of `work.WORK`."""
    profile: str
    """What is compared: a profile, a policy, a form of a score."""
    seeds: tuple[int, int]
    """The first and the last seed."""
    inputs: dict[str, str]
    """The SHA-256 of each input by its name. Settings are an input too."""
    version: str
    """The code that runs it."""

    @property
    def key(self) -> str:
        """The hash of all of this."""
        return content_hash(msgspec.json.encode(self, order="sorted"))

    @property
    def label(self) -> str:
        """What to call it.

        >>> Unit("simulate", "packed", (42, 42), {}, "1").label
        'simulate packed, seed 42'
        """
        first, last = self.seeds
        return f"{self.what} {self.profile}, " + (f"seed {first}" if first == last else f"seeds {first}-{last}")


def content_hash(content: bytes) -> str:
    """
    >>> content_hash(b"")[:12]
    'e3b0c44298fc'
    """
    return hashlib.sha256(content).hexdigest()


@lru_cache(maxsize=1)
def code_version() -> str:
    """Podium's version with the hash of its code, so that two checkouts of one version do not share results."""
    return f"{version()}+{code_hash()}"


@lru_cache(maxsize=1)
def code_hash() -> str:
    """The hash of all code that may change a result."""
    hashed = hashlib.sha256()
    for package in PACKAGES:
        folder = package_folder(package)
        for file in sorted(each for each in folder.rglob("*") if each.suffix in CODE):
            hashed.update(f"{package}/{file.relative_to(folder).as_posix()}\0".encode())
            hashed.update(hashlib.sha256(file.read_bytes()).digest())
    return hashed.hexdigest()[:12]


def is_for_this_code(unit: Unit) -> bool:
    """Whether this process has the code that a unit is for."""
    return unit.version.rpartition("+")[2] == code_hash()


def package_folder(package: str) -> Path:
    """Where the code of a package lies."""
    spec = find_spec(package)
    assert spec is not None, "our packages are installed together"
    return Path(spec.origin or "").parent


def seconds_now() -> float:
    """Seconds of a clock that never goes back: how long work takes. No result depends on it."""
    return monotonic()
