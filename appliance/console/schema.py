"""`appliance schema`: the JSON Schema of the configuration."""

import click

from appliance.console.output.printing import print_json
from appliance.model.config.json_schema import editor_schema


@click.command(epilog="Example: appliance schema > appliance.schema.json")
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors and other tools.

    An editor with a YAML language server uses it if the first line of the file names it:
    `# yaml-language-server: $schema=appliance.schema.json`.
    """
    print_json(editor_schema())
