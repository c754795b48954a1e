"""Redirects over time: reloads, kills, restarts, and what others do to the rules."""

import socket

import pytest
from support.processes.waiting import wait_until
from support.redirect.redirect_field import (
    API_SERVER,
    SERVER,
    VIPS,
    RedirectField,
    config,
    wait_for_state,
)

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_FOUR, _SIX = VIPS[0], VIPS[2]
_NO_LIBRARY = """
for each in /usr/lib/*/libnftables.so.1; do mount --bind /dev/null "$(readlink -f "$each")"; done
exec "$@"
"""


def _still_there(session: socket.socket) -> bool:
    session.sendall(b"?")
    return session.recv(100) == f"{SERVER}\n".encode()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_reload_changes_it_live(field: RedirectField):
    """Addresses come and go without a new generation and without harm to sessions; the last one ends it."""
    with field.appliance(**{"from": ["192.0.2.200:6443"]}) as appliance:
        wait_for_state(appliance, "on")
        assert field.ask(_SIX) == API_SERVER
        session = field.session(_FOUR)
        generation = appliance.generation()
        answer = appliance.reload(config())
        assert answer["changed"] == ["api.frontends.kube-api"]
        wait_until(lambda: field.ask(_SIX) == SERVER, what="the new address leads here")
        slower = config(interval="1s")
        assert appliance.reload(slower)["ok"]
        without = config()
        del without["api"]["frontends"]["kube-api"]["redirect"]  # type: ignore[index]  # plain values
        assert appliance.reload(without)["ok"]
        assert [field.ask(each) for each in VIPS] == [API_SERVER] * 4
        assert appliance.generation() == generation
        assert _still_there(session)
        assert "lb_redirect {" not in field.nft("list", "ruleset")
        assert appliance.reload(config())["ok"]
        wait_for_state(appliance, "on")
        assert field.ask(_FOUR) == SERVER


@pytest.mark.slow("whole appliances on a segment of their own")
def test_another_bind_is_followed(field: RedirectField):
    """The rules go before the old port closes, and lead to the new one when workers accept there."""
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        moved = config()
        moved["api"]["frontends"]["kube-api"]["bind"] = ["[::]:9446"]  # type: ignore[index]  # plain values
        assert appliance.reload(moved)["ok"]
        wait_for_state(appliance, "on")
        assert [field.ask(each, node=field.master) for each in VIPS] == [SERVER] * 4
        one = config(**{"from": ["192.0.2.200:6443"]})
        one["api"]["frontends"]["kube-api"]["bind"] = [f"{field.master.address}:9445"]  # type: ignore[index]  # the same
        assert appliance.reload(one)["ok"]
        wait_for_state(appliance, "on")
        for node in (field.client, field.master):
            assert field.ask(_FOUR, node=node) == SERVER


@pytest.mark.promise("survives", "redirect")
def test_sessions_go_on_without_rules(field: RedirectField):
    """Without other NAT here: `redirect` killed, restarted, stopped, and its rules gone; sessions go on."""
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        sessions = [field.session(each, node=node) for each in VIPS for node in (field.client, field.master)]
        pid = appliance.kill("redirect")
        assert all(map(_still_there, sessions))
        appliance.wait_for_restart("redirect", pid)
        wait_for_state(appliance, "on")
        assert all(map(_still_there, sessions))
        appliance.supervisorctl("restart", "redirect")
        assert all(map(_still_there, sessions))
        wait_for_state(appliance, "on")
        appliance.supervisorctl("stop", "redirect")
        assert "6443" not in field.nft("list", "ruleset")
        assert field.ask(_FOUR) == API_SERVER
        assert all(map(_still_there, sessions))
        appliance.supervisorctl("start", "redirect")
        wait_for_state(appliance, "on")
        for each in sessions:
            each.close()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_what_was_on_is_on_again_with_one_good_look(field: RedirectField):
    """A `redirect` that was killed does not begin to count anew: there may be no API server meanwhile."""
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        assert appliance.reload(config(interval="10m"))["ok"]
        wait_for_state(appliance, "off")  # other settings, another count
        assert appliance.reload(config())["ok"]
        wait_for_state(appliance, "on")
        slow = config(rise=1000)
        appliance.write(slow)
        pid = appliance.kill("redirect")
        appliance.wait_for_restart("redirect", pid)
        wait_for_state(appliance, "on")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_foreign_flush_does_no_harm(field: RedirectField):
    """`nft flush ruleset` does not reach our rules, and what it does reach is put back."""
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        sessions = [field.session(each) for each in VIPS]
        field.nft("flush", "ruleset")
        assert [field.ask(each) for each in VIPS] == [SERVER] * 4
        assert all(map(_still_there, sessions))
        wait_until(lambda: "lb_redirect_flows" in field.nft("list", "ruleset"), what="it is put back")
        for each in sessions:
            each.close()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_leftovers_of_any_kind_become_ours(field: RedirectField):
    """Tables of a run that was killed, where the kernel could not remove them, are replaced."""
    for family in ("ip", "ip6"):
        field.nft("add", "table", family, "lb_redirect")
        field.nft(
            "add", "chain", family, "lb_redirect", "stale", "{ type nat hook prerouting priority -150; }"
        )
        field.nft("add", "rule", family, "lb_redirect", "stale", "tcp dport 6443 redirect to :1")
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        assert [field.ask(each) for each in VIPS] == [SERVER] * 4
        assert "stale" not in field.nft("list", "ruleset")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_another_appliance_s_table_is_a_named_problem(field: RedirectField):
    """Two in one network: the second one says so, in its status too, and takes over when the first ends."""
    with field.appliance() as first:
        wait_for_state(first, "on")
        with field.appliance(port=9446) as second:
            wait_for_state(second, "failed")
            assert any("another process" in each for each in second.status()["problems"])
            assert field.ask(_FOUR) == SERVER
            first.stop(patience=30)
            wait_for_state(second, "on")
            assert field.ask(_FOUR) == SERVER
