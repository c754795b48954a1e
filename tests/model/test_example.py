"""`config/appliance.example.yaml` and the JSON Schema: the model's documentation, which cannot drift."""

import json
from pathlib import Path

import pytest
from support.values.annotated import EXAMPLE, annotated, keys, undocumented

from appliance.model.config.json_schema import editor_schema, json_schema, key_descriptions
from appliance.model.config.section import Section
from appliance.model.document.document import read
from appliance.model.loading.loading import load
from appliance.model.snapshot.snapshot import decode, encode

pytestmark = pytest.mark.pure

TEXT = EXAMPLE.read_text()
BOUNDS = ("type", "minimum", "maximum")
DESIGN = Path(__file__).parent / "design.yaml"


def test_the_example_is_right():
    """The example is a configuration without errors; it warns of nothing."""
    loaded = load(TEXT, source="example", number=1)

    assert (loaded.errors, [each.path for each in loaded.warnings]) == ((), [])


def test_keys_have_the_types_of_the_snapshot():
    """Reading the example's snapshot back checks the type of each key that is only copied."""
    given = load(TEXT, source="example", number=1).snapshot
    assert given is not None

    assert decode(encode(given)) == given


def test_the_example_shows_every_key():
    """No key of the model is missing from the example."""
    assert undocumented(read(TEXT)) == []


def test_the_comments_are_the_descriptions():
    """The comment above each key is what the model says of it."""
    assert annotated(TEXT) == TEXT


def test_a_key_that_shares_its_line_cannot_be_described():
    """The first of a kind needs a line of its own, and whoever writes the example is told."""
    with pytest.raises(ValueError, match="line 1: the first `level`"):
        annotated("log: { level: info }\n")


@pytest.mark.parametrize("section", Section.__subclasses__(), ids=lambda section: section.__name__)
def test_every_key_is_described(section: type[Section]):
    """A key without a description cannot be added."""
    assert [key for key in section.model_fields if not key_descriptions(section).get(key)] == []


def test_the_configuration_of_the_design_is_right():
    """Section 7 of the design, word for word, is a configuration without errors."""
    loaded = load(DESIGN.read_bytes(), source="design.yaml", number=1)

    assert (loaded.errors, [each.path for each in loaded.warnings]) == (
        (),
        ["virtual_ips.api.auth.pass"],
    )


def _properties(schema: object) -> list[dict]:
    if isinstance(schema, list):
        return [found for each in schema for found in _properties(each)]
    if not isinstance(schema, dict):
        return []
    own = list(schema["properties"].values()) if isinstance(schema.get("properties"), dict) else []
    return own + [found for each in schema.values() for found in _properties(each)]


def test_the_schema_describes_every_key():
    """An editor can show what each key means; a section's own description stands in its definition."""
    bare = [each for each in _properties(json_schema()) if "description" not in each and "$ref" not in each]

    assert bare == []


def test_the_schema_is_json_that_names_its_dialect():
    """The schema can be written, and says of itself what it is."""
    schema = json.loads(json.dumps(json_schema()))

    assert (schema["$schema"].endswith("2020-12/schema"), schema["title"]) == (True, "appliance.yaml")


def test_the_schema_speaks_as_the_file_does():
    """Durations and their defaults are text with a unit, a check may be false, keepalive off."""
    definitions = json_schema()["$defs"]

    assert [
        definitions["DefaultsSection"]["properties"]["drain"]["default"],
        definitions["PoolSection"]["properties"]["check"]["anyOf"][1],
        definitions["PoolSection"]["properties"]["keepalive"]["anyOf"][1],
        definitions["FrontendSection"]["required"],
        definitions["ServerSection"]["required"],
        definitions["ProxyGroupSection"]["properties"]["workers"]["default"],
        definitions["ServersSection"]["additionalProperties"],
        "null" in json.dumps(definitions),
    ] == ["120s", {"const": False}, {"const": "off"}, ["bind"], ["address"], "auto", False, False]


def test_editors_take_values_by_node():
    """A value that is no mapping may be one of nodes, and keeps its description; a section stays as it is."""
    plain, found = json_schema()["$defs"], editor_schema()["$defs"]
    section = "VirtualIpSection"
    wanted = {key: each for key, each in plain[section]["properties"]["priority"].items() if key in BOUNDS}
    same = ((section, "track"), (section, "auth"), ("PoolSection", "check"), ("NodeSection", "address"))

    priority = found[section]["properties"]["priority"]
    assert priority["anyOf"] == [wanted, {"type": "object", "additionalProperties": wanted}]
    assert priority["description"] == plain[section]["properties"]["priority"]["description"]
    assert "anyOf" in editor_schema()["properties"]["watchdog"]
    assert [
        name for name, key in same if found[name]["properties"][key] != plain[name]["properties"][key]
    ] == []


def test_no_key_is_told_twice():
    """Each field of the model is met once in the example's walk, however often its key stands there."""
    fields = [id(field) for field, _ in keys(read(TEXT))]

    assert len(fields) == len(set(fields))
