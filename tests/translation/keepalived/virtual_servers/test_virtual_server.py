"""A `virtual_server` as a whole: the frontend and the pool that it becomes."""

import json

import pytest
from support.translation.keepalived_files import instance, mapping, told, translated, virtual_ips
from support.translation.virtual_servers import NAME, pool, real_server, refusals, virtual_server

from appliance.model.document.tree import plain
from appliance.model.loading.loading import load
from appliance.model.snapshot.frontends import Forward, Masquerade
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

C, I = Outcome.CHANGED, Outcome.IGNORED  # noqa: E741  # as the outcomes are called

API = """\
virtual_server 192.0.2.150 6443 {
    delay_loop 6
    lb_algo wrr
    lb_kind NAT
    protocol TCP
    sorry_server 192.0.2.99 8080
    real_server 192.0.2.11 6443 {
        weight 3
        TCP_CHECK {
            connect_timeout 3
            retry 2
            delay_before_retry 2
        }
    }
    real_server 192.0.2.12 6443 {
        weight 1
        TCP_CHECK {
            connect_timeout 3
            retry 2
            delay_before_retry 2
        }
    }
}
"""


def test_nat():
    """NAT becomes a frontend that the kernel forwards, and a pool with weights, checks and a backup."""
    translation = translated(API)
    assert refusals(translation) == []
    assert plain(translation.root) == {
        "pools": {
            NAME: {
                "check": {
                    "type": "tcp",
                    "interval": "6s",
                    "fast_interval": "2s",
                    "timeout": "3s",
                    "rise": 1,
                    "fall": 3,
                },
                "servers": {
                    "192.0.2.11-6443": {"address": "192.0.2.11:6443", "weight": 3},
                    "192.0.2.12-6443": {"address": "192.0.2.12:6443"},
                    "sorry-192.0.2.99-8080": {"address": "192.0.2.99:8080", "backup": True, "check": False},
                },
            }
        },
        "api": {
            "frontends": {
                NAME: {
                    "bind": ["192.0.2.150:6443"],
                    "pool": NAME,
                    "forward": "kernel",
                    "masquerade": "auto",
                }
            }
        },
    }


def test_our_own_validation_takes_it():
    """What comes out is a configuration without errors, and the kernel forwards with clients' addresses."""
    loaded = load(json.dumps(plain(translated(API).root)), source="x", number=1)
    assert loaded.errors == ()
    assert loaded.snapshot is not None
    [(_, frontend)] = loaded.snapshot.forwarded
    assert (frontend.forward, frontend.masquerade) == (Forward.KERNEL, Masquerade.AUTO)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (
            "virtual_server 192.0.2.150 6443 {\nlb_kind DR",
            "because of its `lb_kind`, line 2: with DR servers answer",
        ),
        (
            "virtual_server 192.0.2.150 6443 {\nlvs_method TUN type ipip",
            "because of its `lvs_method`, line 2",
        ),
        (
            "virtual_server 192.0.2.150 6443 {\nsorry_server_lvs_method TUN",
            "`sorry_server_lvs_method`, line 2",
        ),
        ("virtual_server group web {", "names no virtual_server_group of this file"),
        ("virtual_server fwmark 3 {", "write a `virtual_server ADDRESS PORT` for each"),
        ("virtual_server 192.0.2.150 {", "write a `virtual_server ADDRESS PORT` for each"),
        ("virtual_server 192.0.2.150 0 {", "write a `virtual_server ADDRESS PORT` for each"),
        ("virtual_server {", "`virtual_server` needs an address"),
        ("virtual_server web 80 {", "must be an address such as `192.0.2.34`, not `web`"),
        ("virtual_server 192.0.2.150 web {", "must be a whole number"),
        (
            "virtual_server 192.0.2.150 6443 {\nlb_algo fo",
            "because of its `lb_algo`, line 2: only backups wait for other servers",
        ),
        ("virtual_server 192.0.2.150 6443 {\nlvs_sched dh", "chooses by the address that clients connect to"),
        ("virtual_server 192.0.2.150 6443 {\nquorum_down '/bin/a b'", "no command is run for a pool"),
        ("virtual_server 192.0.2.150 6443 {\npersistence_engine sip", "for SIP over UDP"),
        ("virtual_server 192.0.2.150 6443 {\nprotocol UDP", "only TCP is balanced here"),
        (
            "virtual_server 192.0.2.150 6443 {\nreal_server x 1 {\n}",
            "because of its `real_server`, line 2: must be",
        ),
        ("virtual_server 192.0.2.150 6443 {\nretry ${LATER}", "because its line 2 cannot be read"),
    ],
)
def test_one_refused_block_is_one_line(head: str, reason: str):
    """What cannot be said is left out as a whole, told at its first line, and no line of it is kept."""
    text = f"{head}\nprotocol TCP\n{real_server('TCP_CHECK {', '}')}\n}}\n"
    translation = translated(text)
    [one] = [each for each in refusals(translation) if "is not defined" not in (each.reason or "")]
    assert (one.place.line, one.place.column) == (1, 1)
    assert reason in (one.reason or "")
    assert plain(translation.root) == {}
    assert not any(each.outcome in (Outcome.KEPT, C) for each in translation.lines)


