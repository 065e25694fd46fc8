"""Turns the names of fields into identifiers of CEL and back: `app-name` is `app__dash__name` in a rule."""

from __future__ import annotations

import re
from typing import Final

from kubecel.words import words

RESERVED: Final = frozenset(
    words(
        "true false null in as break const continue else for function if import let loop package namespace return var "
        "void while"
    )
)
_WRITTEN: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_READ: Final = {written.strip("_"): name for name, written in _WRITTEN.items()}
_NAME: Final = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_REPLACED: Final = re.compile(r"__|[./-]")
_SEQUENCE: Final = re.compile(r"__[^_]+__")


def escaped(name: str) -> str | None:
    """The identifier that a rule reads a field by; None where there is none.

    >>> escaped("app.kubernetes.io/name")
    'app__dot__kubernetes__dot__io__slash__name'
    """
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _REPLACED.sub(lambda found: _WRITTEN[found[0]], name)


def unescaped(identifier: str) -> str | None:
    """The name of the field that a rule reads by an identifier; None for a sequence that stands for nothing."""
    if "__" not in identifier:
        return identifier
    wrong = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal wrong
        contents = found[0][2:-2]
        if contents in _READ:
            return _READ[contents]
        wrong = wrong or contents not in RESERVED or found[0] != identifier
        return contents

    name = _SEQUENCE.sub(replaced, identifier)
    return None if wrong else name
