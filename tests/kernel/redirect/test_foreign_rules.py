"""Redirects beside other programs' rules: who takes the connections of a client elsewhere."""

import pytest
from support.redirect.redirect_field import (
    API_PORT,
    API_SERVER,
    LB_PORT,
    SERVER,
    VIPS,
    RedirectField,
    state,
    wait_for_state,
)

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.slow("an appliance on a segment of its own"),
]

_OTHER = "other"
_OTHER_PORT = 9999
_TABLE = """
table ip foreign {{
  chain a {{
    type {hook} priority {priority};
    {rule}
  }}
}}
"""
_FIREWALL = "filter hook input"
_NAT = "nat hook prerouting"
_EARLY = "filter hook prerouting"


@pytest.mark.promise("docs/redirect.md", "beside other rules of nftables the table says who is served")
@pytest.mark.parametrize(
    ("hook", "priority", "rule", "takes"),
    [
        (_FIREWALL, 0, f"tcp dport {API_PORT} reject with tcp reset", SERVER),
        (_FIREWALL, 0, f"tcp dport {LB_PORT} reject with tcp reset", "!ConnectionRefusedError"),
        (_EARLY, -150, f"tcp dport {LB_PORT} drop", SERVER),
        (_EARLY, -300, f"tcp dport {API_PORT} notrack", API_SERVER),
        (_NAT, -110, f"tcp dport {API_PORT} dnat to :{_OTHER_PORT}", _OTHER),
        (_NAT, -90, f"tcp dport {API_PORT} dnat to :{_OTHER_PORT}", SERVER),
    ],
)
def test_who_takes_connections(field: RedirectField, hook: str, priority: int, rule: str, takes: str):
    """A firewall sees the frontend's port, the first translation wins, and what is not tracked goes past."""
    field.serve(field.master, _OTHER, _OTHER_PORT)
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        field.nft(rules=_TABLE.format(hook=hook, priority=priority, rule=rule))
        assert field.ask(VIPS[0]) == takes
        assert state(appliance) == "on"
        field.nft("delete", "table", "ip", "foreign")
        assert field.ask(VIPS[0]) == SERVER
