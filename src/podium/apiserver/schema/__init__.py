"""Describes the fields of objects: strict decoding, defaults, OpenAPI and custom resources follow from them."""

from podium.apiserver.schema.custom import CustomKind
from podium.apiserver.schema.fields import FieldType
from podium.apiserver.schema.lookup import Schema, schema_of
from podium.apiserver.schema.scrutiny import DecodingError, WrongTypeError

__all__ = ["CustomKind", "DecodingError", "FieldType", "Schema", "WrongTypeError", "schema_of"]
