"""Rules that lead packets, in the network of this test process: flushed, guarded, and without a guard."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from appliance.core.linger import shared_address_rules
from appliance.core.linger.hops import Hops
from appliance.core.linger.ruleset import GUARD, RENEWED, TABLE, Elements
from appliance.core.linger.shared_address_rules import SharedElements
from appliance.core.linger.strays import StrayChanges
from appliance.linger.kernel_rules import ForwardingRules
from appliance.net.netlink.table_counters import TableCounters
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.wire.nftables.nftables_answer import ANSWER_LIMIT, NftablesObject

pytestmark = [pytest.mark.kernel, pytest.mark.needs("nft", root=True)]

_VIP = "192.0.2.100"
_ELEMENTS = Elements(
    addresses=(_VIP,),
    hops=Hops(direct={_VIP: "192.0.2.1"}, led={}),
    nodes=frozenset({bytes.fromhex("020000000001")}),
    settled=frozenset(),
)


class _OlderKernel(Nftables):
    """A kernel before 5.12, which knows no owners."""

    def run(self, script: str, *, limit: int = ANSWER_LIMIT) -> tuple[NftablesObject, ...]:
        """Refuse owners, as that kernel does."""
        if "flags owner" in script:
            raise NftablesError("Could not process rule: Operation not supported")
        return super().run(script, limit=limit)


def _nft(*arguments: str) -> str:
    return subprocess.run(["nft", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def make() -> Iterator[Callable[..., ForwardingRules]]:
    """Return a function that makes the rules by a connection; the network is empty before and after."""
    made: list[ForwardingRules] = []

    def by(connect: Callable[[], Nftables]) -> ForwardingRules:
        made.append(ForwardingRules(connect=connect))
        return made[-1]

    _nft("flush", "ruleset")
    yield by
    for each in made:
        each.close()
    _nft("flush", "ruleset")


def _lead(led: ForwardingRules) -> bool:
    return led.lead(4, entrances=(("lo", "lo"),), elements=_ELEMENTS, port=29446, longest=60.0)


def _leads(table: str) -> bool:
    return f"{_VIP} timeout 24s" in _nft("list", "map", "ip", table, "direct")


def test_elements_are_renewed_before_their_time_is_over(
    make: Callable[..., ForwardingRules], monkeypatch: pytest.MonkeyPatch
):
    """In the rules and in their guard; no sooner, as each renewal is a transaction of the kernel."""
    now, written = [0.0], list[str]()

    class Noting(Nftables):
        def run(self, script: str, *, limit: int = ANSWER_LIMIT) -> tuple[NftablesObject, ...]:
            written.append(script)
            return super().run(script, limit=limit)

    monkeypatch.setattr("time.monotonic", lambda: now[0])
    led = make(Noting)
    assert _lead(led)
    written.clear()
    for now[0], renewed in ((RENEWED - 0.1, []), (RENEWED, [GUARD, TABLE]), (RENEWED + 0.1, [])):
        assert _lead(led)
        assert [each.split()[3] for each in written] == renewed
        written.clear()


@pytest.mark.parametrize("connect", [Nftables, _OlderKernel])
@pytest.mark.parametrize("flush", ["flush ruleset", "delete table ip lb_linger", "flush table ip lb_linger"])
def test_a_flush_is_seen_and_mended(
    make: Callable[..., ForwardingRules], connect: Callable[[], Nftables], flush: str
):
    """By a look, with a guard and without: rules and elements are back when packets are led next."""
    led = make(connect)
    assert _lead(led)
    before = _nft("-s", "list", "chain", "ip", "lb_linger", "strangers")
    led.look()
    assert led.flushed == 0
    _nft(flush)
    led.look()
    assert led.flushed == 1
    assert _lead(led)
    assert _nft("-s", "list", "chain", "ip", "lb_linger", "strangers") == before
    assert _leads("lb_linger")


def test_a_flush_that_nobody_has_told_is_mended(make: Callable[..., ForwardingRules]):
    """The next change of elements finds the table gone, and makes it with them."""
    led = make(Nftables)
    assert _lead(led)
    _nft("flush", "ruleset")
    other = Elements(addresses=(_VIP,), hops=_ELEMENTS.hops, nodes=frozenset(), settled=frozenset())
    assert led.lead(4, entrances=(("lo", "lo"),), elements=other, port=29446, longest=60.0)
    assert led.flushed == 1
    assert _leads("lb_linger")


def test_a_flush_while_the_rules_are_made_is_mended(
    make: Callable[..., ForwardingRules], monkeypatch: pytest.MonkeyPatch
):
    """It is no error: the table that is gone again is counted, and made at the next time."""

    def flushed_meanwhile(*_: object, **__: object) -> Iterator[str]:
        _nft("flush", "ruleset")
        yield "add element ip lb_linger own { 1 }"

    led = make(Nftables)
    with monkeypatch.context() as patched:
        patched.setattr("appliance.linger.kernel_rules.named", flushed_meanwhile)
        assert not _lead(led)
    assert led.flushed == 1
    assert _lead(led)
    assert _leads("lb_linger")


def test_the_guard_is_ours_and_goes_with_us(make: Callable[..., ForwardingRules]):
    """No flush reaches it and nobody else can remove it; our end takes it away, and leaves the rules."""
    led = make(Nftables)
    _lead(led)
    assert led.unguarded == ""
    for change in ("flush ruleset", "delete table ip lb_linger_guard"):
        subprocess.run(["nft", change], check=False, capture_output=True)
        assert _leads("lb_linger_guard")
    led.look()
    _lead(led)
    led.close()
    assert "lb_linger_guard" not in _nft("list", "ruleset")
    assert "lb_linger {" in _nft("list", "ruleset")


def test_the_guard_follows_interfaces(make: Callable[..., ForwardingRules]):
    """It has the rules of those that are used now, and its elements again."""
    led = make(Nftables)
    _lead(led)
    entrances = (("lo", "lo"), ("eth9", "lo"))
    led.lead(4, entrances=entrances, elements=_ELEMENTS, port=29446, longest=120.0)
    assert "eth9" in _nft("list", "chain", "ip", "lb_linger_guard", "strangers")
    assert _leads("lb_linger_guard")


def test_a_kernel_without_owners_leads_all_the_same(make: Callable[..., ForwardingRules]):
    """Why there is no guard is known."""
    led = make(_OlderKernel)
    assert _lead(led)
    assert "not supported" in led.unguarded
    assert _leads("lb_linger")


_SHARED = "198.51.100.10"
_ENDS = ("203.0.113.5", 4711, _SHARED, 443)
_SHARING = replace(_ELEMENTS, shared=SharedElements(others={_SHARED: ("192.0.2.1",)}))


def test_owners_of_strays(make: Callable[..., ForwardingRules]):
    """They are put and removed; where the kernel has others than expected, it says so and changes nothing."""
    led = make(Nftables)
    led.lead(4, entrances=(), elements=_SHARING, port=29446, longest=60.0)
    put = StrayChanges(owned=((_ENDS, "192.0.2.1"),), nobodys=(_ENDS,))
    assert led.learn(4, put)
    assert not led.learn(4, StrayChanges(owned=((_ENDS, "192.0.2.9"),)))
    assert "192.0.2.1" in _nft("list", "map", "ip", "lb_linger", "owner")
    assert led.learn(4, StrayChanges(removed=(_ENDS,)))
    assert not led.learn(4, StrayChanges(removed=(_ENDS,)))
    for table in ("lb_linger", "lb_linger_guard"):  # else the guard would forward what is to be reset
        assert "4711" in _nft("list", "set", "ip", table, "nobody")


def test_strays_are_counted(make: Callable[..., ForwardingRules]):
    """By what became of them; while the table is gone nothing is known, and nothing fails."""
    led, counters = make(Nftables), TableCounters()
    led.lead(4, entrances=(), elements=_SHARING, port=29446, longest=60.0)
    names = {
        *map(shared_address_rules.counter, shared_address_rules.COUNTERS),
        shared_address_rules.NOTED_PACKETS,
    }
    assert counters.packets(TABLE) == {(4, name): 0 for name in names}
    assert counters.one(4, TABLE, shared_address_rules.NOTED_PACKETS) == 0
    assert counters.one(6, TABLE, shared_address_rules.NOTED_PACKETS) is None
    led.note("flush set ip lb_linger found")
    _nft("flush", "ruleset")
    assert counters.packets(TABLE) == {}
    assert counters.one(4, TABLE, shared_address_rules.NOTED_PACKETS) is None
    counters.close()
    led.note("flush set ip lb_linger found")
    assert not led.learn(4, StrayChanges(flushed=True))
