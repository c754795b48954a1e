"""The directives of a `vrrp_instance`: what each becomes, and what is said of it."""

from typing import Final

import pytest
from support.translation.keepalived_files import instance, mapping, told, translated, virtual_ips

from appliance.model.document.tree import Plain, plain
from appliance.translation.combined_files import load_together
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
        ("priority 255\nmcast_src_ip 192.0.2.10", {"priority": 255, "source": "192.0.2.10"}),
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
        ("virtual_ipaddress { 192.0.2.11/24 dev eth0 scope global }",
         {"addresses": ["192.0.2.10/24", "192.0.2.11/24"]}),
        ("virtual_ipaddress { 198.51.100.7/24 dev eth1 }",
         {"addresses": ["192.0.2.10/24", "198.51.100.7/24 dev eth1"]}),
        ("virtual_ipaddress_excluded { 198.51.100.7 dev eth1 }", {"excluded": ["198.51.100.7/32 dev eth1"]}),
        ("virtual_ipaddress_excluded { 2001:db8::1/64\n2001:db8::2 dev eth1 }",
         {"excluded": ["2001:db8::1/64", "2001:db8::2/128 dev eth1"]}),
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
        ("state MASTER", {"priority": 255}, C, "without a priority the owner's applies, 255"),
        ("advert_int 0.4", {"advert": "1s"}, C, "is 1 s: version 2 has whole seconds"),
        ("advert_int 2.5", {"advert": "3s"}, C, "is 3 s"),
        ("version 3\nadvert_int 0.255", {"version": 3, "advert": "260ms"}, C, "hundredths of a second"),
        ("version 3\nadvert_int 60", {"version": 3, "advert": "40950ms"}, C, "is 40.95 s"),
        ("unicast_peer { }", {}, C, "adverts are sent by multicast"),
        ("unicast_src_ip 192.0.2.10", {}, C, "is the virtual IP itself, which a backup does not have"),
        ("unicast_peer { 192.0.2.2 max_ttl 64 }", {"peers": ["192.0.2.2"]}, I, "a greater TTL is harmless"),
        ("unicast_peer { 192.0.2.2\n192.0.2.2 }", {"peers": ["192.0.2.2"]}, I, "is listed already"),
        ("unicast_ttl 1", {}, C, "a TTL of 255"),
        ("authentication {\nauth_type PASS\nauth_pass 123456789 }", {"auth": {"pass": "12345678"}}, C,
         "first 8 bytes"),
        ("authentication {\nauth_type PASS\nauth_pass £6nj7^5ü }", {"auth": {"pass": "£6nj7^5"}}, C,
         "first 8 bytes"),
        ("authentication {\nauth_type PASS }", {}, I, "take effect only together"),
        ("authentication {\nauth_pass x }", {}, I, "take effect only together"),
        ("strict_mode\npriority 255", {"priority": 255}, C, "passwords and preempt delays are left out"),
        ("nopreempt\npriority 255", {"priority": 255}, I, "has no effect on the owner"),
        ("preempt", {}, I, "preempts unless `nopreempt` is set"),
        ("garp_master_repeat 0", {"announce": {"repeat": 1}}, C, "is limited to 1 to 100"),
        ("use_vmac vrrp.7 00:00:5e:00:01:07", {"virtual_mac": True}, C, "names the interface itself"),
        ("debug 3", {}, I, "does not use it"),
        ("lvs_sync_daemon_interface eth1", {}, I, "IPVS is not used"),
        ("smtp_alert on", {}, I, "no email"),
        ("dont_track_primary", {}, C, "always watched"),
        ("virtual_ipaddress { 192.0.2.11/24 brd + }", {"addresses": ["192.0.2.10/24", "192.0.2.11/24"]}, I,
         "`brd`: a broadcast address"),
        ("virtual_ipaddress { 192.0.2.11/24 no_track }", {"addresses": ["192.0.2.10/24", "192.0.2.11/24"]}, I,
         "`no_track`: a removed address is restored"),
        ("virtual_ipaddress { 192.0.2.11/24 scope link }", {"addresses": ["192.0.2.10/24", "192.0.2.11/24"]},
         I, "`scope`"),
        ("notify tell", {"notify": {"any": ["/usr/bin/env", "tell"]}}, C, "`/usr/bin/env` searches for it"),
        ("notify /a root wheel", {"notify": {"any": ["/a"], "user": "root"}}, C, "the group is the"),
        ("notify /a root\nnotify_master /b nobody",
         {"notify": {"any": ["/a"], "active": ["/b"], "user": "root"}}, C, "all commands of a virtual"),
        ("track_interface { eth0 weight 5 }", {}, C, "is always watched"),
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
        ("priority", "`priority` needs a value"),
        ("priority 1 2", "`priority` takes one value: `2` is one too many"),
        ("priority { }", "`priority` takes no block"),
        ("unicast_peer", "needs a block"),
        ("unicast_peer { peer }", "must be an address"),
        ("unicast_peer { 192.0.2.2 192.0.2.3 }", "a line has one peer"),
        ("unicast_peer { 192.0.2.2 min_ttl }", "`min_ttl` needs a number"),
        ("mcast_dst_ip 224.0.0.99", "the RFC's group"),
        ("authentication { auth_type AH\nauth_pass x }", "PASS is supported, AH is not"),
        ("authentication { auth_hmac x }", "with the same keys in the appliance's YAML"),
        ("authentication { auth_pass very secret }", "`auth_pass` takes one value, in quotes"),
        ("authentication {\nauth_type PASS\nauth_pass 1234567£ }", "are not valid UTF-8"),
        ("authentication {\nauth_type PASS\nauth_pass abc\udca3 }", "are not valid UTF-8"),
        ("virtual_ipaddress { 192.0.2.3/24 peer 192.0.2.4 }", "no peer address"),
        ("virtual_ipaddress { 192.0.2.3/24 dev }", "`dev` needs a value"),
        ("virtual_ipaddress { 192.0.2.3/24 { } }", "is an address, and takes no block"),
        ("no_accept", "accepts connections"),
        ("strict_mode", "keepalived drops connections to the virtual IP with it"),
        ("strict_mode maybe", "must be on, true, yes"),
        ("strict_mode on\nunicast_peer { 192.0.2.2 }", "does not allow `unicast_peer`"),
        ("notify", "`notify` needs a command"),
        ("notify ''", "must be a command"),
        ('notify "\'a"', "cannot be split into words"),
        ("track_interface { eth1 weight }", "a line has one name"),
        ("track_interface { eth1 eth2 }", "a line has one name"),
        ("track_interface { eth1 weight 3 reverse }", "`reverse` is not supported"),
        ("track_interface { eth1 weight 3 often }", "`often` is unexpected here"),
        ("track_bfd { x }", "BFD is not supported"),
        ("prioritties { 3 }", "`prioritties` is unknown here"),
    ],
)
def test_refused(line: str, reason: str):
    """They cannot be obeyed; the reason names what to write."""
    found = told(translated(instance(line)), R)
    assert any(reason in why for _, _, why in found), found


