"""Every warning and error of the log says what it means and what to do."""

import re

import pytest
from support.documents import events_page
from support.documents.pages import page

from appliance.core.log_events import of_programs, of_servers, of_traffic, of_virtual_ips
from appliance.core.log_events.all_events import LOG_EVENTS, log_step

pytestmark = pytest.mark.pure


@pytest.fixture(scope="module")
def loud() -> set[str]:
    """Give the names of what an operator has to look at."""
    return {call.name for call in events_page.calls() if call.loud}


def test_the_calls_are_found(loud: set[str]):
    """By a literal, a constant, a parameter, a table, and by a method that depends on something."""
    assert {
        "frontend-full",
        "lines-dropped",
        "operator-states-unreadable",
        "reload-socket-failed",
        "stats-socket-not-accepted",
        "server-down",
        "program-exited",
        "vrrp-state",
        "track-down",
        "reload-failed",
    } <= loud
    assert len(loud) >= 115


def test_no_call_is_hidden():
    """A name that the sources do not show would be an event that nobody can look up."""
    assert {call.module for call in events_page.calls() if call.name == events_page.UNKNOWN} == set()
    of_tables = {"health/reports", "supervisor/program_changes"}
    assert events_page.unseen() == of_tables


def test_a_bug_in_a_command_has_one_name():
    """Whichever program it is in: who alerts by the name has to know one."""
    fields = {call.name for call in events_page.calls() if call.fields == ("command",)}
    assert fields == {"command-failed"}


def test_none_is_without_a_next_step(loud: set[str]):
    """A new `log.warning` or `log.error` needs its row in appliance/core/log_events."""
    assert sorted(loud - LOG_EVENTS.keys()) == []


def test_none_is_explained_that_there_is_not(loud: set[str]):
    """What the code says no more is removed from the table, and no name is in two parts of it."""
    assert sorted(LOG_EVENTS.keys() - loud) == []
    parts = (of_programs, of_servers, of_traffic, of_virtual_ips)
    assert sum(len(each.EVENTS) for each in parts) == len(LOG_EVENTS)


@pytest.mark.parametrize("name", LOG_EVENTS)
def test_both_parts_are_sentences(name: str):
    """They stand in a table and behind a semicolon: no capital, no full stop, no place left open."""
    step = log_step(name, supervisorctl="supervisorctl -s unix:///x")
    for text in (LOG_EVENTS[name].means, step):
        assert len(text) > 20
        assert not text.endswith(".")
        assert not re.match(r"[A-Z][a-z]", text)
        assert "|" not in text
        assert "{" not in text


def test_the_page_says_them():
    """With the command that can be pasted where the socket is at its usual place."""
    text = page("reference/events")
    for name, event in LOG_EVENTS.items():
        assert f"| `{name}` | {event.means} | " in text
    assert "supervisorctl -s unix:///run/appliance/supervisor.sock restart vrrp" in text
