"""Servers of a virtual server: how one is chosen, with which weight, and what is left out."""

import pytest
from support.translation.keepalived_files import mapping, told, translated
from support.translation.virtual_servers import FIRST, pool, real_server, refusals, virtual_server

from appliance.model.document.tree import Plain
from appliance.translation.translation import Outcome, Translation

pytestmark = pytest.mark.pure

C, I = Outcome.CHANGED, Outcome.IGNORED  # noqa: E741  # as the outcomes are called


def servers(*blocks: str, lines: tuple[str, ...] = ("lvs_sched wrr",)) -> Translation:
    """Return the translation of a virtual server with these servers."""
    return translated(virtual_server(*lines, servers="\n".join(blocks)))


def weights(*given: int, lines: tuple[str, ...] = ("lvs_sched wrr",)) -> list[Plain]:
    """Return the weights of servers that have these."""
    blocks = [real_server(f"weight {each}", address=f"192.0.2.{at}") for at, each in enumerate(given, 1)]
    found = mapping(pool(servers(*blocks, lines=lines)), "servers")
    return [mapping(each).get("weight", 1) for each in found.values()]


@pytest.mark.parametrize(
    ("lines", "keys", "outcome", "reason"),
    [
        (("lvs_sched rr",), {}, None, ""),
        (("lvs_sched wrr",), {}, None, ""),
        (("lvs_sched lc",), {}, C, "servers take turns"),
        (("lb_algo wlc",), {}, C, "servers take turns"),
        (("lvs_sched twos",), {"balance": "random"}, C, "at random"),
        (("lvs_sched sh", "sh-fallback"), {"balance": "source"}, C, "with a hash other than IPVS's"),
        (
            ("lvs_sched mh", "mh-port"),
            {"balance": "hash", "hash_on": ["source", "source-port"]},
            C,
            "with a hash other",
        ),
        (("persistence_timeout",), {"balance": "source"}, C, "not for a set time"),
        (
            ("lvs_sched sh", "sh-port", "persistence_timeout 50"),
            {"balance": "source"},
            C,
            "not for a set time",
        ),
        (("persistence_granularity 255.255.255.0",), {"balance": "source"}, C, "may have different servers"),
        (
            ("persistence_granularity 255.255.255.255",),
            {"balance": "source"},
            I,
            ("clients are treated individually"),
        ),
    ],
)
def test_how_a_server_is_chosen(
    lines: tuple[str, ...], keys: dict[str, Plain], outcome: Outcome | None, reason: str
):
    """The kernel's algorithms stand for IPVS's, and what differs is told."""
    translation = translated(virtual_server(*lines))
    found = pool(translation)
    assert {key: found[key] for key in ("balance", "hash_on") if key in found} == keys
    said = told(translation, *([outcome] if outcome else [I]))
    assert any(reason in why for _, _, why in said) if outcome else said == []


def test_the_usual_scheduler():
    """Where none is named, keepalived takes `wlc`, and the first line says so."""
    text = "virtual_server 192.0.2.150 6443 {\nprotocol TCP\n" + real_server("weight 3") + "\n}\n"
    translation = translated(text)
    assert mapping(pool(translation), "servers", FIRST)["weight"] == 3
    assert any(
        "`wlc`, which is keepalived's default" in why for line, _, why in told(translation, C) if line == 1
    )


@pytest.mark.parametrize(
    ("given", "lines", "found"),
    [
        ((3, 1, 0), ("lvs_sched wrr",), [3, 1, 0]),
        ((3, 1, 0), ("lvs_sched rr",), [1, 1, 0]),
        ((3, 1), ("lvs_sched lc",), [1, 1]),
        ((1000, 500, 1, 0), ("lvs_sched wrr",), [256, 128, 1, 0]),
    ],
)
def test_weights(given: tuple[int, ...], lines: tuple[str, ...], found: list[int]):
    """They count where the scheduler counts them, in proportion, and 0 takes no connections."""
    assert weights(*given, lines=lines) == found


def test_the_weight_of_all():
    """A server without a weight has that of the virtual server."""
    translation = servers(real_server(), lines=("lvs_sched wrr", "weight 7"))
    assert mapping(pool(translation), "servers", FIRST)["weight"] == 7
    assert told(servers(real_server("weight -1")), C)[1][2].endswith(
        "keepalived ignores it, and so does the appliance"
    )


