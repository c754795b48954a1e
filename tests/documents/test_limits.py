"""The limits that docs/sizing.md names are those of the code."""

import re
from typing import Final

import pytest
from support.documents.pages import page

from appliance.core.discovery.reflection import MOST_OBJECTS
from appliance.model.document.yaml_reader import NODE_LIMIT
from appliance.model.rules.bind_rules import MOST_BINDS
from appliance.net.files import config_file
from appliance.net.sources.read_files import MOST_FILES, MOST_NAMES

pytestmark = pytest.mark.pure

_ROWS: Final = {
    "values in the YAML": NODE_LIMIT,
    "bytes of the configuration": config_file.LIMIT >> 20,
    "files of one configuration": MOST_FILES,
    "names that the patterns": MOST_NAMES,
    "binds of a group": MOST_BINDS,
    "objects of one kind": MOST_OBJECTS,
}


def test_every_limit_is_the_code_s():
    """Each row of the table, and no row besides."""
    section = page("sizing").partition("## Limits")[2].partition("\n## ")[0]
    said = dict(re.findall(r"^\| ([a-zA-Z].*?) \| ([0-9][0-9,]*)", section, re.MULTILINE))
    assert len(said) == len(_ROWS)
    for begins, limit in _ROWS.items():
        (found,) = (value for row, value in said.items() if row.startswith(begins))
        assert int(found.replace(",", "")) == limit