@pytest.mark.parametrize(
    ("line", "keys", "reason"),
    [
        ("state SLAVE", {},
         "MASTER or BACKUP, not `SLAVE`: keepalived starts as backup, and so does the appliance"),
        ("state MASTER;\nnopreempt", {"preempt": False}, "not `MASTER;`: keepalived starts as backup"),
        ("priority 256", {},
         "a whole number from 1 to 255, not `256`: keepalived uses 100, and so does the appliance"),
        ("priority 150;", {}, "not `150;`: keepalived uses 100"),
        ("advert_int soon", {}, "seconds such as `1` or `0.5`, not `soon`: keepalived uses 1 s"),
        ("preempt_delay 5;", {}, "not `5;`: keepalived does not wait"),
        ("virtual_ipaddress { 192.0.2.3/33 }", {"addresses": ["192.0.2.10/24", "192.0.2.3/32"]},
         "`33` is not a prefix length, 0 to 32: keepalived uses 32, and so does the appliance"),
        ("virtual_ipaddress { 192.0.2.3/255.255.255.0 }", {"addresses": ["192.0.2.10/24", "192.0.2.3/32"]},
         "`255.255.255.0` is not a prefix length"),
        ("virtual_ipaddress { 192.0.2.300/24 }", {}, "not `192.0.2.300`: keepalived ignores it"),
        ("virtual_ipaddress_excluded { VIP }", {},
         "not `VIP`: keepalived ignores it, and so does the appliance"),
        ("virtual_ipaddress { 2001:db8::1/64 }", {},
         ("a separate vrrp_instance in the same vrrp_sync_group: keepalived ignores it, and so does the "
         "appliance")),
        ("unicast_peer { 192.0.2.2/24 }", {"peers": ["192.0.2.2"]}, "keepalived ignores `/24`"),
        ("unicast_src_ip 192.0.2.1/24", {"source": "192.0.2.1"}, "a router has no prefix length"),
        ("virtual_ipaddress { 192.0.2.3 /24 }", {"addresses": ["192.0.2.10/24", "192.0.2.3/32"]},
         "`/24` is separated from its address: keepalived ignores it"),
        ("virtual_ipaddress { 192.0.2.3/24 192.0.2.4/24 }", {"addresses": ["192.0.2.10/24", "192.0.2.3/24"]},
         "`192.0.2.4/24` is not an option of an address: keepalived ignores it"),
        ("track_script { chk }", {}, "there is no vrrp_script `chk` in this file: keepalived continues"),
        ("notify /a\nnotify /b", {"notify": {"any": ["/a"]}}, "is listed twice: keepalived runs the first"),
        ("prioritty 3", {}, "is unknown here: did you mean `priority`? Ignored, as in keepalived"),
        ("enable_script_security", {}, "`enable_script_security` is unknown here. Ignored, as in keepalived"),
        ("authentication {\nauth_type PASS\nauth_pass x\nmode 3 }", {"auth": {"pass": "x"}}, "`mode` is"),
    ],
)  # fmt: skip
def test_slips_that_keepalived_takes(line: str, keys: dict[str, Plain], reason: str):
    """Keepalived 2.2.7 goes on with these, and so does the appliance, in the same way; each is told."""
    found, others = result(line)
    assert found == keys
    assert [reason in why for outcome, why in others if outcome is C] == [True]
    assert R not in [outcome for outcome, _ in others]


