"""What fields objects have, and everything that follows: strict decoding, defaults, OpenAPI, custom resources."""

from podium.apiserver.schema.builtin import built_in_schema as schema_of
from podium.apiserver.schema.fields import FieldType
from podium.apiserver.schema.scrutiny import DecodingError

__all__ = ["DecodingError", "FieldType", "schema_of"]
