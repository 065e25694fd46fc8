"""Describes the fields of objects: strict decoding, defaults, OpenAPI and custom resources follow from them."""

from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.schema.fields import FieldType
from podium_cluster.apiserver.schema.lookup import Schema, schema_of
from podium_cluster.apiserver.schema.strict_check import DecodingError

__all__ = ["CustomKind", "DecodingError", "FieldType", "Schema", "schema_of"]
