"""Says what kube-apiserver would refuse of a pod or a node that no one has sent to it, such as one of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium_cluster.apiserver.kinds import NODE, POD, rules_of
from podium_cluster.apiserver.schema import DecodingError, schema_of
from podium_cluster.apiserver.validation.metadata import metadata_causes


def refused(kind: str, obj: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Field and message of everything that the API would not take, and whether the field is only unknown to it."""
    of = {"Pod": POD, "Node": NODE}[kind]
    schema, rules = schema_of(of), rules_of(of)
    try:
        unknown = schema.take(obj := {"apiVersion": "v1", "kind": kind, **obj})
    except DecodingError as error:
        yield "", str(error), False
        return
    for each in unknown:
        yield each.partition('"')[2].rstrip('"'), each, True
    schema.apply_defaults(obj)
    for cause in (*metadata_causes(obj["metadata"], of, rules.name_errors), *rules.validate(obj)):
        yield cause.field, cause.message, False
