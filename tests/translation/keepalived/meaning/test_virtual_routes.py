"""`virtual_routes` and `virtual_rules`: what each line becomes, and what is said of it."""

import pytest
from support.translation.keepalived_files import instance, told, translated, virtual_ips

from appliance.model.document.document import read
from appliance.model.document.tree import Plain
from appliance.model.snapshot.virtual_router import VirtualRoute, VirtualRule
from appliance.translation.combined_files import load_together
from appliance.translation.translation import Outcome, Translation

pytestmark = pytest.mark.pure

C, I, R = Outcome.CHANGED, Outcome.IGNORED, Outcome.REFUSED  # noqa: E741  # one letter each in the table


def said(block: str, *lines: str) -> tuple[object, list[tuple[Outcome, str]]]:
    """Return what lines of a block add to the virtual IP, and the outcomes of lines that are not kept."""
    translation = translated(instance(f"{block} {{", *lines, "}"))
    given = virtual_ips(translation)["VI"]
    assert isinstance(given, dict)
    others = [(each.outcome, each.reason or "") for each in translation.lines if each.reason is not None]
    return given.get(block.removeprefix("virtual_"), []), others


def route(line: str) -> tuple[object, list[tuple[Outcome, str]]]:
    """Return what a route adds, and what is said of it."""
    return said("virtual_routes", line)


def rule(line: str) -> tuple[object, list[tuple[Outcome, str]]]:
    """Return what a rule adds, and what is said of it."""
    return said("virtual_rules", line)


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("10.1.0.0/16 via 192.0.2.1", {"to": "10.1.0.0/16", "via": "192.0.2.1"}),
        ("to 10.1.0.7 gw 192.0.2.1 dev eth1", {"to": "10.1.0.7/32", "via": "192.0.2.1", "interface": "eth1"}),
        ("192.0.2.0/24 dev eth1 src 192.0.2.10 scope link table 1",
         {"to": "192.0.2.0/24", "interface": "eth1", "source": "192.0.2.10", "table": 1}),
        ("default via 192.0.2.1 dev eth1 onlink table 1",
         {"to": "0.0.0.0/0", "via": "192.0.2.1", "interface": "eth1", "table": 1, "onlink": True}),
        ("src 192.0.2.10 to 10.1.0.0/16 via 192.0.2.1 scope global table main metric 7",
         {"to": "10.1.0.0/16", "via": "192.0.2.1", "source": "192.0.2.10", "table": 254, "metric": 7}),
        ("default via fd00::1 dev eth1 table 3 preference 7",
         {"to": "::/0", "via": "fd00::1", "interface": "eth1", "table": 3, "metric": 7}),
        ("default dev eth1", {"to": "0.0.0.0/0", "interface": "eth1"}),
        ("::/0 dev eth1 scope global table default", {"to": "::/0", "interface": "eth1", "table": 253}),
        ("fd00:1::/64 oif eth1 priority 5", {"to": "fd00:1::/64", "interface": "eth1", "metric": 5}),
        ("f::/16 dev eth1", {"to": "f::/16", "interface": "eth1"}),
    ],
)  # fmt: skip
def test_routes(line: str, keys: dict[str, Plain]) -> None:
    """The words of ip-route(8) that are here have our keys; without a word of their own they are kept."""
    assert route(line) == ([keys], [])


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("from 192.0.2.10/32 table 1 priority 100", {"from": "192.0.2.10/32", "table": 1, "priority": 100}),
        ("to fd00::/64 lookup 2 preference 5", {"to": "fd00::/64", "table": 2, "priority": 5}),
        ("from 192.0.2.10 to 10.0.0.0/8 table main priority 5",
         {"from": "192.0.2.10/32", "to": "10.0.0.0/8", "table": 254, "priority": 5}),
        ("from all to 10.0.0.0/8 table 2 priority 5", {"to": "10.0.0.0/8", "table": 2, "priority": 5}),
        ("from 192.0.2.10 to 0.0.0.0/0 table 2 priority 5",
         {"from": "192.0.2.10/32", "table": 2, "priority": 5}),
    ],
)  # fmt: skip
def test_rules(line: str, keys: dict[str, Plain]) -> None:
    """The words of ip-rule(8) that are here have our keys."""
    assert rule(line) == ([keys], [])


