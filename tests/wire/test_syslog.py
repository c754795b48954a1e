"""Messages as RFC 5424 has them."""

import re

import pytest

from appliance.wire.syslog import LONGEST, encode, framed

pytestmark = pytest.mark.pure

# RFC 5424 section 6: PRI VERSION TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA MSG
FORM = re.compile(
    rb"<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z) ([!-~]{1,255}) ([!-~]{1,48}) - ([!-~]{1,32}) "
    rb'(\[event@32473(?: [a-z]+="(?:[^"\\\]]|\\["\\\]])*")*\]) (.*)',
    re.DOTALL,
)


def message(**changes: object) -> bytes:
    """Return a message, with changes to what it says."""
    given = {
        "severity": 4,
        "when": 1.5,
        "host": "lb-1",
        "program": "health",
        "kind": "server-down",
        "values": {"subject": "masters/m0", "cause": ""},
        "text": "down",
    }
    return encode(**{**given, **changes})


def test_a_message():
    """Facility daemon with the severity, the moment in UTC, and the event as structured data."""
    assert message() == (
        b"<28>1 1970-01-01T00:00:01.500000Z lb-1 appliance-health - server-down"
        b' [event@32473 subject="masters/m0"] down'
    )
    assert b" appliance - " in message(program="")
    assert framed(b"abc") == b"3 abc"


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "", "kind": "a b\n"},
        {"host": "x" * 999, "program": "y" * 999, "kind": "z" * 999},
        {"values": {"subject": 'a]"\\b', "cause": "\udc80"}},
        {"text": "\u20ac" * 2000, "when": 1e300},
        {"text": "\udc80", "when": -5.0},
    ],
)
def test_no_value_breaks_the_form(changes: dict[str, object]):
    """Whatever is said, it is one message of a length that receivers take, as UTF-8."""
    made = message(**changes)
    assert FORM.fullmatch(made), made
    assert len(made) <= LONGEST
    assert made.decode()
