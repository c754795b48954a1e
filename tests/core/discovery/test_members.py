"""The servers of a source over time."""

import pytest

from appliance.core.discovery.members import MemberChange, Members, Verdicts
from appliance.core.discovery.removal_guard import Hold
from appliance.model.snapshot.discovery import MASTERS, ApiAddress, Source, SourceKind
from appliance.model.snapshot.found_servers import FoundServer, FoundSource

pytestmark = pytest.mark.pure

MASTER_NODES = Source(kind=SourceKind.NODES, what=MASTERS)
INFRA = Source(kind=SourceKind.NODES, what="infra=")


def servers(names: str, network: str = "10.0.0") -> tuple[FoundServer, ...]:
    """Return a server for each letter."""
    return tuple(FoundServer(name=each, host=f"{network}.{ord(each) - ord('a')}") for each in names)


def members(names: str, source: Source = MASTER_NODES) -> Members:
    """Return members that were known before."""
    return Members(source, FoundSource(source=source, servers=servers(names)))


def decide(
    subject: Members, now: float, *, up: str = "", down: str = "", api: str = "", wall: float = 1000.0
) -> MemberChange | None:
    """Decide, with servers by letters."""
    verdicts = Verdicts(up=frozenset(up), down=frozenset(down))
    addresses = [ApiAddress(host=each.host, port=6443) for each in servers(api)]
    return subject.decide(now, verdicts=verdicts, api=addresses, wall=wall)


def names(subject: Members) -> str:
    """Return the names of the servers."""
    return "".join(each.name for each in subject.found.servers)


def test_the_first_list_of_an_empty_pool_is_taken_at_once():
    """There is nothing that a mistake could break."""
    subject = Members(MASTER_NODES, None)
    assert decide(subject, 0.0) is None
    subject.observe(servers("abc"), proxy=None, now=0.0)
    assert decide(subject, 0.0) == MemberChange(added=("a", "b", "c"), removed=(), moved=())
    assert subject.found.changed_at == 1000.0


def test_later_changes_rest_first():
    """A second after the last change of the list, and not before."""
    subject = members("abc")
    subject.observe(servers("abd"), proxy=None, now=0.0)
    assert subject.deadline == 1.0
    assert decide(subject, 0.9, up="abc") is None
    assert decide(subject, 1.0, up="abc") == MemberChange(added=("d",), removed=("c",), moved=())
    assert decide(subject, 2.0, up="abc") is None


def test_held_servers_go_when_others_agree():
    """The checks, or for masters the API servers' own list."""
    subject = members("abc")
    subject.observe(servers("c"), proxy=None, now=0.0)
    assert decide(subject, 1.0, up="abc") is None
    assert (subject.hold, subject.held) == (Hold.HALF, ("a", "b"))
    assert decide(subject, 2.0, up="abc", api="abc") is None
    assert decide(subject, 3.0, up="abc", api="c") == MemberChange(added=(), removed=("a", "b"), moved=())
    assert (subject.hold, subject.held) == (None, ())

    again = members("abc")
    again.observe(servers("c"), proxy=None, now=0.0)
    assert decide(again, 1.0, up="c", down="ab") is not None
    assert names(again) == "c"


def test_the_list_of_api_servers_counts_for_masters_that_it_knows():
    """Other Nodes are none, and a list of addresses that nobody here has says nothing."""
    infra = members("abc", INFRA)
    infra.observe(servers("c"), proxy=None, now=0.0)
    assert decide(infra, 1.0, up="abc", api="c") is None
    subject = members("abc")
    subject.observe(servers("c"), proxy=None, now=0.0)
    assert decide(subject, 1.0, up="abc", api="xyz") is None


def test_one_that_is_checked_for_the_first_time_is_not_let_go_on_a_guess():
    """After a start nobody knows yet who is up: the API alone may not take more than half."""
    subject = members("abc")
    subject.observe(servers("c"), proxy=None, now=0.0)
    assert decide(subject, 1.0) is None
    assert subject.held == ("a", "b")


def test_a_server_moves():
    """Its name stays, its address is another one."""
    subject = members("abc")
    subject.observe((*servers("ab"), *servers("c", "10.9.9")), proxy=None, now=0.0)
    assert decide(subject, 1.0, up="abc") == MemberChange(added=(), removed=(), moved=("c",))


def test_the_proxy_header_stays_where_nothing_is_known():
    """A right that is lost must not change what is sent to routers."""
    subject = members("abc", Source(kind=SourceKind.ROUTERS, what="default"))
    subject.observe(servers("abc"), proxy=True, now=0.0)
    assert decide(subject, 1.0, up="abc") == MemberChange(added=(), removed=(), moved=())
    assert subject.found.proxy is True
    subject.observe(servers("abc"), proxy=None, now=2.0)
    assert subject.deadline is None