@pytest.mark.parametrize(
    ("line", "to", "outcome", "reason"),
    [
        (
            "10.1.2.0/16 via 192.0.2.1",
            "10.1.0.0/16",
            C,
            ("bits set beyond its prefix, and becomes 10.1.0.0/16"),
        ),
        ("10.1.0.0/16 dev eth1 scope global", "10.1.0.0/16", C, "scope link without a gateway"),
        ("10.1.0.0/16 via 192.0.2.1 no_track", "10.1.0.0/16", I, "`no_track`: a removed route or rule"),
        ("10.1.0.0/16 via 192.0.2.1 protocol static", "10.1.0.0/16", I, "`protocol`: routes of virtual IPs"),
    ],
)
def test_routes_that_are_not_quite_the_same(line: str, to: str, outcome: Outcome, reason: str) -> None:
    """They are there, and the reason says what is different."""
    (found,), ((how, why),) = route(line)
    assert (found["to"], how) == (to, outcome)
    assert reason in why


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("blackhole 10.1.0.0/16", "`blackhole` is not supported: to, via, gw, dev"),
        ("10.1.0.0/16 via 192.0.2.1 or 192.0.2.2", "`or` is not supported"),
        ("10.1.0.0/16 via", "`via` needs a value"),
        ("10.1.0.0/16 via router", "must be an address"),
        ("10.1.0.0/16 10.2.0.0/16 via 192.0.2.1", "`10.2.0.0/16` is a second `to`"),
        ("10.1.0.0/33 via 192.0.2.1", "a whole number from 0 to 32, not `33`"),
        ("10.1.0.0/16", "neither `via` nor `dev`"),
        ("via 192.0.2.1", "has no destination network"),
        ("10.1.0.0/16 via 192.0.2.1 table vips", "`vips` is a name in the machine's rt_tables"),
        ("10.1.0.0/16 via 192.0.2.1 table 0", "a whole number from 1"),
        ("10.1.0.0/16 via 192.0.2.1 metric low", "a whole number from 1"),
        ("10.1.0.0/16 via 192.0.2.1 scope here", "`here` is not a scope"),
        ("10.1.0.0/16 via fd00::1 dev eth1", "`via`: `fd00::1` is not of the family of `10.1.0.0/16`"),
        ("10.1.0.0/16 dev ethernet-number-1", "`interface`: must be the name of an interface"),
        ("10.1.0.0/16 dev eth1 onlink", "`onlink` means nothing without `via`"),
        ("10.9.0.0/16 via 192.0.2.2", "conflicts with `10.9.0.0/16 via 192.0.2.1`"),
        ("10.1.0.0/16 {\n}", "`10.1.0.0/16` takes no block in `virtual_routes`"),
    ],
)
def test_refused_routes(line: str, reason: str) -> None:
    """What is not here is refused in one line, and adds nothing; the other routes stay."""
    kept = "10.9.0.0/16 via 192.0.2.1"
    found, others = said("virtual_routes", kept, line)
    assert found == [{"to": "10.9.0.0/16", "via": "192.0.2.1"}]
    assert [reason in why for how, why in others if how is R] == [True], others


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("from 192.0.2.10 iif eth1 table 1", "`iif` is not supported: from, to, table"),
        ("192.0.2.10 table 1", "`192.0.2.10` is not supported"),
        ("table 1 priority 5", "neither `from` nor `to`"),
        ("from all table 1 priority 5", "neither `from` nor `to`"),
        ("from 192.0.2.10 priority 5", "has no `table`"),
        ("from 192.0.2.10 to fd00::1 table 1 priority 5", "are not of one family"),
        ("from 192.0.2.10 table 1 priority 40000", "a whole number from 1 to 32765"),
    ],
)
def test_refused_rules(line: str, reason: str) -> None:
    """Rules that ask for more than addresses, or say less than a rule needs, are refused."""
    found, others = rule(line)
    assert found == []
    assert [reason in why for how, why in others if how is R] == [True], others


def test_what_stands_there_twice_is_there_once() -> None:
    """The kernel has one of both, in keepalived too."""
    for block, line in (
        ("virtual_routes", "10.1.0.0/16 via 192.0.2.1"),
        ("virtual_rules", "to 10.1.0.0/16 table 1 priority 5"),
    ):
        found, others = said(block, line, line)
        assert isinstance(found, list)
        assert (len(found), others) == (1, [(I, "is listed already")])


def test_rules_without_a_priority() -> None:
    """Each has what keepalived 2.2.7 gives it: from 16384 down, over the file, for each version of IP."""
    lines = ["from 192.0.2.10 table 1", "to fd00::/64 table 1", "from all to 10.0.0.0/8 table 1"]
    text = instance("virtual_rules {", *lines, "}")
    other = text.replace("VI", "VJ").replace("_id 7", "_id 8").replace("192.0.2.10", "192.0.2.11")
    given = virtual_ips(translated(text + other))
    priorities = [[each["priority"] for each in given[name]["rules"]] for name in ("VI", "VJ")]
    assert priorities == [[16384, 16384, 16383], [16382, 16383, 16381]]
    assert "gets 16384, as in keepalived" in told(translated(text), C)[0][2]


OCTAVIA = """\
vrrp_instance 5d1fbdf5 {
  state MASTER
  interface eth1
  virtual_router_id 1
  priority 100
  nopreempt
  accept
  advert_int 1
  virtual_ipaddress { 192.0.2.10 }
  virtual_routes {
    192.0.2.0/24 dev eth1 src 192.0.2.10 scope link table 1
    default via 192.0.2.1 dev eth1 onlink table 1
    10.5.0.0/16 dev eth1 via 192.0.2.5 onlink table 1
  }
  virtual_rules {
    from 192.0.2.10/32 table 1 priority 100
  }
}
"""


def test_as_octavia_writes_them() -> None:
    """Routes and rules of an amphora are in the snapshot as they are in its file."""
    translation: Translation = translated(OCTAVIA)
    loaded = load_together(read("{}"), [translation], source="appliance.yaml", number=1)
    assert loaded.snapshot is not None, loaded.errors
    (router,) = loaded.snapshot.virtual_routers
    assert router.routes == (
        VirtualRoute(to="192.0.2.0/24", interface="eth1", source="192.0.2.10", table=1),
        VirtualRoute(to="0.0.0.0/0", via="192.0.2.1", interface="eth1", table=1, onlink=True),
        VirtualRoute(to="10.5.0.0/16", via="192.0.2.5", interface="eth1", table=1, onlink=True),
    )
    assert router.rules == (VirtualRule(source="192.0.2.10/32", table=1, priority=100),)
    assert translation.refused == ()
