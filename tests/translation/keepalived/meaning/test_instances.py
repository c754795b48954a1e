"""The directives of a `vrrp_instance`: what each becomes, and what is said of it."""

import pytest
from support.translation.keepalived_files import instance, mapping, told, translated, virtual_ips

from appliance.model.document.tree import Plain
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

OWN: dict[str, Plain] = {"interface": "eth0", "router_id": 7, "addresses": ["192.0.2.10/24"]}
C, I, R = Outcome.CHANGED, Outcome.IGNORED, Outcome.REFUSED  # noqa: E741  # one letter each in the table


def result(*lines: str, head: str = "") -> tuple[dict[str, Plain], list[tuple[Outcome, str]]]:
    """Return the keys that lines of an instance add, and the outcomes of lines that are not kept."""
    translation = translated(head + instance(*lines))
    given = virtual_ips(translation)["VI"]
    assert isinstance(given, dict)
    others = [
        (each.outcome, each.reason or "") for each in translation.lines if each.outcome is not Outcome.KEPT
    ]
    return {key: value for key, value in given.items() if OWN.get(key) != value}, others


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("priority 150", {"priority": 150}),
        ("state MASTER\npriority 255", {"priority": 255}),
        ("notify /a root\nnotify_stop /b root",
         {"notify": {"any": ["/a"], "stop": ["/b"], "user": "root"}}),
        ("advert_int 3", {"advert": "3s"}),
        ("version 2", {"version": 2}),
        ("version 3\nadvert_int 0.25", {"version": 3, "advert": "250ms"}),
        ("unicast_src_ip 192.0.2.1", {"source": "192.0.2.1"}),
        ("mcast_src_ip 192.0.2.1", {"source": "192.0.2.1"}),
        ("unicast_peer { 192.0.2.2\n192.0.2.3 }", {"peers": ["192.0.2.2", "192.0.2.3"]}),
        (
            "unicast_peer { 192.0.2.2 min_ttl 255 max_ttl 255\n192.0.2.3 min_ttl 255 }",
            {"peers": ["192.0.2.2", "192.0.2.3"], "min_ttl": 255},
        ),
        ("unicast_peer { 192.0.2.2 min_ttl 0 }", {"peers": ["192.0.2.2"]}),
        ("unicast_ttl 255", {}),
        ("mcast_dst_ip 224.0.0.18", {}),
        ("authentication {\nauth_type PASS\nauth_pass secret\n}", {"auth": {"pass": "secret"}}),
        ("nopreempt", {"preempt": False}),
        ("preempt_delay 2.5", {"preempt_delay": "2500ms"}),
        ("preempt_delay 0", {"preempt_delay": "off"}),
        ("down_timer_adverts 5", {"down_timer_adverts": 5}),
        ("garp_master_delay 0", {"announce": {"delay": "off"}}),
        ("garp_master_repeat 3", {"announce": {"repeat": 3}}),
        ("garp_master_refresh 60", {"announce": {"refresh": "60s"}}),
        ("garp_master_refresh_repeat 2", {"announce": {"refresh_repeat": 2}}),
        ("use_vmac", {"virtual_mac": True}),
        ("strict_mode off", {}),
        ("virtual_ipaddress { 192.0.2.11/24 }", {"addresses": ["192.0.2.10/24", "192.0.2.11/24"]}),
        ("virtual_ipaddress_excluded { 192.0.2.11 }", {"excluded": ["192.0.2.11/32"]}),
        ("virtual_ipaddress { 192.0.2.11/24 dev eth0 scope global label eth0:1 }",
         {"addresses": ["192.0.2.10/24", "192.0.2.11/24"], "label": "eth0:1"}),
        ('notify "/usr/bin/tell \'to all\'"', {"notify": {"any": ["/usr/bin/tell", "to all"]}}),
        ("notify_master /m root", {"notify": {"active": ["/m"], "user": "root"}}),
        ("notify_backup /b\nnotify_fault /f\nnotify_stop /s",
         {"notify": {"backup": ["/b"], "fault": ["/f"], "stop": ["/s"]}}),
        ("track_interface { eth1\neth2 weight -20 noreverse }",
         {"track": {"eth1": {"interface": "eth1"}, "eth2": {"interface": "eth2", "weight": -20}}}),
        ("track_interface { eth0 }", {}),
    ],
)  # fmt: skip
def test_kept(line: str, keys: dict[str, Plain]):
    """They mean the same with us."""
    assert result(line) == (keys, [])


