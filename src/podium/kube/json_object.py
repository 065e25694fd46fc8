"""Names the type of a decoded JSON object, for objects that are read and written as plain dictionaries."""

from typing import Any

JsonObject = dict[str, Any]