def test_a_type_of_password_that_keepalived_does_not_know():
    """Keepalived then sends none, so that a pair of both has to do without, too."""
    found, others = result('authentication {\nauth_type "PASS;"\nauth_pass x\n}')
    assert found == {}
    assert others == [
        (
            C,
            (
                "`PASS;` is unknown to keepalived, which sends no password, nor does the appliance: is "
                "`PASS` meant?"
            ),
        ),
        (I, "has no effect without a type that keepalived supports"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "authentication {\nauth_type AH\nauth_pass x\n}",
        "authentication {\nauth_hmac x\n}",
        "authentication {\nauth_type PASS\nauth_pass very secret\n}",
        "authentication",
        "authentification {\nauth_type PASS\nauth_pass x\n}",
        "mcast_dst_ip 224.0.0.99",
        "no_accept",
        "strict_mode",
        "strict_mode maybe",
        "unicast_peer {\npeer\n}",
        "unicast_peer {\n192.0.2.2 min_ttl\n}",
    ],
)
def test_an_instance_is_never_more_open_than_the_file(line: str):
    """What cannot be said as strictly is left out with the instance that it protects."""
    translation = translated(instance(line) + instance().replace("VI", "OTHER"))
    assert list(virtual_ips(translation)) == ["OTHER"]
    assert any("is left out: without its `" in why for at, _, why in told(translation, R) if at == 1)
    kept = [each.place.line for each in translation.lines if each.outcome is Outcome.KEPT]
    assert min(kept) == instance(line).count("\n") + 1


def test_an_instance_that_is_left_out_has_one_line_of_report():
    """However many reasons there are."""
    given = "vrrp_instance A {\ninterface e\nvirtual_ipaddress {\n192.0.2.1/24 peer 192.0.2.2\n}\nno_accept\n"
    given += "authentication {\nauth_type AH\nauth_pass x\n}\n}"
    (why,) = [why for at, _, why in told(translated(given), R) if at == 1]
    assert why == (
        "is left out: without its `no_accept` and `authentication` it would accept more, or send to others, "
        "than with keepalived, and has no `virtual_router_id`, and its `virtual_ipaddress` cannot be applied"
    )


def test_a_password_beside_a_type_that_is_refused():
    """It is left out with the type."""
    found = translated(instance("authentication {\nauth_type AH\nauth_pass x\n}"))
    assert (7, 11, "belongs to `auth_type AH`, which is refused") in told(found, I)


@pytest.mark.parametrize(
    ("head", "own", "left"),
    [
        ("vrrp_mcast_group4 224.0.0.18\nvrrp_mcast_group6 ff02::12", "", True),
        ("vrrp_mcast_group4 224.0.0.99", "", False),
        ("vrrp_mcast_group6 ff02::99", "", True),
        ("vrrp_mcast_group4 224.0.0.99", "mcast_dst_ip 224.0.0.18", True),
        ("vrrp_mcast_group4 224.0.0.99", "unicast_peer { 192.0.2.2 }", True),
    ],
)
def test_multicast_groups(head: str, own: str, *, left: bool):
    """An instance that would speak to another group is left out; the default may be named."""
    translation = translated(f"global_defs {{\n{head}\n}}\n{instance(own)}")
    assert ("virtual_ips" in mapping(plain(translation.root))) is left
    assert bool(told(translation, R)) is not left


