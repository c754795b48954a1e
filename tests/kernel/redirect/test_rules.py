"""Redirects with the real nftables: who takes connections to a virtual IP and the API server's port."""

from pathlib import Path

import pytest
from structlog.testing import CapturingLogger
from support.network.namespaces import INTERFACE
from support.processes.waiting import wait_until
from support.redirect.redirect_field import (
    API_PORT,
    API_SERVER,
    LB_PORT,
    MONITORS_RULES,
    SERVER,
    VIPS,
    RedirectField,
    config,
    redirect,
    state,
    wait_for_state,
    without_checksum_offload,
)
from support.values import snapshots
from support.values.snapshots import frontend, group

from appliance.core.redirect.rules import redirections
from appliance.core.redirect.switch import switches
from appliance.model.snapshot.frontends import Bind
from appliance.redirect.kernel_rules import KernelRules
from appliance.wire.nftables.nftables_commands import Family

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", "iptables-nft", root=True)]

_FOUR, _SIX = VIPS[0], VIPS[2]
_NO_LIBRARY = """
for each in /usr/lib/*/libnftables.so.1; do mount --bind /dev/null "$(readlink -f "$each")"; done
exec "$@"
"""


@pytest.mark.promise("program", "redirect")
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


@pytest.mark.slow("whole appliances on a segment of their own")
def test_what_is_only_forwarded_is_left_alone(field: RedirectField):
    """A pod of this node reaches the virtual IP at the node that holds it now, whose own rules count."""
    field.master.ip("address", "del", f"{_FOUR}/32", "dev", INTERFACE)
    field.client.ip("address", "add", f"{_FOUR}/32", "dev", INTERFACE)
    field.serve(field.client, "holder", API_PORT)
    pod = field.client.segment.node("pod")
    with field.master.inside():
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    pod.ip("route", "add", f"{_FOUR}/32", "via", field.master.address)
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        assert field.ask(_FOUR, node=pod) == "holder"
        assert field.ask(VIPS[1], node=pod) == SERVER


@pytest.mark.slow("whole appliances on a segment of their own")
def test_real_checksums(field: RedirectField):
    """Packets whose checksums are computed and looked at, as on a wire, are as good before and after."""
    without_checksum_offload(field.client)
    with field.appliance() as appliance:
        wait_for_state(appliance, "on")
        assert [field.ask(each) for each in VIPS] == [SERVER] * 4


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.parametrize("offload", [True, False])
def test_rules_that_lead_to_nobody_do_no_harm(field: RedirectField, offload: bool):  # noqa: FBT001  # a parameter of the test
    """The kernel sees that nobody listens, and the packet is what it was before; a listener has it again."""
    if not offload:
        without_checksum_offload(field.client)
    sources = tuple(Bind(host=each, port=API_PORT) for each in VIPS)
    given = frontend("k", redirect=snapshots.redirect(sources=sources), binds=[Bind(host="::", port=LB_PORT)])
    (switch,) = switches(snapshots.snapshot(groups=[group("api", frontends=[given])]))
    with field.master.inside():
        rules = KernelRules(CapturingLogger())  # type: ignore[arg-type]  # it has the same methods
        rules.install(Family, redirections(switch))
    assert rules.guarded
    assert [field.ask(each) for each in VIPS] == [API_SERVER] * 4
    field.serve(field.master, SERVER, LB_PORT)
    assert [field.ask(each) for each in VIPS] == [SERVER] * 4
    rules.close(keep_flows=False)


@pytest.mark.promise("docs/redirect.md", "without a server up the API server has its port")
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


@pytest.mark.slow("whole appliances on a segment of their own")
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


@pytest.mark.slow("whole appliances on a segment of their own")
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
        wait_until(lambda: appliance.status()["ok"], what="all is well")
        field.nft("delete", "table", "ip", "ocp_nat")
        wait_until(lambda: field.ask(VIPS[1]) == SERVER, what="ours are back")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_only_monitor_s_family_means_it_stands_back(field: RedirectField):
    """A redirect of IPv4 alone says so by its state."""
    field.nft(rules=MONITORS_RULES)
    with field.appliance(**{"from": ["192.0.2.200:6443"]}) as appliance:
        wait_for_state(appliance, "stands-back")
        assert field.ask(_FOUR) == SERVER
        field.nft("delete", "table", "ip", "ocp_nat")
        wait_for_state(appliance, "on")
        assert field.ask(_FOUR) == SERVER


@pytest.mark.slow("whole appliances on a segment of their own")
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


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.parametrize(
    ("through", "reason"),
    [
        (("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"), "Operation not permitted"),
        (("unshare", "--mount", "sh", "-c", _NO_LIBRARY, "sh"), "libnftables1"),
    ],
    ids=["capability", "library"],
)
def test_what_is_missing_is_a_named_problem(field: RedirectField, through: tuple[str, ...], reason: str):
    """Without the right, or without the library, everything else works; the reason is told everywhere."""
    with field.appliance(through=through) as appliance:
        wait_for_state(appliance, "failed")
        assert reason in str(redirect(appliance)["reason"])
        assert any(reason in each for each in appliance.status()["problems"])
        assert appliance.wait_for_event("redirect-failed")["reason"]
        assert field.ask(_FOUR) == API_SERVER
        assert field.ask(_FOUR, port=9445) == SERVER
