"""`forward: kernel` with the real nftables: the rules themselves, and what becomes of them."""

import contextlib
import itertools
import os
import re
import signal
import socket

import pytest
from support.forward.forward_field import (
    PORT,
    VIPS,
    ForwardField,
    counts,
    let_forward,
    total,
    wait_for_servers,
)
from support.network.namespaces import INTERFACE
from support.processes.waiting import wait_until

from appliance.core.forwarding.mark_numbers import Numbers

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

MAIN = f"f{Numbers().number('api/main')}"
ALL = ("s1", "s2", "s3")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_both_families_reach_every_server(balanced: ForwardField):
    """From another machine and from the node itself, at every address of the node; a stop leaves nothing."""
    members = balanced.members()
    both = {"servers": {**members, **{f"{name}v6": each for name, each in balanced.members(6).items()}}}
    with balanced.appliance(balanced.config(pool=both)) as appliance:
        wait_for_servers(appliance, *members, *(f"{name}v6" for name in members))
        for address in (*VIPS, balanced.balancer.address, balanced.balancer.address6):
            assert set(balanced.shares(30, address)) == set(ALL), address
        for address in (*VIPS, balanced.balancer.address):
            assert balanced.ask(address, node=balanced.balancer) in ALL
        shown = appliance.status()
        assert shown["ok"], shown["problems"]
        wait_until(lambda: total(appliance) == 123, what="each connection is counted")
        (frontend,) = shown["frontends"]
        assert (frontend["denied"], frontend["failed"]) == (0, 0)
        assert sum(counts(appliance, each)["total"] for each in (*ALL, "s1v6", "s2v6", "s3v6")) == 123
        assert counts(appliance, "s1")["bytes_in"] > 0 < counts(appliance, "s1")["bytes_out"]
        assert ":9445 " not in balanced.balancer.run(["ss", "-Hntl"])
    assert balanced.nft() == ""
    assert balanced.conntrack() == []


@pytest.mark.promise("survives", "forward")
def test_the_rules_outlive_a_crash_and_are_taken_over(balanced: ForwardField):
    """A kill of the program changes nothing; its successor takes over chains, numbers and figures."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        session = balanced.session()
        assert set(balanced.shares(9)) == set(ALL)
        handles = balanced.balancer.run(["nft", "-a", "list", "chain", "ip", "lb_forward", MAIN])
        killed = appliance.program_pid("forward")
        assert killed is not None
        os.kill(killed, signal.SIGSTOP)  # it is dead to the world: no successor yet
        assert set(balanced.shares(9)) == set(ALL)
        os.kill(killed, signal.SIGKILL)
        appliance.wait_for_restart("forward", killed)
        wait_until(lambda: len(appliance.events("forward-rules")) >= 2, what="the rules are taken over")
        assert session.asks() in ALL
        assert set(balanced.shares(9)) == set(ALL)
        assert balanced.balancer.run(["nft", "-a", "list", "chain", "ip", "lb_forward", MAIN]) == handles
        wait_until(lambda: total(appliance) == 28, what="the figures go on")
        session.close()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_restart_alone_leaves_everything(balanced: ForwardField):
    """`supervisorctl restart forward` ends nothing and refuses nobody."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        session = balanced.session()
        old = appliance.program_pid("forward")
        assert old is not None
        appliance.supervisorctl("restart", "forward")
        appliance.wait_for_restart("forward", old)
        assert session.asks() in ALL
        assert set(balanced.shares(9)) == set(ALL)
        session.close()


@pytest.mark.promise("program", "forward")
def test_a_stop_drains(balanced: ForwardField):
    """New connections are refused at once, open ones go on, and the last one that ends ends the appliance."""
    config = {**balanced.config(), "defaults": {"drain": "60s"}}
    with balanced.appliance(config) as appliance:
        wait_for_servers(appliance, *ALL)
        session = balanced.session()
        appliance.terminate()
        wait_until(lambda: balanced.ask() == "!ConnectionRefusedError", what="nobody gets in")
        assert session.asks() in ALL
        session.close()
        assert appliance.wait(patience=30) == 0
    assert balanced.nft() == ""


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.promise("docs/forward.md", "from proxy to kernel and back nobody is refused")
@pytest.mark.parametrize("version", [4, 6])
def test_a_switch_there_and_back_loses_nothing(balanced: ForwardField, version: int):
    """From proxy to kernel and back by reload, under clients: none is refused, every session goes on."""
    servers = {"servers": balanced.members(version)}
    settled = {"defaults": {"drain": "60s"}}
    proxied = {**balanced.config(forward="proxy", pool=servers), **settled}
    kernel = {**balanced.config(pool=servers), **settled}
    address = VIPS[0] if version == 4 else VIPS[1]
    with balanced.appliance(proxied) as appliance, balanced.clients(address) as clients:
        wait_until(lambda: balanced.ask(address) in ALL, what="the proxy serves")
        one = balanced.session(address)
        assert appliance.reload(kernel)["ok"]
        wait_for_servers(appliance, *ALL)
        wait_until(lambda: ":9445 " not in balanced.balancer.run(["ss", "-Hntl"]), what="nobody listens")
        clients.wait_for_more(100)
        two = balanced.session(address)
        assert (one.asks(), two.asks()) == (one.server, two.server)
        assert appliance.reload(proxied)["ok"]
        wait_until(lambda: ":9445 " in balanced.balancer.run(["ss", "-Hntl"]), what="the proxy listens")
        clients.wait_for_more(100)
        assert (one.asks(), two.asks()) == (one.server, two.server)
        assert appliance.reload(kernel)["ok"]
        clients.wait_for_more(100)
        assert (one.asks(), two.asks()) == (one.server, two.server)
        one.close()
        two.close()
        assert clients.stop().errors == {}
    assert balanced.nft() == ""


