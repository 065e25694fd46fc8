"""Makes the JSON Schema of scenarios, which editors use to complete and check them."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.config.durations import Duration
from podium_lab.simulator.scenario import Scenario

DURATION = {
    "type": "string",
    "pattern": r"^(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$",
    "examples": ["90s", "5m", "1h30m"],
}


def scenario_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12."""
    schema = msgspec.json.schema(Scenario, schema_hook=_hook)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Podium scenario", **schema}


def _hook(kind: type) -> dict[str, Any]:
    if kind is Duration:
        return DURATION
    raise NotImplementedError(kind)
