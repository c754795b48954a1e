"""What docs/ has of the code is that of today, and whole."""

import pytest
from support.documents import commands_page, configuration_page, events_page, metrics_page, supervisord_conf
from support.documents.generated import GENERATED
from support.documents.pages import page

from appliance.console.command import COMMANDS
from appliance.model.config.section import Section

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("name", GENERATED)
def test_it_is_up_to_date(name: str):
    """`make pages` writes them anew."""
    assert page(name) == GENERATED[name](), f"docs/{name}.md is not what the code says: run `make pages`"


def test_supervisord_conf_has_the_programs_of_the_table():
    """`make pages` writes their blocks."""
    conf = supervisord_conf.CONF.read_text()
    assert conf == supervisord_conf.renewed(conf), "run `make pages`"


def test_every_section_of_the_model_is_there():
    """Each key of each of them has its row."""
    rows = {
        line.split("`")[1] for line in page("reference/configuration").splitlines() if line.startswith("| `")
    }
    keys = {
        field.alias or key for each in Section.__subclasses__() for key, field in each.model_fields.items()
    }
    assert keys - rows == set()
    assert configuration_page.keys() == keys


def test_every_metric_of_ours_is_there():
    """What the sources name is what the page has: none is left out because a value was missing."""
    shown = {each.name for each in metrics_page.metrics()}
    assert metrics_page.written_names() - shown == set()


def test_every_command_is_there():
    """With a heading of its own."""
    headings = {line for line in page("reference/commands").splitlines() if line.startswith("## ")}
    assert {f"## appliance {name}" for name in COMMANDS} - headings == set()
    assert {"--config", "--json", "--force"} <= commands_page.options()


def test_events_are_found():
    """Those of each program, and those whose names are a table's."""
    assert events_page.events() >= {
        "reload-done",
        "server-down",
        "split-brain",
        "worker-died",
        "started-from-last-good",
    }
