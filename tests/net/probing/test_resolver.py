"""Names to addresses: asked again in time, earlier when checks fail, and the last good address is kept."""

from collections.abc import Iterator

import gevent
import pytest
from gevent.event import Event

from appliance.net.probing.resolver import Resolver, lookup

pytestmark = pytest.mark.sockets

PATIENCE = 10.0


class Zone:
    """A name service: what it answers can change, and it can be out of order."""

    def __init__(self, **addresses: list[str]) -> None:
        self.addresses = addresses
        self.broken = False
        self.asked = 0

    def __call__(self, name: str) -> list[str]:
        """Answer like getaddrinfo."""
        self.asked += 1
        gevent.sleep(0)
        if self.broken or name not in self.addresses:
            raise OSError(-2, "Name or service not known")
        return self.addresses[name]


class Changes:
    """Collects what a resolver reports, and lets a test wait for it."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []
        self._more = Event()

    def __call__(self, name: str, addresses: tuple[str, ...]) -> None:
        """Take a report."""
        self.seen.append((name, *addresses))
        self._more.set()

    def wait_for(self, count: int) -> list[tuple[str, ...]]:
        """Return the reports as soon as there are so many."""
        with gevent.Timeout(PATIENCE):
            while len(self.seen) < count:
                self._more.clear()
                self._more.wait()
        return self.seen


@pytest.fixture
def changes() -> Changes:
    """Return an empty collector."""
    return Changes()


@pytest.fixture
def zone() -> Zone:
    """Return a name service that knows one master."""
    return Zone(master=["10.0.0.1"])


@pytest.fixture
def resolver(changes: Changes, zone: Zone) -> Iterator[Resolver]:
    """Resolver that asks the zone every few milliseconds."""
    subject = Resolver(changes, ask=zone, refresh=0.02, retry=0.01)
    yield subject
    subject.close()


def turn_until_asked(zone: Zone, more: int) -> None:
    """Let the resolver ask so many times more."""
    wanted = zone.asked + more
    with gevent.Timeout(PATIENCE):
        while zone.asked < wanted:
            gevent.sleep(0.005)
    gevent.sleep(0.005)


def test_a_literal_address_is_never_asked_for(resolver: Resolver, zone: Zone):
    """An address is its own answer."""
    resolver.want(["10.0.0.1", "2001:db8::1"])
    assert resolver.address("2001:db8::1", timeout=0.0) == "2001:db8::1"
    assert (resolver.problem("10.0.0.1"), zone.asked) == ("", 0)
    resolver.ask_soon("10.0.0.1")


def test_the_first_answer_is_waited_for(resolver: Resolver, changes: Changes):
    """A check that comes before the first answer waits for it."""
    resolver.want(["master"])
    assert resolver.address("master", timeout=PATIENCE) == "10.0.0.1"
    assert changes.seen == [("master", "10.0.0.1")]


def test_a_name_without_an_address_has_a_reason(resolver: Resolver):
    """The first failure ends the wait, with the name service's own words to show."""
    resolver.want(["nobody"])
    assert resolver.address("nobody", timeout=PATIENCE) == ""
    assert resolver.unresolved() == {"nobody": "Name or service not known"}
    assert resolver.problem("nobody") == "Name or service not known"


def test_a_new_address_is_reported(resolver: Resolver, zone: Zone, changes: Changes):
    """A name that moves is noticed at the next refresh."""
    resolver.want(["master"])
    changes.wait_for(1)
    zone.addresses["master"] = ["10.0.0.2"]
    assert changes.wait_for(2)[-1] == ("master", "10.0.0.2")
    assert resolver.address("master", timeout=0.0) == "10.0.0.2"


def test_rotated_answers_move_nothing(resolver: Resolver, zone: Zone, changes: Changes):
    """As long as the address is among the answers it stays; another order of them is no news."""
    resolver.want(["master"])
    changes.wait_for(1)
    zone.addresses["master"] = ["10.0.0.2", "10.0.0.1"]
    changes.wait_for(2)
    zone.addresses["master"] = ["10.0.0.1", "10.0.0.2"]
    turn_until_asked(zone, 3)
    assert changes.seen == [("master", "10.0.0.1"), ("master", "10.0.0.1", "10.0.0.2")]