def test_the_rest_of_the_file_stands():
    """A virtual server that is refused leaves out itself, and nothing else."""
    translation = translated(virtual_server("ops", address="192.0.2.9 53", protocol="UDP") + API + instance())
    assert len(refusals(translation)) == 1
    assert [*mapping(plain(translation.root), "pools")] == [NAME]
    assert [*virtual_ips(translation)] == ["VI"]


def test_a_protocol_must_be_said():
    """Without one keepalived balances UDP."""
    [one] = refusals(translated("virtual_server 192.0.2.1 80 {\nreal_server 192.0.2.2 80 {\n}\n}\n"))
    assert "and keepalived uses UDP" in (one.reason or "")


def test_the_same_address_twice():
    """The second is refused: nobody knows which of both IPVS would have."""
    translation = translated(virtual_server() + virtual_server())
    assert [each.reason for each in refusals(translation)] == [
        "there is a virtual_server of this address and port already"
    ]
    assert [*mapping(plain(translation.root), "pools")] == [NAME]


@pytest.mark.parametrize("servers", [" ", real_server(address="2001:db8::1 80")])
def test_without_servers(servers: str):
    """Nothing is served: keepalived leaves it out, with a word, and so do we."""
    translation = translated(virtual_server(servers=servers))
    assert refusals(translation) == []
    assert plain(translation.root) == {}
    assert any("has no valid `real_server`" in why for _, _, why in told(translation, C))


@pytest.mark.parametrize(
    ("line", "outcome", "reason"),
    [
        ("ops", I, "is for UDP only"),
        ("alpha", I, "before its first check"),
        ("omega", I, "no commands"),
        ("smtp_alert", I, "no email"),
        ("ha_suspend", I, "both nodes check"),
        ("hysteresis 1", I, "belongs to `quorum`"),
        ("quorum 2", I, "has no effect without"),
        ("quorum 0", C, "keepalived uses 1"),
        ("sh-port", I, "applies to `sh` and `mh` only"),
        ("nat_mask 255.255.255.0", C, "is unknown here. Ignored, as in keepalived"),
        ("lb_kind nat", C, "`nat` is unknown to keepalived, which uses NAT, and so does the appliance"),
        ("lb_algo xx", C, "`xx` is unknown to keepalived, which ignores it"),
        ("protocol XX", C, "`XX` is unknown to keepalived, which ignores it"),
        ("persistence_timeout 0", C, "keepalived ignores it"),
        ("delay_loop 0", C, "keepalived ignores it"),
        ("warmup 0", I, "the first checks run at once"),
    ],
)
def test_other_lines(line: str, outcome: Outcome, reason: str):
    """Each has its word, and the virtual server stands."""
    translation = translated(virtual_server(line))
    assert any(reason in why for _, _, why in told(translation, outcome)), translation.lines
    assert refusals(translation) == []
    assert "balance" not in pool(translation)


def test_ports_of_web_servers():
    """They belong to `ingress`, and version 6 of IP has its brackets."""
    text = virtual_server(address="2001:db8::9 443", servers=real_server(address="2001:DB8::1"))
    found = plain(translated(text).root)
    name = "2001-db8-9-443"
    assert mapping(found, "ingress", "frontends", name)["bind"] == ["[2001:db8::9]:443"]
    assert mapping(found, "pools", name, "servers") == {"2001-db8-1-443": {"address": "[2001:db8::1]:443"}}


