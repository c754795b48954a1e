"""Redirects with the real nftables: who takes connections to a virtual IP and the API server's port."""

import socket
from collections.abc import Iterator

import pytest
from support.processes.waiting import wait_until
from support.programs.redirect_field import (
    API_SERVER,
    MONITORS_RULES,
    SERVER,
    VIPS,
    RedirectField,
    config,
    redirect,
    redirect_field,
    state,
    wait_for_state,
)

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", "iptables-nft", root=True)]

_FOUR, _SIX = VIPS[0], VIPS[2]


@pytest.fixture
def field() -> Iterator[RedirectField]:
    """A master, its API server, and a client."""
    with redirect_field() as made:
        yield made


def _still_there(session: socket.socket) -> bool:
    session.sendall(b"?")
    return session.recv(100) == f"{SERVER}\n".encode()


def test_every_virtual_ip_leads_to_the_frontend(field: RedirectField):
    """Both families, two addresses of each, from another machine and from the node itself; a stop cleans."""
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        for address in VIPS:
            for node in (field.client, field.master):
                assert field.ask(address, node=node) == SERVER, (address, node.name)
        assert field.ask(field.master.address) == API_SERVER
        assert field.ask("127.0.0.1", node=field.master) == API_SERVER
        shown = appliance.status()
        assert shown["ok"], shown["problems"]
        assert [each["state"] for each in shown["redirects"]] == ["on"]
        assert "api/kube-api" in appliance.command("status").stdout
    assert field.nft("list", "ruleset") == ""


def test_the_api_server_takes_over_when_no_server_is_up(field: RedirectField):
    """Off after `fall` bad looks, on again after `rise` good ones; both are told, with the reason."""
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        field.server.kill()
        wait_for_state(appliance, "off")
        assert "0 of 1 servers up" in str(redirect(appliance)["reason"])
        for node in (field.client, field.master):
            assert [field.ask(each, node=node) for each in VIPS] == [API_SERVER] * 4
        field.start_server()
        wait_for_state(appliance, "on")
        assert field.ask(_FOUR) == field.ask(_SIX, node=field.master) == SERVER
        assert [each["on"] for each in appliance.events("redirect-rules")] == [
            [],
            ["api/kube-api"],
            [],
            ["api/kube-api"],
        ]


def test_without_a_good_look_it_never_begins(field: RedirectField):
    """A pool without a server up leaves the API server alone; `when: accepting` does not look at it."""
    field.server.kill()
    with field.appliance() as appliance:
        appliance.wait_for_event("redirect-rules")
        wait_until(lambda: "0 of 1" in str(redirect(appliance)["reason"]), what="it has looked")
        assert state(appliance) == "off"
        assert field.ask(_FOUR) == API_SERVER
        assert appliance.reload(config(when="accepting"))["ok"]
        wait_for_state(appliance, "on")


def test_ours_stand_back_where_monitor_has_its_own(field: RedirectField):
    """IPv4 is monitor's while its rules are there; IPv6 stays ours, and IPv4 is again when they go."""
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        field.nft(rules=MONITORS_RULES)
        wait_until(
            lambda: "6443" not in field.nft("list", "table", "ip", "lb_redirect"), what="ours stand back"
        )
        assert "(ip)" in str(redirect(appliance)["reason"])
        assert field.ask(VIPS[1]) == API_SERVER  # monitor has one virtual IP of a family
        assert field.ask(_FOUR) == field.ask(_SIX) == field.ask(_FOUR, node=field.master) == SERVER
        assert appliance.status()["ok"]
        field.nft("delete", "table", "ip", "ocp_nat")
        wait_until(lambda: field.ask(VIPS[1]) == SERVER, what="ours are back")


def test_only_monitor_s_family_means_it_stands_back(field: RedirectField):
    """A redirect of IPv4 alone says so by its state."""
    field.nft(rules=MONITORS_RULES)
    with field.appliance(**{"from": ["192.0.2.200:6443"]}) as appliance:
        wait_for_state(appliance, "stands-back")
        assert field.ask(_FOUR) == SERVER
        field.nft("delete", "table", "ip", "ocp_nat")
        wait_for_state(appliance, "on")
        assert field.ask(_FOUR) == SERVER


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


def test_rules_of_iptables_do_not_matter(field: RedirectField):
    """As kube-proxy and CNI plug-ins have them, in the same hooks."""
    for chain in ("PREROUTING", "OUTPUT"):
        field.master.run(["iptables-nft", "-t", "nat", "-A", chain, "-p", "udp", "-j", "ACCEPT"])
    field.master.run(["iptables-nft", "-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE"])
    before = field.master.run(["iptables-nft", "-t", "nat", "-S"])
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        for node in (field.client, field.master):
            assert [field.ask(each, node=node) for each in VIPS] == [SERVER] * 4
    assert field.master.run(["iptables-nft", "-t", "nat", "-S"]) == before


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