def test_all_addresses_of_one_version_of_ip_are_told(resolver: Resolver, zone: Zone, changes: Changes):
    """A machine with both versions is no two servers; an address that is gone is told too."""
    zone.addresses["master"] = ["10.0.0.1", "2001:db8::1", "10.0.0.2", "10.0.0.1", "2001:db8::2"]
    resolver.want(["master"])
    assert changes.wait_for(1) == [("master", "10.0.0.1", "10.0.0.2")]
    zone.addresses["master"] = ["10.0.0.1", "2001:db8::1"]
    assert changes.wait_for(2)[-1] == ("master", "10.0.0.1")


def test_a_known_address_is_the_start(resolver: Resolver, zone: Zone, changes: Changes):
    """What an earlier process had is used at once, and stays as long as it is among the answers."""
    zone.addresses["master"] = ["10.0.0.2", "10.0.0.1"]
    resolver.want(["master"], known={"master": ("10.0.0.1",), "another": ("10.0.0.7",)})
    assert resolver.address("master", timeout=0.0) == "10.0.0.1"
    turn_until_asked(zone, 3)
    assert resolver.addresses() == {"master": ("10.0.0.1", "10.0.0.2")}
    assert changes.seen == [("master", "10.0.0.1", "10.0.0.2")]
    zone.addresses["master"] = ["10.0.0.2"]
    assert changes.wait_for(2)[-1] == ("master", "10.0.0.2")


def test_a_followed_name_is_not_begun_anew(resolver: Resolver, changes: Changes):
    """What is known from elsewhere says nothing about a name that is followed already."""
    resolver.want(["master"])
    changes.wait_for(1)
    resolver.want(["master"], known={"master": ("10.0.0.9",)})
    assert resolver.address("master", timeout=0.0) == "10.0.0.1"


@pytest.mark.parametrize("answer", [None, []])
def test_the_last_good_address_is_kept(
    resolver: Resolver, zone: Zone, changes: Changes, answer: list[str] | None
):
    """A name service that fails, or knows the name no more, takes no server away."""
    resolver.want(["master"])
    changes.wait_for(1)
    zone.broken = answer is None
    zone.addresses["master"] = answer or []
    turn_until_asked(zone, 3)
    assert resolver.address("master", timeout=0.0) == "10.0.0.1"
    assert resolver.unresolved().keys() == {"master"}
    zone.broken, zone.addresses["master"] = False, ["10.0.0.1"]
    turn_until_asked(zone, 2)
    assert resolver.unresolved() == {}


def test_a_failed_check_asks_before_the_next_refresh(zone: Zone, changes: Changes):
    """When a server fails, its name is asked for again without waiting for the refresh."""
    subject = Resolver(changes, ask=zone, refresh=3600.0, retry=0.0)
    subject.want(["master"])
    changes.wait_for(1)
    zone.addresses["master"] = ["10.0.0.9"]
    subject.ask_soon("master")
    assert changes.wait_for(2)[-1] == ("master", "10.0.0.9")
    subject.close()


def test_a_name_that_is_not_wanted_is_forgotten(resolver: Resolver, zone: Zone, changes: Changes):
    """Names that no server has any more are not asked for."""
    resolver.want(["master"])
    changes.wait_for(1)
    resolver.want(["10.0.0.7"])
    gevent.sleep(0.05)
    asked = zone.asked
    gevent.sleep(0.05)
    assert zone.asked == asked
    assert resolver.address("master", timeout=0.0) == "master"


def test_the_system_knows_localhost():
    """The default is the system's own resolver; an impossible name is an error, not a crash."""
    assert set(lookup("localhost")) <= {"127.0.0.1", "::1"}
    subject = Resolver(Changes())
    subject.want(["x" * 70])
    assert subject.address("x" * 70, timeout=PATIENCE) == ""
    subject.close()
