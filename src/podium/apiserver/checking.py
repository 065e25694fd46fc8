"""The fields of an object that comes in: unknown ones, wrong types, and what is filled in where nothing was said."""

from typing import Any

from podium.apiserver.kinds import Kind


def check_and_default(kind: Kind, obj: dict[str, Any], field_validation: str) -> None:
    """Check the object against its schema and fill in defaults, in place."""