@pytest.mark.slow("whole appliances on a segment of their own")
def test_rules_left_by_a_kill_go_with_a_start_that_forwards_nothing(balanced: ForwardField):
    """Everything is killed, then the file says `proxy`: no table takes the clients that the proxy is for."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        for number in (appliance.pid, *appliance.processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        appliance.wait(patience=10)
        appliance.remove_sockets()
        assert "lb_forward" in balanced.nft()
        appliance.config = balanced.config(forward="proxy")
        appliance.write(appliance.config)
        with balanced.balancer.inside():
            appliance.start()
        assert balanced.nft() == ""
        wait_until(lambda: balanced.ask() in ALL, what="the proxy serves")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_forward_without_its_supervisord_leaves_nothing(balanced: ForwardField):
    """Its successor's programs forward nothing: told to end, it knows that and removes its rules."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        appliance.config = balanced.config(forward="proxy")
        appliance.write(appliance.config)
        with balanced.balancer.inside():
            appliance.crash()
        wait_until(lambda: balanced.nft() == "", what="the rules are gone")
        wait_until(lambda: balanced.ask() in ALL, what="the proxy serves")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_rules_of_a_program_that_is_down_go_with_a_reload(balanced: ForwardField):
    """The reload to `proxy` has `forward` started once, which alone may remove them."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        appliance.supervisorctl("stop", "forward")
        assert "lb_forward" in balanced.nft()
        assert appliance.reload(balanced.config(forward="proxy"))["ok"]
        wait_until(lambda: balanced.nft() == "", what="the rules are gone")
        wait_until(lambda: balanced.ask() in ALL, what="the proxy serves")


@pytest.mark.promise("docs/forward.md", "rules that somebody flushes come back")
def test_what_somebody_flushes_comes_back(balanced: ForwardField):
    """`nft flush ruleset` of another program costs a moment, and the warning names it."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        balanced.balancer.run(["nft", "flush", "ruleset"])
        appliance.wait_for_event("forward-rules-gone")
        wait_until(lambda: balanced.ask() in ALL, what="it forwards again")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_whatever_somebody_changes_is_mended(balanced: ForwardField):
    """Chains, policies, sets, maps, elements, rules, in either family: it holds again what it held."""
    changes = (
        "flush table {}", "flush chain {} postrouting", "flush chain {} stray", f"flush chain {{}} {MAIN}",
        f"flush chain {{}} {MAIN}_none", "chain {} count {{ policy drop; }}", "flush map {} servers",
        "flush map {} ports", f"flush map {{}} {MAIN}_slots", "flush set {} masked",
        f"flush set {{}} {MAIN}_deny",
        f"delete element {{}} {MAIN}_slots {{{{ 7 }}}}", "insert rule {} prerouting tcp dport 9445 drop",
        "add table {} {{ flags dormant; }}", "delete table {}",
    )  # fmt: skip
    six = {f"{name}v6": each for name, each in balanced.members(6).items()}
    config = balanced.config(
        pool={"servers": {**balanced.members(), **six}}, deny=["198.51.100.0/24", "2001:db8:1::/48"]
    )
    with balanced.appliance(config) as appliance:
        wait_for_servers(appliance, *ALL, *six)
        held = {family: balanced.rules(family) for family in ("ip", "ip6")}
        for change, family in zip(changes, itertools.cycle(held), strict=False):
            command = change.format(f"{family} lb_forward")
            balanced.balancer.run(["nft", command])
            wait_until(
                lambda: {each: balanced.rules(each) for each in held} == held,
                what=f"`{command}` is mended",
                pause=0.1,  # each look is two processes, and forward looks each half second
            )
        assert appliance.events("forward-rules-gone")
        for address in VIPS:
            assert set(balanced.shares(9, address)) == set(ALL)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_other_programs_tables_are_their_own(balanced: ForwardField):
    """However often they change, nothing of ours is written, and a chain's handles stay."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        listed = ["nft", "-a", "list", "chain", "ip", "lb_forward", "postrouting"]
        before = balanced.balancer.run(listed)
        written = len(appliance.events("forward-rules"))
        for number in range(20):
            balanced.balancer.run(["nft", f"add table ip other{number}"])
        appliance.command("drain", "servers/s1")
        balanced.wait_for("s2", "s3")
        wait_until(lambda: len(appliance.events("forward-rules")) > written, what="the rules follow")
        assert appliance.events("forward-rules-gone") == []
        assert len(appliance.events("forward-rules")) == written + 1
        assert balanced.balancer.run(listed) == before


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_node_that_does_not_forward_is_told(balanced: ForwardField):
    """Without ip_forward a reload is refused with the reason; a start says so in the status."""
    let_forward(balanced.balancer, "0")
    with balanced.appliance(balanced.config(forward="proxy")) as appliance:
        answer = appliance.reload(balanced.config())
        assert not answer["ok"]
        assert "net.ipv4.ip_forward" in str(answer["errors"])
        let_forward(balanced.balancer)
        assert appliance.reload(balanced.config())["ok"]


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("masquerade", ["always", "auto"])
def test_whom_servers_see(balanced: ForwardField, masquerade: str, version: int):
    """This node, or with `auto` who is not of their own network, and then comes back by this node."""
    balanced.version = version
    far = {4: "198.51.100.7", 6: "2001:db8:1::7"}[version]
    near = {4: balanced.client.address, 6: balanced.client.address6}[version]
    node = {4: balanced.balancer.address, 6: balanced.balancer.address6}[version]
    balanced.client.batch(f"address add {far}/{ {4: 32, 6: 128}[version] } dev {INTERFACE}")
    for each in (balanced.balancer, *balanced.servers.values()):
        each.batch(f"route add {far} via {near if each is balanced.balancer else node}")
    with balanced.appliance(balanced.config(masquerade=masquerade)) as appliance:
        wait_for_servers(appliance, *ALL)
        for source, seen in ((far, far if masquerade == "auto" else node), (near, node)):
            connection = balanced.connect_from(source, (balanced.address, PORT))
            peers = "".join(
                each.run(["ss", "-Hnt", "state", "established"]) for each in balanced.servers.values()
            )
            assert f"[{seen}]:" in peers.replace("::ffff:", ""), peers
            connection.close()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_packets_of_connections_that_nobody_knows_are_reset(balanced: ForwardField):
    """A connection that conntrack has forgotten, as after a move of the address, ends at its next packet."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        session = balanced.session()
        balanced.forget_connections()
        session.socket.sendall(b"?")
        assert session.ends() == "reset"


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.parametrize("version", [4, 6])
def test_ten_thousand_networks_are_one_transaction(balanced: ForwardField, version: int):
    """Access lists of that size are reloaded, hold to the last network, and are not written by verdicts."""
    balanced.version = version
    own = {4: balanced.client.address, 6: balanced.client.address6}[version]
    many = [f"10.{number >> 8}.{number & 255}.0/25" for number in range(10_000)]
    if version == 6:
        many = [f"2001:db8:{2 * number:x}::/48" for number in range(1, 10_001)]  # neighbours would be merged
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *ALL)
        assert appliance.reload(balanced.config(allow=[*many, own], deny=many))["ok"]
        assert set(balanced.shares(9)) == set(ALL)
        for name, networks in ((f"{MAIN}_allow", [*many, own]), (f"{MAIN}_deny", many)):
            family = {4: "ip", 6: "ip6"}[version]
            listed = balanced.balancer.run(["nft", "list", "set", family, "lb_forward", name])
            assert set(networks) <= set(re.split(r"[\s,{}]+", listed)), name
        balanced.stop_server("s1")
        balanced.wait_for("s2", "s3")
        assert appliance.reload(balanced.config(allow=many))["ok"]
        wait_until(lambda: balanced.ask().startswith("!"), what="others are not let in")
        assert appliance.events("forward-rules-gone") == []


@pytest.mark.slow("a whole appliance on a segment of its own")
def test_a_handshake_under_way_outlives_the_switch_to_the_kernel(balanced: ForwardField):
    """A client's SYN came to the proxy's socket, its ACK comes after `forward` has the frontend."""
    address = VIPS[0]
    with balanced.appliance(balanced.config(forward="proxy")) as appliance:
        wait_until(lambda: balanced.ask(address) in ALL, what="the proxy serves")
        for line in (
            "add table ip held",
            "add chain ip held out { type filter hook output priority 0; }",
            f"add rule ip held out tcp dport {PORT} tcp flags & (syn | ack) == ack drop",
        ):
            balanced.client.run(["nft", line])
        with balanced.client.inside():
            connection = socket.create_connection((address, PORT), timeout=20.0)
        with connection:
            assert appliance.reload(balanced.config())["ok"]
            balanced.client.run(["nft", "delete table ip held"])
            connection.sendall(b"who\n")
            assert connection.recv(100)