@pytest.mark.parametrize(
    ("line", "keys", "outcome", "reason"),
    [
        ("state BACKUP", {}, I, "every router starts as backup"),
        ("state MASTER\npriority 200", {"priority": 200}, C, "the highest priority becomes active"),
        ("state MASTER", {"priority": 255}, C, "without a priority it is the owner's, 255"),
        ("advert_int 0.4", {"advert": "1s"}, C, "is 1 s: version 2 counts whole seconds"),
        ("advert_int 2.5", {"advert": "3s"}, C, "is 3 s"),
        ("version 3\nadvert_int 0.255", {"version": 3, "advert": "260ms"}, C, "hundredths of a second"),
        ("version 3\nadvert_int 60", {"version": 3, "advert": "40950ms"}, C, "is 40.95 s"),
        ("unicast_peer { }", {}, C, "adverts are sent by multicast"),
        ("unicast_peer { 192.0.2.2 max_ttl 64 }", {"peers": ["192.0.2.2"]}, I, "a greater TTL is no danger"),
        ("unicast_peer { 192.0.2.2\n192.0.2.2 }", {"peers": ["192.0.2.2"]}, I, "stands there already"),
        ("unicast_ttl 1", {}, C, "a TTL of 255"),
        ("authentication {\nauth_type PASS\nauth_pass 123456789 }", {"auth": {"pass": "12345678"}}, C,
         "first 8 bytes"),
        ("authentication {\nauth_type PASS }", {}, I, "count only together"),
        ("authentication {\nauth_pass x }", {}, I, "count only together"),
        ("strict_mode", {}, C, "but connections are accepted"),
        ("nopreempt\npriority 255", {"priority": 255}, I, "means nothing to the owner"),
        ("preempt", {}, I, "so it is without"),
        ("garp_master_repeat 0", {"announce": {"repeat": 1}}, C, "is 1 to 100"),
        ("use_vmac vrrp.7 00:00:5e:00:01:07", {"virtual_mac": True}, C, "a name of our own"),
        ("debug 3", {}, I, "no use"),
        ("smtp_alert on", {}, I, "no mails"),
        ("dont_track_primary", {}, C, "always watched"),
        ("virtual_ipaddress { 192.0.2.11/24 brd + }", {"addresses": ["192.0.2.10/24", "192.0.2.11/24"]}, I,
         "`brd`: a broadcast address"),
        ("virtual_ipaddress { 192.0.2.11/24 no_track }", {"addresses": ["192.0.2.10/24", "192.0.2.11/24"]}, I,
         "`no_track`: an address that somebody removes is put back"),
        ("virtual_ipaddress { 192.0.2.11/24 scope link }", {"addresses": ["192.0.2.10/24", "192.0.2.11/24"]},
         I, "`scope`"),
        ("notify tell", {"notify": {"any": ["/usr/bin/env", "tell"]}}, C, "`/usr/bin/env` searches it"),
        ("notify /a root wheel", {"notify": {"any": ["/a"], "user": "root"}}, C, "the group is the"),
        ("notify /a root\nnotify_master /b nobody",
         {"notify": {"any": ["/a"], "active": ["/b"], "user": "root"}}, C, "all commands of a virtual"),
        ("track_interface { eth0 weight 5 }", {}, C, "is watched in any case"),
        ("track_interface { eth1 weight 254 }", {"track": {"eth1": {"interface": "eth1", "weight": 253}}}, C,
         "at most 253"),
        ("track_interface { eth1 weight -254 }", {"track": {"eth1": {"interface": "eth1", "weight": -253}}},
         C, "at most 253"),
        ("track_interface { eth1\neth1 }", {"track": {"eth1": {"interface": "eth1"}}}, I, "tracked already"),
    ],
)  # fmt: skip
def test_changed_or_ignored(line: str, keys: dict[str, Plain], outcome: Outcome, reason: str):
    """They mean nearly the same, or nothing, and the reason says why."""
    found, others = result(line)
    assert found == keys
    assert [each for each, _ in others] == [outcome]
    assert reason in others[0][1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("priority 256", "a whole number from 1 to 255, not `256`"),
        ("priority", "`priority` needs a value"),
        ("priority 1 2", "`priority` has one value: `2` is too much"),
        ("priority { }", "`priority` has no block"),
        ("state SLAVE", "MASTER or BACKUP"),
        ("advert_int soon", "seconds such as `1` or `0.5`, not `soon`"),
        ("unicast_peer", "needs a block"),
        ("unicast_peer { peer }", "must be an address"),
        ("unicast_peer { 192.0.2.2 192.0.2.3 }", "a line has one peer"),
        ("unicast_peer { 192.0.2.2 min_ttl }", "`min_ttl` needs a number"),
        ("mcast_dst_ip 224.0.0.99", "the RFC's group"),
        ("authentication { auth_type AH\nauth_pass x }", "only PASS is there"),
        ("authentication { auth_hmac x }", "with the same keys in our YAML"),
        ("authentication { auth_pass very secret }", "`auth_pass` has one value, in quotes"),
        ("virtual_ipaddress { 192.0.2.300 }", "must be an address"),
        ("virtual_ipaddress { 192.0.2.3/33 }", "`33` is no prefix length: 0 to 32"),
        ("virtual_ipaddress { 192.0.2.3/255.255.255.0 }", "is no prefix length"),
        ("virtual_ipaddress { 2001:db8::1/64 }", "is IPv6 in an instance of IPv4"),
        ("virtual_ipaddress { 192.0.2.3/24 dev eth1 }", "and the instance on `eth0`"),
        ("virtual_ipaddress { 192.0.2.3/24 peer 192.0.2.4 }", "no peer address"),
        ("virtual_ipaddress { 192.0.2.3/24 192.0.2.4/24 }", "is no option of an address"),
        ("virtual_ipaddress { 192.0.2.3/24 dev }", "is no option of an address"),
        ("virtual_ipaddress { 192.0.2.3/24 { } }", "is an address, and has no block"),
        ("virtual_routes { }", "routes do not move"),
        ("no_accept", "accepts connections"),
        ("strict_mode maybe", "must be on, true, yes"),
        ("strict_mode on\nunicast_peer { 192.0.2.2 }", "allows no `unicast_peer`"),
        ("notify", "`notify` needs a command"),
        ("notify ''", "must be a command"),
        ('notify "\'a"', "cannot be split into words"),
        ("notify /a\nnotify /b", "for the second time"),
        ("track_script { chk }", "there is no vrrp_script `chk`"),
        ("track_interface { eth1 weight }", "a line has one name"),
        ("track_interface { eth1 eth2 }", "a line has one name"),
        ("track_interface { eth1 weight 3 reverse }", "there is no `reverse`"),
        ("track_interface { eth1 weight 3 often }", "`often` is too much"),
        ("track_bfd { x }", "there is no BFD"),
        ("prioritty 3", "`prioritty` is unknown here: did you mean `priority`?"),
    ],
)
def test_refused(line: str, reason: str):
    """They cannot be obeyed; the reason names what to write."""
    _, others = result(line)
    assert any(outcome is R and reason in why for outcome, why in others), others


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("vrrp_instance A { virtual_router_id 1\nvirtual_ipaddress { 192.0.2.1/24 } }", "has no `interface`"),
        ("vrrp_instance A { interface e\nvirtual_ipaddress { 192.0.2.1/24 } }", "has no `virtual_router_id`"),
        ("vrrp_instance A { interface e\nvirtual_router_id 1 }", "has no `virtual_ipaddress`"),
        ("vrrp_instance { }", "needs a value"),
        ("vrrp_instance A", "needs a block"),
    ],
)
def test_incomplete(text: str, reason: str):
    """An instance without what it needs is refused at its head."""
    assert any(line == 1 and reason in why for line, _, why in told(translated(text), R))


