"""Scripts of flowtables as text. That the kernel takes them, tests/kernel shows where it has flowtables."""

import pytest
from support.values.snapshots import frontend, pool

from appliance.core.forwarding.flows import MOST_DEVICES, trial, with_flows, without_flows
from appliance.core.forwarding.forwarded import ForwardedFrontend, ForwardedServer
from appliance.model.snapshot.frontends import Bind, Flowtable, Forward
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

IPV4 = Family.IPV4
SERVER = ForwardedServer(number=2, name="api/main pool/a", host="192.0.2.1", port=8080)


def wanting(kind: Flowtable, *servers: ForwardedServer) -> ForwardedFrontend:
    """Return a frontend that wants such a flowtable."""
    config = frontend("main", forward=Forward.KERNEL, binds=[Bind(host="::", port=80)], flowtable=kind)
    return ForwardedFrontend(
        number=1, name="api/main", config=config, pool=pool(), servers=servers, slots=(), waits=False
    )


def test_connections_of_a_frontends_servers_are_put_there():
    """By their marks, once both sides have spoken."""
    script = with_flows(IPV4, [wanting(Flowtable.SOFTWARE, SERVER)], ["eth0", "br-ex"])

    assert "add element ip lb_forward software_marks { 0x6c620002 }\n" in script
    assert 'software { hook ingress priority 0; devices = { "eth0", "br-ex" }; }\n' in script
    assert "flows ct mark @software_marks ct state established flow add @software\n" in script
    assert script.index("delete flowtable ip lb_forward software") < script.index("devices")
    assert "flow add @hardware" not in script


def test_interfaces_are_asked_for_it_where_the_operator_wants_that():
    """`flags offload` is what makes the kernel ask the driver."""
    assert "flags offload" in with_flows(IPV4, [wanting(Flowtable.HARDWARE, SERVER)], ["eth0"])
    assert "flags offload" not in with_flows(IPV4, [wanting(Flowtable.SOFTWARE, SERVER)], ["eth0"])


def test_nothing_is_said_where_nobody_wants_it():
    """Neither for rules alone, nor on a machine without interfaces; without servers no flowtable is made."""
    assert with_flows(IPV4, [wanting(Flowtable.NONE, SERVER)], ["eth0"]) == ""
    assert with_flows(IPV4, [wanting(Flowtable.SOFTWARE, SERVER)], []) == ""
    assert "devices" not in with_flows(IPV4, [wanting(Flowtable.SOFTWARE)], ["eth0"])


def test_all_of_it_is_taken_away():
    """The chain before what it names."""
    script = without_flows(IPV4).splitlines()

    assert script[:2] == ["flush chain ip lb_forward flows", "delete chain ip lb_forward flows"]
    assert script[-1] == "delete flowtable ip lb_forward hardware"


def test_a_trial_is_of_another_table():
    """It never touches what forwards; and the kernel takes no more interfaces than it can."""
    script = trial(IPV4, Flowtable.HARDWARE, [f"eth{number}" for number in range(MOST_DEVICES + 1)])

    assert "ip lb_forward " not in script
    assert f'"eth{MOST_DEVICES - 1}"' in script
    assert f'"eth{MOST_DEVICES}"' not in script