def test_lines_of_an_instance_that_is_left_out():
    """None of them is kept."""
    text = "vrrp_instance A {\ninterface e\npriority 3\nvirtual_ipaddress {\n192.0.2.1/24\n}\n}\n"
    assert told(translated(text)) == [
        (1, 1, "has no `virtual_router_id`"),
        *((line, at, "`A` is left out") for line, at in ((2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1))),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "vrrp_instance A { virtual_router_id 1\nvirtual_ipaddress { 192.0.2.1/24 } }",
            "has no `interface`",
        ),
        (
            "vrrp_instance A { interface e\nvirtual_ipaddress { 192.0.2.1/24 } }",
            "has no `virtual_router_id`",
        ),
        (
            "vrrp_instance A { interface e\nvirtual_router_id 1\nvirtual_ipaddress { 192.0.2.300 } }",
            "its `virtual_ipaddress` cannot be applied",
        ),
        (
            "vrrp_instance A { interface e\nvirtual_router_id 0\nvirtual_ipaddress { 192.0.2.3 } }",
            "its `virtual_router_id` cannot be applied",
        ),
        ("vrrp_instance { }", "needs a value"),
        ("vrrp_instance A", "needs a block"),
    ],
)
def test_incomplete(text: str, reason: str):
    """An instance without what it needs is refused at its head."""
    assert any(line == 1 and reason in why for line, _, why in told(translated(text), R))


def test_an_instance_that_does_nothing():
    """Without addresses, commands and a group nobody would notice it."""
    text = "vrrp_instance A {\ninterface e\nvirtual_router_id 1\nvirtual_ipaddress {\n}\n}\n"
    assert told(translated(text)) == [
        (1, 1, "is left out: it holds no address and runs no command"),
        *((line, 1, "`A` does nothing") for line in (2, 3, 4, 5, 6)),
    ]


def test_an_instance_that_only_tells_its_state():
    """Who has no address of its own to move runs commands: it stays in version 2, as in keepalived."""
    text = "vrrp_instance A {\ninterface e\nvirtual_router_id 1\n%s\n}\n"
    found = translated(text % "notify /n\nunicast_src_ip 192.0.2.8\nunicast_peer { 192.0.2.9 }")
    assert told(found, R) == []
    assert mapping(virtual_ips(found)["A"])["addresses"] == []
    loaded = load_together(None, [found], source="a.yaml", number=1)
    assert loaded.snapshot is not None
    (router,) = loaded.snapshot.virtual_routers
    assert (router.family, router.version, router.addresses) == (4, 2, ())
    assert told(translated(text % "notify /n\nversion 3"), R) == [(1, 1, "has no `virtual_ipaddress`")]
    found = translated(text % "virtual_ipaddress_excluded { 192.0.2.3 }")
    assert mapping(virtual_ips(found)["A"]) == {
        "interface": "e",
        "router_id": 1,
        "addresses": [],
        "excluded": ["192.0.2.3/32"],
    }
    for head in ("global_defs {\nnotify_fifo /f\n}\n", "vrrp_sync_group G {\ngroup { A }\n}\n"):
        assert list(virtual_ips(translated(head + text % ""))) == ["A"]


def test_same_name_twice():
    """The second one is left out whatever it says, as by keepalived."""
    translation = translated(instance() + instance("priority 0", "notify", "bogus { }"))
    reason = "there is already a vrrp_instance `VI`, which counts: keepalived ignores this one, too"
    assert told(translation, C) == [(6, 15, reason)]
    assert {why for _, _, why in told(translation, I)} == {"belongs to the second vrrp_instance of this name"}
    assert told(translation, R) == []
    assert list(virtual_ips(translation)) == ["VI"]


def test_excluded_addresses_do_not_say_the_version_of_ip():
    """The first of `virtual_ipaddress` does, wherever it stands, as in keepalived."""
    found = translated(
        instance().replace("interface", "virtual_ipaddress_excluded { 2001:db8::1 }\ninterface")
    )
    assert told(found, R) == []
    assert mapping(virtual_ips(found)["VI"])["addresses"] == ["192.0.2.10/24"]
    loaded = load_together(None, [found], source="a.yaml", number=1)
    assert loaded.snapshot is not None
    (router,) = loaded.snapshot.virtual_routers
    assert (router.family, router.version, router.advertised) == (4, 2, ("192.0.2.10/24",))
    assert router.elsewhere == (("2001:db8::1/128", "eth0"),)