def test_same_name_twice():
    """The second one is refused, as by keepalived."""
    refused = told(translated(instance() + instance()), R)
    assert refused == [(6, 15, "there is a vrrp_instance `VI` already")]


def test_preemption_that_keepalived_forgets():
    """Beside `state MASTER` it forgets both, so that a mixed pair has one rule."""
    found, others = result("state MASTER", "priority 100", "nopreempt", "preempt_delay 5")
    assert found == {"priority": 100}
    assert [outcome for outcome, _ in others] == [C, I, I]
    found, others = result("nopreempt", "preempt_delay 5")
    assert found == {"preempt": False}
    assert others == [(I, "means nothing with `nopreempt`, as in keepalived")]


def test_strict():
    """vrrp_strict sends no password and has no preempt delay; it forgets `state MASTER`, not `nopreempt`."""
    auth = "authentication {\nauth_type PASS\nauth_pass x\n}"
    found, _ = result("state MASTER", "priority 9", "nopreempt", "preempt_delay 5", auth, "strict_mode")
    assert found == {"priority": 9, "preempt": False}
    head = "global_defs {\nvrrp_strict\n}\n"
    assert result(auth, head=head)[0] == {}
    assert result(auth, "strict_mode off", head=head)[0] == {"auth": {"pass": "x"}}


