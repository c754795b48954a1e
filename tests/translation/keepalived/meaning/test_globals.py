"""`global_defs` and what else stands outside of instances."""

import pytest
from support.translation.keepalived_files import instance, mapping, told, translated, virtual_ips

from appliance.translation.keepalived.meaning.globals import DEFAULTS
from appliance.translation.keepalived.meaning.instance_directives import INSTANCE
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


def test_unknown_blocks():
    """Keepalived leaves out their first line and their end, and reads what is within as if they were none."""
    wrapped = f"farm web {{\nstate up\n{instance()}}}\n"
    found = translated(wrapped)
    assert list(virtual_ips(found)) == ["VI"]
    assert [line for line, _, _ in told(found)] == [1, 2, 8]
    assert told(found, Outcome.REFUSED) == []
    misspelt = "vvrp_script chk {\nscript /c\ninterval 2\n}\n" + instance("track_script {\nchk\n}")
    found = translated(misspelt)
    assert told(found, Outcome.REFUSED) == []
    assert told(found, Outcome.CHANGED)[0] == (
        1,
        1,
        "`vvrp_script` is unknown here: did you mean `vrrp_script`? Ignored, as in keepalived",
    )
    assert "track" not in mapping(virtual_ips(found)["VI"])


def test_defaults():
    """They hold for each instance that does not say its own, and count once though there are several."""
    text = "global_defs {\nvrrp_version 3\nvrrp_garp_master_refresh 60\nvrrp_garp_master_delay x\n}\n"
    translation = translated(text + instance("garp_master_refresh 30") + instance().replace("VI", "B"))
    first, second = (mapping(virtual_ips(translation)[name]) for name in ("VI", "B"))
    assert (first["version"], second["version"]) == (3, 3)
    assert (first["announce"], second["announce"]) == ({"refresh": "30s"}, {"refresh": "60s"})
    assert [line for line, _, _ in told(translation)] == [4]


def test_every_default_has_a_rule():
    """What `global_defs` says for all instances is a directive of instances."""
    assert set(DEFAULTS.values()) <= set(INSTANCE)


def test_few_announcements():
    """vrrp_min_garp is one announcement, unless a number is said."""
    head = "global_defs { vrrp_min_garp }\n"
    found = mapping(virtual_ips(translated(head + instance()))["VI"], "announce")
    assert found == {"repeat": 1, "delay": "off"}
    head = "global_defs { vrrp_min_garp off\nvrrp_garp_master_repeat 2 }\n"
    assert mapping(virtual_ips(translated(head + instance()))["VI"], "announce") == {"repeat": 2}


@pytest.mark.parametrize(
    ("priority", "more", "listen"),
    [("128", "", "9s"), ("128", "version 3\nadvert_int 0.5", "7250ms")],
)
def test_startup_delay(priority: str, more: str, listen: str):
    """We listen as long as keepalived waits, and then as long as a death takes to be seen."""
    head = "global_defs { vrrp_startup_delay 5.5 }\n"
    found = mapping(virtual_ips(translated(head + instance(f"priority {priority}", more)))["VI"])
    assert found["listen"] == listen
    head = "global_defs { vrrp_startup_delay 0 }\n"
    assert "listen" not in mapping(virtual_ips(translated(head + instance()))["VI"])


@pytest.mark.parametrize(
    ("text", "outcome", "reason"),
    [
        ("global_defs { router_id x }", Outcome.IGNORED, "a name for email"),
        ("global_defs { notification_email { a@b } }", Outcome.IGNORED, "no email"),
        ("global_defs { enable_snmp_vrrp }", Outcome.IGNORED, "no SNMP"),
        ("global_defs { vrrp_rt_priority 50 }", Outcome.IGNORED, "real-time"),
        ("global_defs { enable_script_security }", Outcome.CHANGED, "as the configured user"),
        ("global_defs { script_user a b }", Outcome.CHANGED, "the group is the user's own"),
        ("global_defs { script_user }", Outcome.REFUSED, "`script_user` needs a value"),
        ("global_defs { notify_fifo }", Outcome.REFUSED, "`notify_fifo` needs a path"),
        ("global_defs { notify_fifo_script /x }", Outcome.REFUSED, "no reader is started"),
        ("global_defs { vrrp_mcast_group4 224.0.0.9 }", Outcome.IGNORED, "no instance uses multicast"),
        ("global_defs { bogus }", Outcome.CHANGED, "`bogus` is unknown here. Ignored, as in keepalived"),
        (
            "enable_script_security",
            Outcome.CHANGED,
            "belongs in `global_defs`: keepalived ignores it",
        ),
        ("bogus", Outcome.CHANGED, "`bogus` is unknown here. Ignored, as in keepalived"),
        ("}", Outcome.CHANGED, "no block is open here: keepalived continues after it"),
        (
            "global_defs {",
            Outcome.CHANGED,
            ("this block is not closed: it ends with the file, as in keepalived"),
        ),
        ("net_namespace x", Outcome.REFUSED, "in the namespace"),
        ("use_pid_dir", Outcome.IGNORED, "keepalived's own files"),
        ("virtual_server 10.0.0.1 80 { }", Outcome.REFUSED, "has no `protocol`"),
        ("static_routes { }", Outcome.REFUSED, "belongs to the host"),
        ("bfd_instance x { }", Outcome.REFUSED, "BFD is not supported"),
        ("garp_group { }", Outcome.IGNORED, "announcements are few"),
        ("vrrp_instanze x { }", Outcome.CHANGED, "did you mean `vrrp_instance`? Ignored, as in keepalived"),
    ],
)
def test_others(text: str, outcome: Outcome, reason: str):
    """Each has its outcome and a reason, wherever there is no meaning for it."""
    translation = translated(f"{text}\n")
    assert any(reason in why for _, _, why in told(translation, outcome)), translation.lines
    assert [each for each in translation.lines if each.outcome is not outcome] == []


def test_a_fifo_for_all_instances():
    """Each writes its own lines into it; what commands there are keep their user."""
    head = "global_defs {\nvrrp_notify_fifo /run/vrrp.fifo\nnotify_fifo /run/vrrp.fifo\nscript_user x\n}\n"
    translation = translated(head + instance())
    assert mapping(virtual_ips(translation)["VI"])["notify"] == {"fifo": "/run/vrrp.fifo"}
    assert told(translation) == []
    found = mapping(virtual_ips(translated(head + instance("notify /n")))["VI"])
    assert found["notify"] == {"any": ["/n"], "fifo": "/run/vrrp.fifo", "user": "x"}


def test_what_a_fifo_has_not():
    """It is the appliance's, has no lines of groups, and there is one."""
    head = "global_defs {\nnotify_fifo /run/a keeper\n}\nvrrp_sync_group G {\ngroup { VI }\n}\n"
    assert told(translated(head + instance())) == [
        (2, 20, "the FIFO belongs to the user that the appliance runs as"),
        (2, 13, "gets a line for each member of a vrrp_sync_group, and none for the GROUP"),
    ]
    head = "global_defs {\nnotify_fifo /run/a\nvrrp_notify_fifo /run/b\n}\n"
    assert told(translated(head), Outcome.REFUSED) == [(3, 18, "all instances share one FIFO, `/run/a`")]