@pytest.mark.parametrize(("family", "everybody"), [("192.0.2.%d", "0.0.0.0/0"), ("2001:db8::%d", "::/0")])
def test_secrets_are_open_because_the_file_says_so(family: str, everybody: str):
    """Our own rules want it said who may reach the machine-config-server."""
    servers = real_server(address=f"{family % 1} 22623")
    translation = translated(virtual_server(address=f"{family % 9} 22623", servers=servers))
    [frontend] = mapping(plain(translation.root), "api", "frontends").values()
    assert mapping(frontend)["allow"] == [everybody]
    assert any("holds secrets" in why for _, _, why in told(translation, C))
    assert load(json.dumps(plain(translation.root)), source="x", number=1).errors == ()


def test_groups_and_certificates():
    """A group that no virtual server uses means nothing, and checks show no certificate."""
    translation = translated("virtual_server_group g {\n192.0.2.1 80\n}\nSSL {\nca /x\n}\n")
    assert [each.place.line for each in refusals(translation)] == [4]
    assert told(translation, I)[0] == (1, 1, "no translated `virtual_server group` uses it")


GROUP = "virtual_server_group web {\n192.0.2.150 80\n192.0.2.151 80\n192.0.2.150 80\n}\n"


@pytest.mark.parametrize("behind", [False, True])
def test_a_group(*, behind: bool):
    """Its addresses are those of one frontend, wherever the group stands, and its lines are kept."""
    parts = [GROUP, virtual_server(address="group web", servers=real_server(address="192.0.2.11"))]
    translation = translated("".join(reversed(parts) if behind else parts))
    assert refusals(translation) == []
    frontend = mapping(plain(translation.root), "ingress", "frontends", "web")
    assert frontend["bind"] == ["192.0.2.150:80", "192.0.2.151:80"]
    assert frontend["pool"] == "web"
    assert mapping(pool(translation, "web"), "servers", "192.0.2.11-80")["address"] == "192.0.2.11:80"
    assert load(json.dumps(plain(translation.root)), source="x", number=1).errors == ()
    kept = [each.text for each in translation.lines if each.outcome is Outcome.KEPT]
    assert {"virtual_server_group web {", "192.0.2.150 80", "192.0.2.151 80"} <= set(kept)


def test_a_group_with_several_ports():
    """One port of 80 or 443 makes it ingress, and the port of machine configuration is found among them."""
    members = "virtual_server_group web {\n192.0.2.150 8080\n192.0.2.150 443\n192.0.2.150 22623\n}\n"
    translation = translated(members + virtual_server(address="group web"))
    frontend = mapping(plain(translation.root), "ingress", "frontends", "web")
    assert (frontend["allow"], len(str(frontend["bind"]).split(","))) == (["0.0.0.0/0"], 3)
    again = translated(
        members + virtual_server(address="192.0.2.150 443") + virtual_server(address="group web")
    )
    assert [each.reason for each in refusals(again)] == [
        "there is a virtual_server of this address and port already"
    ]
    assert (1, 1, "no translated `virtual_server group` uses it") in told(again, I)


@pytest.mark.parametrize(
    ("members", "servers", "reason"),
    [
        ("", "", "has no address"),
        ("fwmark 1", "", "marks of another firewall"),
        ("192.0.2.150-155 80", "", "more than an address and a port: `192.0.2.150-155`"),
        ("192.0.2.150 80 81", "", "more than an address and a port"),
        ("192.0.2.150", "", "one entry cannot cover all ports of an address"),
        ("vip 80", "", "must be an address such as"),
        ("192.0.2.150 80\n2001:db8::1 80", "", "of both versions of IP"),
        ("192.0.2.150 80\n192.0.2.150 81", real_server(address="192.0.2.11"), "use the ports of its group"),
        ("192.0.2.150 80\nretry ${LATER}", "", "cannot be read"),
    ],
)
def test_groups_that_cannot_be_said(members: str, servers: str, reason: str):
    """The virtual server is refused in its one line."""
    group = f"virtual_server_group web {{\n{members}\n}}\n"
    translation = translated(virtual_server(address="group web", servers=servers) + group)
    [one] = [each for each in refusals(translation) if "is not defined" not in (each.reason or "")]
    assert one.place.line == 1
    assert reason in (one.reason or "")
    assert plain(translation.root) == {}


def test_names_of_groups():
    """A virtual server names one that is there, and a name is there once."""
    for text in ("virtual_server group {\nprotocol TCP\n}\n", virtual_server(address="group other") + GROUP):
        [one] = refusals(translated(text))
        assert one.reason == "names no virtual_server_group of this file"
    [two] = refusals(translated(GROUP + GROUP + virtual_server(address="group web")))
    assert (two.place.line, two.reason) == (6, "there is a virtual_server_group `web` already")