def test_version_3():
    """Version 3 sends no password."""
    auth = "authentication {\nauth_type PASS\nauth_pass x\n}"
    found, others = result("version 3", auth)
    assert found == {"version": 3}
    assert {outcome for outcome, _ in others} == {I}


SIX = "vrrp_instance A {\ninterface e\nvirtual_router_id 7\nvirtual_ipaddress {\n2001:db8::1 label x\n}\n"


def test_ipv6():
    """It has version 3 whatever is said globally, and no labels."""
    translation = translated("global_defs { vrrp_version 2 }\n" + SIX + "version 3\nadvert_int 0.5\n}")
    assert virtual_ips(translation)["A"] == {
        "interface": "e",
        "router_id": 7,
        "addresses": ["2001:db8::1/128"],
        "version": 3,
        "advert": "500ms",
    }
    assert told(translation) == [(6, 19, "`label`: the kernel has labels for IPv4 only")]
    assert told(translated(SIX + "}")) == [(5, 19, "`label`: the kernel has labels for IPv4 only")]
    assert "version 2 has no IPv6" in told(translated(SIX + "version 2\n}"), R)[0][2]


def test_interface():
    """Without one it is that of the addresses, or the default one; where it stands does not matter."""
    addresses = "virtual_ipaddress {\n192.0.2.1/24 dev e\n192.0.2.2/24 dev e\n}"
    text = f"vrrp_instance A {{\nvirtual_router_id 7\n{addresses}\n}}"
    assert mapping(virtual_ips(translated(text))["A"])["interface"] == "e"
    text = f"vrrp_instance A {{\nvirtual_router_id 7\n{addresses}\ninterface f\n}}"
    assert len(told(translated(text), R)) == 3
    text = "global_defs { default_interface d }\nvrrp_instance A {\nvirtual_router_id 7\n"
    text += "virtual_ipaddress { 192.0.2.1/24 } }"
    assert mapping(virtual_ips(translated(text))["A"])["interface"] == "d"


def test_several_ttls():
    """We have one for all peers: the least, and none where a peer has none."""
    found, others = result("unicast_peer {\n192.0.2.2 min_ttl 255\n192.0.2.3 min_ttl 254\n}")
    assert found == {"peers": ["192.0.2.2", "192.0.2.3"], "min_ttl": 254}
    assert [outcome for outcome, _ in others] == [C]
    found, others = result("unicast_peer {\n192.0.2.2 min_ttl 255\n192.0.2.3\n}")
    assert found == {"peers": ["192.0.2.2", "192.0.2.3"]}
    assert [outcome for outcome, _ in others] == [C]


def test_own_address_among_the_peers():
    """A file for all routers names this one, too."""
    found, others = result("unicast_src_ip 192.0.2.1", "unicast_peer {\n192.0.2.1\n192.0.2.2\n}")
    assert found == {"source": "192.0.2.1", "peers": ["192.0.2.2"]}
    assert others == [(I, "is `unicast_src_ip`, this router itself")]


def test_labels():
    """A virtual IP has one label: the first."""
    addresses = "virtual_ipaddress {\n192.0.2.11/24 label a\n192.0.2.12/24 label b\n}"
    found, others = result(addresses)
    assert found["label"] == "a"
    assert [outcome for outcome, _ in others] == [C]


def test_names():
    """A name that ours does not take is changed, and remains another one than the others."""
    text = instance().replace("VI", '"VI 1"') + instance().replace("VI", "VI/1")
    translation = translated(text)
    assert list(virtual_ips(translation)) == ["VI-1", "VI-1-2"]
    assert [place[0] for place in told(translation, C)] == [1, 6]


def test_every_fault_is_told():
    """One wrong line hides no other."""
    _, others = result("priority 0", "unicast_peer {\na\nb\n}", "virtual_ipaddress {\nc\nd\n}", "bogus")
    assert [outcome for outcome, _ in others] == [R] * 6
