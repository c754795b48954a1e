"""JSON Schema of the configuration, for editors that complete keys and show what they mean."""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from appliance.model.config.configuration import Config, NodeSection
from appliance.model.config.section import Section


@cache
def key_descriptions(section: type[Section]) -> dict[str, str]:
    """Return the descriptions of a section's own and inherited keys by the names of their fields.

    They are the texts below the fields in our source. pydantic could keep them with the fields, but would
    read and parse all sources for that at each start.
    """
    texts: dict[str, str] = {}
    for each in reversed(section.__mro__):
        if each is not Section and issubclass(each, Section):
            texts |= _own(each)
    return texts


def _own(section: type[Section]) -> dict[str, str]:
    source = ast.parse(textwrap.dedent(inspect.getsource(section)))
    body = next(each.body for each in source.body if isinstance(each, ast.ClassDef))
    return {
        key.target.id: inspect.cleandoc(text.value.value)
        for key, text in pairwise(body)
        if isinstance(key, ast.AnnAssign)
        and isinstance(key.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class _ForEditors(GenerateJsonSchema):
    """Leaves out repetitions: titles, the null of missing keys; named things have no keys but names."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's signature
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        section: type[Section] = schema["cls"]
        for name, text in key_descriptions(section).items():
            found["properties"][section.model_fields[name].alias or name]["description"] = text
        return found

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        found = super().dict_schema(schema)
        return {**found, "additionalProperties": False} if "patternProperties" in found else found


def editor_schema() -> Mapping[str, object]:
    """Return the schema of the file as it may be written: any value but a mapping may be given by node."""
    schema = json_schema()
    defs: dict[str, Any] = schema["$defs"]  # type: ignore[assignment]  # JSON
    sections = {name: _with_nodes(each, defs) for name, each in defs.items()}
    sections[NodeSection.__name__] = defs[NodeSection.__name__]
    return {**_with_nodes(schema, defs), "$defs": sections}


def _with_nodes(section: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    keys = section.get("properties", {})
    return {**section, "properties": {key: _by_node(each, defs) for key, each in keys.items()}}


def _by_node(value: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    if _is_mapping(value, defs):
        return value
    said = {key: each for key, each in value.items() if key in ("description", "default", "examples")}
    alone = {key: each for key, each in value.items() if key not in said}
    return {**said, "anyOf": [alone, {"type": "object", "additionalProperties": alone}]}


def _is_mapping(value: Mapping[str, Any], defs: Mapping[str, Any]) -> bool:
    target = defs.get(value.get("$ref", "").rpartition("/")[2], value)
    return target.get("type") == "object" or any(_is_mapping(each, defs) for each in value.get("anyOf", ()))


def json_schema() -> Mapping[str, object]:
    """Return the schema; a file that it accepts may still contradict itself, which only `check` reports."""
    schema = Config.model_json_schema(schema_generator=_ForEditors)
    return {"$schema": DIALECT, **schema, "title": "appliance.yaml"}
