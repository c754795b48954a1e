"""HAProxy's statistics as text."""

import csv

import pytest

from appliance.wire.haproxy.statistics import (
    COLUMNS,
    STATE_COLUMNS,
    csv_text,
    duration_text,
    info_text,
    servers_state_text,
)

pytestmark = pytest.mark.pure


def test_every_row_has_every_column():
    """Clients read by position, and by the name in a first line that begins with `# `; each line ends so."""
    text = csv_text([{"pxname": "masters", "svname": 'odd "name", here', "type": 2}])
    head, row = text.splitlines()

    assert head.startswith("# pxname,svname,qcur,qmax,scur,")
    assert (head[-1], row[-1]) == (",", ",")
    (found,) = csv.DictReader([head.removeprefix("# "), row])
    assert (found["pxname"], found["svname"], found["type"]) == ("masters", 'odd "name", here', "2")
    assert len(found) == len(COLUMNS) + 1  # and the empty one behind the last comma
    assert [position for position in (17, 18, 32) if COLUMNS[position]] == [17, 18, 32]
    assert (COLUMNS[17], COLUMNS[32]) == ("status", "type")


def test_info_is_a_line_for_each_field():
    """Clients split each line at the first colon."""
    assert info_text({"Name": "HAProxy", "Uptime_sec": 7}) == "Name: HAProxy\nUptime_sec: 7\n"


def test_states_of_servers_have_a_version_and_a_head():
    """As HAProxy reads its own file again."""
    version, head, line = servers_state_text([range(len(STATE_COLUMNS))]).splitlines()

    assert (version, head.split()[:3], len(line.split())) == ("1", ["#", "be_id", "be_name"], 25)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0d 0h00m00s"), (65.9, "0d 0h01m05s"), (3661, "0d 1h01m01s"), (200_000, "2d 7h33m20s")],
)
def test_durations(seconds: float, text: str):
    """The expression of Datadog's agent finds its four numbers."""
    assert duration_text(seconds) == text
