"""Writes `web/src/api.ts`: the types of the dashboard's API, made from the server's own.

python -m tools.dashboard_types            # after a change of podium_dashboard/records.py
python -m tools.dashboard_types --check    # exit code 1 if it is not up to date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from msgspec import inspect

from podium.whatif.capacity import CapacityRecord
from podium.whatif.fit import FitRecord
from podium.whatif.records import StateRecord
from podium_dashboard.records import ANSWERS

TYPES: Final = Path(__file__).parents[1] / "web/src/api.ts"
ABOUT: Final = "// Types of the dashboard's API. Written by `python -m tools.dashboard_types`; not edited.\n"
_SCALARS: Final[dict[Any, str]] = {
    inspect.BoolType: "boolean",
    inspect.IntType: "number",
    inspect.FloatType: "number",
    inspect.StrType: "string",
    inspect.NoneType: "null",
    inspect.AnyType: "unknown",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    text = types()
    if parser.parse_args().check:
        if TYPES.read_text(encoding="utf-8") == text:
            return 0
        print("web/src/api.ts is not up to date: run python -m tools.dashboard_types", file=sys.stderr)
        return 1
    TYPES.write_text(text, encoding="utf-8")
    return 0


def types() -> str:
    """The text of the module."""
    found: dict[str, str] = {}
    for answer in (*ANSWERS, StateRecord, FitRecord, CapacityRecord):
        _name_of(inspect.type_info(answer), found)
    return "\n".join([ABOUT, *(found[name] for name in sorted(found))])


def _name_of(kind: Any, found: dict[str, str]) -> str:
    """The TypeScript of a type; what it needs is added to `found`."""
    if isinstance(kind, inspect.StructType | inspect.DataclassType):
        name = kind.cls.__name__
        if name not in found:
            found[name] = ""
            # What explanations leave out where it is empty are fields of dataclasses with a default.
            optional = isinstance(kind, inspect.DataclassType) or kind.cls.__struct_config__.omit_defaults
            found[name] = _interface(name, kind.fields, found, optional=optional)
        return name
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        item = _name_of(kind.item_type, found)
        return f"{item}[]" if item.isidentifier() else f"({item})[]"
    if isinstance(kind, inspect.DictType):
        return f"Record<string, {_name_of(kind.value_type, found)}>"
    if isinstance(kind, inspect.NamedTupleType):  # written as a list
        return f"[{', '.join(_name_of(field.type, found) for field in kind.fields)}]"
    if isinstance(kind, inspect.UnionType):
        return " | ".join(_name_of(each, found) for each in kind.types)
    if isinstance(kind, inspect.EnumType):
        return " | ".join(f'"{each.name}"' for each in kind.cls)
    return _SCALARS[type(kind)]


def _interface(name: str, fields: Iterable[inspect.Field], found: dict[str, str], *, optional: bool) -> str:
    lines = []
    for field in fields:
        mark = "?" if optional and not field.required else ""
        lines.append(f"  {field.encode_name}{mark}: {_name_of(field.type, found)};\n")
    return f"export interface {name} {{\n{''.join(lines)}}}\n"


if __name__ == "__main__":
    sys.exit(main())