def test_only_addresses_of_the_instance_s_family_have_a_label():
    """A label of all of those stays, whatever addresses of the other family are held with them."""
    found = translated(
        instance("virtual_ipaddress_excluded {\n2001:db8::1\n2001:db8::2 label e:6\n}").replace(
            "192.0.2.10/24", "192.0.2.10/24 label e:vip"
        )
    )
    assert mapping(virtual_ips(found)["VI"])["label"] == "e:vip"
    (ignored,) = [why for _, _, why in told(found, I)]
    assert "`label`: only addresses of the virtual IP's family have one" in ignored


def test_preemption_that_keepalived_forgets():
    """Beside `state MASTER` it forgets both, so that a mixed pair has one rule."""
    found, others = result("state MASTER", "priority 100", "nopreempt", "preempt_delay 5")
    assert found == {"priority": 100}
    assert [outcome for outcome, _ in others] == [C, I, I]
    found, others = result("nopreempt", "preempt_delay 5")
    assert found == {"preempt": False}
    assert others == [(I, "has no effect with `nopreempt`, as in keepalived")]


ACCEPTED: Final = ("version 3", "accept")
"""With these keepalived accepts connections although it is strict."""


def test_strict():
    """vrrp_strict sends no password and has no preempt delay; it forgets `state MASTER`, not `nopreempt`."""
    found, _ = result("state MASTER", "priority 9", "nopreempt", "preempt_delay 5", "strict_mode", *ACCEPTED)
    assert found == {"priority": 9, "preempt": False, "version": 3}
    auth = "authentication {\nauth_type PASS\nauth_pass x\n}"
    head = "global_defs {\nvrrp_strict\n}\n"
    assert result(auth, "priority 255", head=head)[0] == {"priority": 255}
    assert result(auth, "strict_mode off", head=head)[0] == {"auth": {"pass": "x"}}


@pytest.mark.parametrize(
    ("lines", "accepts"),
    [
        ("vrrp_strict", False),
        ("vrrp_strict\naccept", False),  # version 2 has no accept mode: keepalived resets it
        ("vrrp_strict\nno_accept\nversion 3", False),
        ("vrrp_strict\naccept\nversion 3", True),
        ("vrrp_strict\npriority 255", True),
        ("vrrp_strict\nstate MASTER", True),  # the owner, too, without a priority
        ("vrrp_strict\nstrict_mode off", True),
        ("no_accept", False),
        ("no_accept\naccept", True),
        ("no_accept\npriority 255", True),
    ],
)
def test_connections_that_keepalived_drops(lines: str, *, accepts: bool):
    """An instance to whose addresses keepalived 2.2 lets no connection through is left out."""
    own = [each for each in lines.split("\n") if each != "vrrp_strict"]
    head = "global_defs {\nvrrp_strict\n}\n" if "vrrp_strict" in lines else ""
    translation = translated(head + instance(*own) + instance("priority 255").replace("VI", "OTHER"))
    assert list(virtual_ips(translation)) == (["VI", "OTHER"] if accepts else ["OTHER"])
    assert bool(told(translation, R)) is not accepts


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
    found = mapping(virtual_ips(translated(text))["A"])
    assert (found["interface"], found["addresses"]) == ("f", ["192.0.2.1/24 dev e", "192.0.2.2/24 dev e"])
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
    """A virtual IP has the label that all its addresses have; that of one becomes no other's."""
    text = instance().replace("192.0.2.10/24", "192.0.2.10/24 label a\n192.0.2.11/24 label b\n")
    assert mapping(virtual_ips(translated(text.replace("label b", "label a")))["VI"])["label"] == "a"
    translation = translated(text)
    assert "label" not in mapping(virtual_ips(translation)["VI"])
    assert [(line, at) for line, at, _ in told(translation, I)] == [(4, 41), (5, 21)]
    found, others = result("virtual_ipaddress { 192.0.2.11/24 label eth0:1 }")
    assert "label" not in found
    assert others == [
        (I, ("`label`: a virtual IP has one label for all of its addresses, or none, as in this case"))
    ]


def test_names():
    """A name that ours does not take is changed, and remains another one than the others."""
    text = instance().replace("VI", '"VI 1"') + instance().replace("VI", "VI/1")
    translation = translated(text)
    assert list(virtual_ips(translation)) == ["VI-1", "VI-1-2"]
    assert [place[0] for place in told(translation, C)] == [1, 6]


def test_every_fault_is_told():
    """One wrong line hides no other."""
    lines = ("priority 0", "unicast_peer {\na\nb\n}", "virtual_ipaddress {\nc\nd\n}", "notify", "bogus")
    translation = translated(instance(*lines))
    assert [line for line, _, _ in told(translation, R)] == [1, 7, 8, 14]
    assert [line for line, _, _ in told(translation, C)] == [5, 11, 12, 15]