def test_servers_that_keepalived_leaves_out():
    """The other version of IP, and what stands there twice: told, and not written."""
    translation = servers(
        real_server(), real_server("weight 9"), real_server("weight 2", address="2001:db8::1 80")
    )
    assert [*mapping(pool(translation), "servers")] == [FIRST]
    reasons = [why for _, _, why in told(translation, C)]
    assert [each.partition(": ")[2] for each in reasons[1:]] == [
        "the same server is listed above",
        "its address is of the other version of IP",
    ]
    assert refusals(translation) == []


def test_names_that_are_like_each_other():
    """Each server has its own name."""
    translation = translated(
        virtual_server(
            address="2001:db8::9 80",
            servers="\n".join(real_server(address=each) for each in ("2001:db8::1:2 80", "2001:db8:1::2 80")),
        )
    )
    found = mapping(pool(translation, "2001-db8-9-80"), "servers")
    assert [*found] == ["2001-db8-1-2-80", "2001-db8-1-2-80-2"]


@pytest.mark.parametrize(
    ("quorum", "outcome", "reason"),
    [
        ("quorum 1", None, ""),
        ("quorum 2", C, "below the quorum the servers that are up continue"),
        ("alpha", None, ""),
    ],
)
def test_sorry_server(quorum: str, outcome: Outcome | None, reason: str):
    """It is a backup without a check; that it comes only when none is up is told."""
    translation = servers(
        real_server(), lines=("sorry_server 192.0.2.99", "sorry_server_lvs_method NAT", quorum)
    )
    sorry = mapping(pool(translation), "servers", "sorry-192.0.2.99-6443")
    assert sorry == {"address": "192.0.2.99:6443", "backup": True, "check": False}
    assert any(reason in why for _, _, why in told(translation, C)) or outcome is None


@pytest.mark.parametrize(
    ("outer", "first", "second", "found"),
    [
        ((), "alpha", "alpha", None),
        (("inhibit_on_failure",), "alpha", "alpha", "keep"),
        ((), "inhibit_on_failure", "inhibit_on_failure on", "keep"),
        ((), "inhibit_on_failure", "inhibit_on_failure off", None),
        ((), "inhibit_on_failure", "inhibit_on_failure maybe", None),
    ],
)
def test_inhibit_on_failure(outer: tuple[str, ...], first: str, second: str, found: str | None):
    """Sessions stay with a server whose weight becomes 0, if it is so for all of them."""
    blocks = (real_server(first), real_server(second, address="192.0.2.12"))
    translation = servers(*blocks, lines=outer)
    assert pool(translation).get("on_down") == found
    differs = any("if all servers of a pool set this" in why for _, _, why in told(translation, C))
    assert differs is (found is None and first != second)


@pytest.mark.parametrize(
    ("line", "outcome", "reason"),
    [
        ("lvs_method NAT", None, ""),
        ("uthreshold 0", None, ""),
        ("lthreshold 5", I, "belongs to `uthreshold`"),
        ("notify_down '/bin/tell it'", C, "`notify` in the appliance's YAML"),
        ("snmp_name x", I, "no SNMP"),
    ],
)
def test_other_lines(line: str, outcome: Outcome | None, reason: str):
    """Each has its word."""
    translation = servers(real_server(line))
    assert refusals(translation) == []
    assert outcome is None or any(reason in why for _, _, why in told(translation, outcome))


@pytest.mark.parametrize(
    ("line", "reason"), [("lvs_method DR", "with DR servers answer"), ("uthreshold 9", "needs a proxy")]
)
def test_what_one_server_cannot_have_leaves_all_out(line: str, reason: str):
    """With a server less, or one without its limit, the others would carry more than the file has it."""
    [one] = refusals(servers(real_server(), real_server(line, address="192.0.2.12")))
    assert (one.place.line, reason in (one.reason or "")) == (1, True)


def test_a_server_on_loopback_is_refused():
    """IPVS serves such a one itself; packets that nftables translates do not reach it."""
    [one] = refusals(servers(real_server(), lines=("sorry_server 127.0.0.1 80",)))
    assert "`sorry_server`, line 5: packets from other hosts do not reach `127.0.0.1`" in (one.reason or "")
