"""`vrrp_sync_group`: members, what they track together, and commands of the group."""

import pytest
from support.translation.keepalived_files import instance, mapping, told, translated, virtual_ips

from appliance.model.document.tree import Plain
from appliance.translation.translation import Outcome, Translation

pytestmark = pytest.mark.pure

CHECK = "vrrp_script chk {\nscript /c\nweight 5\n}\n"


def grouped(*lines: str, one: str = "", group: str = "G") -> Translation:
    """Translate two instances A and B in a group with further lines; `one` is a line of A."""
    head = "\n".join((f"vrrp_sync_group {group} {{", "group { A B }", *lines, "}", ""))
    first, second = (instance(line) for line in (one, ""))
    return translated(CHECK + head + first.replace("VI", "A") + second.replace("VI", "B"))


def keys(translation: Translation, name: str) -> dict[str, Plain]:
    """Return the keys of a virtual IP that not every instance here has."""
    given = mapping(virtual_ips(translation)[name])
    return {key: each for key, each in given.items() if key not in ("interface", "router_id", "addresses")}


def test_members():
    """Each member names the group."""
    translation = grouped()
    assert keys(translation, "A") == keys(translation, "B") == {"sync_group": "G"}
    assert keys(grouped(group='"G 1"'), "A") == {"sync_group": "G-1"}


def test_weights_of_members():
    """Keepalived leaves them out, unless the group says that they count."""
    translation = grouped(one="track_script { chk }")
    assert mapping(keys(translation, "A")["track"]) == {"chk": {"script": ["/c"], "interval": "1s"}}
    assert [why[:40] for _, _, why in told(translation, Outcome.CHANGED)] == [
        "is a fault while it is down, without its"
    ]
    translation = grouped("sync_group_tracking_weight", one="track_script { chk }")
    assert mapping(keys(translation, "A")["track"], "chk")["weight"] == 5


def test_tracks_of_the_group():
    """Every member has them, with their weight."""
    translation = grouped("track_script { chk }", "track_interface { eth9 weight -3 }")
    for name in ("A", "B"):
        assert mapping(keys(translation, name)["track"]) == {
            "chk": {"script": ["/c"], "interval": "1s", "weight": 5},
            "eth9": {"interface": "eth9", "weight": -3},
        }
    assert "there is no vrrp_script `x`" in told(grouped("track_script { x }"), Outcome.CHANGED)[0][2]


def test_commands_of_the_group():
    """The first member that has no such command of its own runs it."""
    translation = grouped("notify_master /g", "notify /n", one="notify_master /a")
    assert keys(translation, "A") == {"sync_group": "G", "notify": {"active": ["/a"], "any": ["/n"]}}
    assert keys(translation, "B") == {"sync_group": "G", "notify": {"active": ["/g"]}}
    assert [why for _, _, why in told(translation, Outcome.CHANGED)] == [
        "is run for `B`, which changes with the whole group",
        (
            "is run for `A`, which changes with the whole group, with the arguments INSTANCE A instead of "
            "GROUP G"
        ),
    ]
    head = "vrrp_sync_group G {\ngroup { VI }\nnotify /g\n}\n"
    refused = told(translated(head + instance("notify /a")), Outcome.REFUSED)
    assert refused == [(3, 1, "each member has its own `notify`: have one command do both")]
    assert "needs a command" in told(grouped("notify"), Outcome.REFUSED)[0][2]


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("vrrp_sync_group G { group { VI X } }", "there is no vrrp_instance `X`"),
        (
            "vrrp_sync_group G { group { VI } }\nvrrp_sync_group H { group { VI } }",
            "`VI` is already in the group `G`",
        ),
        ("vrrp_sync_group G { group { VI }\nbogus { }\n}", "`bogus` is unknown"),
    ],
)
def test_refused(head: str, reason: str):
    """A group that keepalived would not take either."""
    assert any(reason in why for _, _, why in told(translated(f"{head}\n{instance()}"), Outcome.REFUSED))


def test_same_name_twice():
    """The second group is left out, as by keepalived, and its members are in none."""
    translation = grouped(group="A-B")
    second = translated(
        "vrrp_sync_group G {\ngroup { X }\n}\nvrrp_sync_group G {\ngroup { VI }\n}\n" + instance()
    )
    assert keys(translation, "A") == {"sync_group": "A-B"}
    reason = "there is already a vrrp_sync_group `G`, which counts: keepalived ignores this one, too"
    assert told(second, Outcome.CHANGED) == [(4, 17, reason)]
    assert keys(second, "VI") == {}


@pytest.mark.parametrize("lines", ["", "VI", "group { }\ntrack_script { chk }\nnotify /n"])
def test_without_members(lines: str):
    """Keepalived takes such a group away, with its commands and tracks, and so do we."""
    translation = translated(f"vrrp_sync_group G {{\n{lines}\n}}\n{CHECK}{instance()}")
    reason = "names no instance (`group { VI_1 VI_2 }`): keepalived removes it, and so does the appliance"
    assert (1, 1, reason) in told(translation, Outcome.CHANGED)
    assert told(translation, Outcome.REFUSED) == []
    assert keys(translation, "VI") == {}
