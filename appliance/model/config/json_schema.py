"""JSON Schema of the configuration, for editors that complete keys and show what they mean."""

from collections.abc import Mapping
from typing import Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from appliance.model.config.configuration import Config

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class _ForEditors(GenerateJsonSchema):
    """Leaves out repetitions: titles, and the null of missing keys.

    A mapping of named things has no keys but names.
    """

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's signature
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        found = super().dict_schema(schema)
        return {**found, "additionalProperties": False} if "patternProperties" in found else found


def json_schema() -> Mapping[str, object]:
    """Return the schema; a file that it accepts may still contradict itself, which only `check` reports."""
    schema = Config.model_json_schema(schema_generator=_ForEditors)
    return {"$schema": DIALECT, **schema, "title": "appliance.yaml"}
