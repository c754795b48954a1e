"""`appliance schema`: the JSON Schema for editors."""

import json

import pytest
from click.testing import CliRunner

from appliance.console.command import main
from appliance.model.config.json_schema import editor_schema

pytestmark = pytest.mark.pure


def test_the_schema_is_printed():
    """Standard output is the schema, as JSON and nothing else."""
    result = CliRunner().invoke(main, ["schema"])

    assert (result.exit_code, json.loads(result.stdout)) == (0, json.loads(json.dumps(editor_schema())))


def test_misuse_exits_2():
    """The command takes no arguments."""
    assert CliRunner().invoke(main, ["schema", "x"]).exit_code == 2
