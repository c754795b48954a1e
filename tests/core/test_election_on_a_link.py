"""Two and three routers on a link that delays, loses, repeats and reorders: what holds whatever happens."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.run.tiers import examples
from support.vrrp.elections import packed, terms
from support.vrrp.simulated_link import Link, Quality

from appliance.core.vrrp.election import ElectionSettings, SplitBrain
from appliance.core.vrrp.hand_over import LINGER

pytestmark = pytest.mark.pure

FAMILIES = {"4": "192.0.2.{}", "6": "fd00::{}"}
NAMES = "abc"
QUICK = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True, kw_only=True)
class Site:
    """Routers and their link; `advert` is the longest interval of any of them."""

    version: int
    adverts: tuple[float, ...]
    priorities: tuple[int, ...]
    preempts: tuple[bool, ...]
    delays: tuple[float, ...]
    members: tuple[str, ...]
    seed: int

    @property
    def advert(self) -> float:
        """The longest interval."""
        return max(self.adverts)

    @property
    def names(self) -> str:
        """Whose routers there are."""
        return NAMES[: len(self.priorities)]

    @property
    def hand_over(self) -> float:
        """How long a leaving router waits."""
        return 2 * self.advert + 1.0

    @property
    def down_interval(self) -> float:
        """The longest down interval of any of them, with any priority."""
        return 4 * self.advert

    def link(self, quality: Quality) -> Link:
        """Return the link with all routers started."""
        link = Link(seed=self.seed, quality=quality)
        for index, name in enumerate(self.names):
            peers = {member: FAMILIES[member].format(index + 1) for member in self.members}
            link.add(name, {member: self.terms(index, peers[member]) for member in self.members}, peers)
        return link

    def terms(self, index: int, own: str) -> ElectionSettings:
        """Return the terms of one router's member."""
        return terms(
            version=self.version,
            priority=self.priorities[index],
            advert=self.adverts[index],
            preempt=self.preempts[index],
            preempt_delay=self.delays[index],
            own=packed(own),
            hand_over=self.hand_over,
        )

    @property
    def settling(self) -> float:
        """How long the longest chain of planned things can take once the link is good."""
        return self.hand_over + max(self.delays) + 4 * self.down_interval + 4 * self.advert


@st.composite
def sites(draw: st.DrawFn, *, members: tuple[str, ...] = ("4",), count: int | None = None) -> Site:
    """Draw routers: both versions, any priorities, equal ones too, with and without preemption."""
    return draw(_sites(members=members, count=count, mixed=False))


@st.composite
def mixed_sites(draw: st.DrawFn) -> Site:
    """Draw routers that in version 3 differ in their intervals, too."""
    return draw(_sites(members=("4",), count=None, mixed=True))


@st.composite
def _sites(draw: st.DrawFn, *, members: tuple[str, ...], count: int | None, mixed: bool) -> Site:
    routers = count or draw(st.integers(2, 3))
    version = draw(st.sampled_from([2, 3]))
    each = st.just(1.0) if version == 2 else st.sampled_from([0.01, 0.1, 0.1, 1.0])
    advert = draw(each)
    priority = st.sampled_from([1, 90, 100, 100, 150, 254, 255])
    return Site(
        version=version,
        adverts=tuple(draw(each) if mixed else advert for _ in range(routers)),
        priorities=tuple(draw(priority) for _ in range(routers)),
        preempts=tuple(draw(st.booleans()) for _ in range(routers)),
        delays=tuple(draw(st.sampled_from([0.0, 0.0, 2.5])) for _ in range(routers)),
        members=members,
        seed=draw(st.integers(0, 2**32)),
    )


ACTIONS = (
    "fault",
    "recover",
    "set_priority",
    "leave",
    "move",
    "reclaim",
    "kill",
    "restart",
    "freeze",
    "thaw",
    "cut",
    "mend",
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(ACTIONS),
        st.integers(0, 2),
        st.sampled_from([1, 50, 100, 120, 200]),
        st.floats(0.0, 6.0),
    ),
    max_size=10,
)
Step = tuple[str, int, int, float]


def act(link: Link, site: Site, step: Step) -> None:
    """Let one thing happen to one router, if it can."""
    action, index, number, _ = step
    name = site.names[index % len(site.names)]
    other = site.names[(index + 1) % len(site.names)]
    router = link.routers[name]
    member = site.members[number % len(site.members)]
    if action == "cut":
        link.cut.add((name, other))
    elif action == "mend":
        link.cut.clear()
    elif not router.alive or router.gone:
        if action == "restart":
            link.restart(name)
    elif action == "thaw":
        link.thaw(name)
    elif action == "kill":
        link.kill(name)
    elif not router.frozen:
        deeds: dict[str, Callable[[], None]] = {
            "fault": lambda: link.fault(name, member),
            "recover": lambda: link.recover(name),
            "set_priority": lambda: link.set_priority(name, member, number),
            "leave": lambda: link.leave(name),
            "move": lambda: link.move(name),
            "reclaim": lambda: link.reclaim(name),
            "freeze": lambda: link.freeze(name),
            "restart": lambda: None,
        }
        deeds[action]()


def play(link: Link, site: Site, steps: list[Step]) -> None:
    """Let things happen, some intervals apart."""
    for step in steps:
        act(link, site, step)
        link.run(step[3] * site.advert)


def calm(link: Link, site: Site) -> None:
    """Make the link good and all routers well, and let them settle."""
    link.quality = Quality(longest=min(site.adverts) / 20)
    link.cut.clear()
    for name in site.names:
        if not link.routers[name].alive:
            link.restart(name)
        link.thaw(name)
    link.run(site.hand_over + site.advert)
    for name in site.names:
        if link.routers[name].gone:
            link.restart(name)
        link.recover(name)
    link.run(site.settling)


def check_one_active(link: Link, site: Site) -> None:
    """Assert that one router, and always the same one, has held everything for the last intervals."""
    since = link.now - 2 * site.advert
    owners = {holders for member in site.members for _, _, holders in link.spans(member, since=since)}
    assert len(owners) == 1
    (owner,) = owners
    assert len(owner) == 1


def bad(site: Site) -> Quality:
    """Return a link on which packets overtake each other by intervals."""
    return Quality(longest=2 * min(site.adverts), loss=0.4, repeat=0.2, lateness=min(site.adverts) / 2)


@QUICK
@given(mixed_sites(), STEPS)
def test_one_active_when_the_link_is_good(site: Site, steps: list[Step]):
    """Whatever has happened, once the link is good one router, and only one, holds the addresses."""
    link = site.link(bad(site))
    play(link, site, steps)
    calm(link, site)
    check_one_active(link, site)


@QUICK
@given(sites(members=("4", "6")), STEPS)
def test_sync_groups_hold_both_or_none(site: Site, steps: list[Step]):
    """The members of a sync group end on the same router, whatever has happened to either."""
    link = site.link(bad(site))
    play(link, site, steps)
    calm(link, site)
    check_one_active(link, site)


@QUICK
@given(sites(), STEPS)
def test_best_one_is_active_where_all_preempt(site: Site, steps: list[Step]):
    """Where every router preempts and none was sent away, the one of the highest priority is active."""
    site = replace(site, preempts=(True,) * len(site.preempts))
    link = site.link(bad(site))
    play(link, site, steps)
    calm(link, site)
    for name in site.names:
        link.reclaim(name)
    link.run(site.settling)
    priorities = {name: link.routers[name].group.members["4"].priority for name in site.names}
    (holder,) = link.holders("4")
    assert priorities[holder] == max(priorities.values())


@QUICK
@given(mixed_sites(), STEPS)
def test_never_none_for_longer_than_the_down_interval(site: Site, steps: list[Step]):
    """While one router is well the addresses are never unheld for longer than a down interval and a delay."""
    quality = bad(site)
    link = site.link(quality)
    play(link, site, steps)
    link.run(2 * site.down_interval)
    limit = site.down_interval + quality.longest + 2 * quality.lateness
    assert link.longest_gap("4") <= limit


# One thing at a time, on a good link


def settled(site: Site, *, delay: float = 0.002) -> tuple[Link, str]:
    """Return a good link that has been quiet for a while, and who is active."""
    link = site.link(Quality(shortest=delay / 100, longest=delay))
    link.run(site.settling)
    (active,) = link.holders("4")
    return link, active


def check_made_before_broken(link: Link, site: Site, *, since: float, overlap: float) -> None:
    """Assert that somebody held the addresses at every instant, and several only for so long altogether."""
    spans = [span for member in site.members for span in link.spans(member, since=since)]
    assert all(holders for _, _, holders in spans)
    assert sum(end - begin for begin, end, holders in spans if len(holders) > 1) <= overlap


@QUICK
@given(site=sites(), stop=st.booleans())
def test_stop_and_move_break_nothing(*, site: Site, stop: bool):
    """While an active leaves, somebody holds the addresses at every instant, and two only for a moment."""
    delay = min(site.adverts) / 1000
    link, active = settled(site, delay=delay)
    began = link.now
    (link.leave if stop else link.move)(active)
    link.run(site.hand_over + site.settling)
    assert link.holders("4") != {active}
    check_made_before_broken(link, site, since=began, overlap=LINGER + 4 * delay)


@QUICK
@given(site=sites(members=("4", "6")), stop=st.booleans())
def test_stop_and_move_of_a_sync_group_break_nothing(*, site: Site, stop: bool):
    """Both members stay until both have a successor."""
    delay = min(site.adverts) / 1000
    link, active = settled(site, delay=delay)
    began = link.now
    (link.leave if stop else link.move)(active)
    link.run(site.hand_over + site.settling)
    assert link.holders("4") == link.holders("6") != {active}
    check_made_before_broken(link, site, since=began, overlap=2 * (LINGER + 4 * delay))


@QUICK
@given(sites(count=3))
def test_preemption_breaks_nothing(site: Site):
    """A better router that comes back takes the addresses before the other one drops them."""
    site = replace(site, preempts=(True,) * 3, priorities=(100, 150, 200))
    delay = min(site.adverts) / 1000
    link, active = settled(site, delay=delay)
    assert active == "c"
    link.kill(active)
    link.run(site.settling)
    assert link.holders("4") == {"b"}
    began = link.now
    link.restart(active)
    link.run(site.settling)
    assert link.holders("4") == {active}
    check_made_before_broken(link, site, since=began, overlap=2 * delay)


@QUICK
@given(sites())
def test_quiet_link_sees_no_transition(site: Site):
    """Late wake-ups of half an interval move nothing."""
    link, active = settled(site)
    link.quality = Quality(longest=min(site.adverts) / 4, lateness=min(site.adverts) / 2)
    before = {name: len(link.routers[name].entered()) for name in site.names}
    sent = link.sent
    link.run(50 * site.advert)
    assert link.holders("4") == {active}
    assert before == {name: len(link.routers[name].entered()) for name in site.names}
    assert link.sent - sent <= 50 * site.advert / min(site.adverts) + 1


@QUICK
@given(sites(), st.integers(1, 20))
def test_stopped_process_heals_within_an_interval(site: Site, intervals: int):
    """A process that was stopped for some intervals and goes on leaves one active after another interval."""
    link, active = settled(site)
    link.freeze(active)
    link.run(intervals * site.advert)
    link.thaw(active)
    link.run(site.advert + 0.01)
    assert len(link.holders("4")) == 1


@QUICK
@given(sites())
def test_isolated_routers_heal_within_an_interval(site: Site):
    """When routers that were all active hear each other again, one is left after an interval."""
    link, _ = settled(site)
    link.cut = {(one, other) for one in site.names for other in site.names}
    link.run(2 * site.down_interval)
    assert link.holders("4") == set(site.names)
    link.cut.clear()
    link.run(site.advert + 0.01)
    assert len(link.holders("4")) == 1
    assert any(
        isinstance(effect, SplitBrain) for router in link.routers.values() for _, _, effect in router.effects
    )


@QUICK
@given(site=sites(count=2), restarted=st.booleans())
def test_degraded_active_is_relieved_without_preemption(*, site: Site, restarted: bool):
    """An active whose checks fail loses to a better router though nobody preempts, old or just started."""
    site = replace(site, preempts=(False, False), priorities=(150, 100), delays=(0.0, 0.0))
    link, active = settled(site)
    assert active == "a"
    if restarted:
        link.kill("b")
        link.set_priority("a", "4", 90)
        link.run(site.settling)
        link.restart("b")
        link.set_priority("a", "4", 80)
    else:
        link.set_priority("a", "4", 90)
    link.run(site.down_interval + 4 * site.advert)
    assert link.holders("4") == {"b"}


@QUICK
@given(sites(count=2))
def test_degraded_active_stays_where_nobody_is_better(site: Site):
    """An offer to a worse router costs nothing: the active holds the addresses all the time."""
    site = replace(site, preempts=(False, False), priorities=(150, 100))
    delay = min(site.adverts) / 1000
    link, _ = settled(site, delay=delay)
    began = link.now
    link.set_priority("a", "4", 120)
    link.run(site.settling)
    assert link.holders("4") == {"a"}
    assert all("a" in holders for _, _, holders in link.spans("4", since=began))
    check_made_before_broken(link, site, since=began, overlap=3 * delay)


@QUICK
@given(site=sites(count=2), better=st.booleans())
def test_returning_router_takes_nothing_without_preemption(*, site: Site, better: bool):
    """Without preemption a healthy active stays, whoever comes back."""
    priorities = (150, 200 if better else 150)
    site = replace(site, preempts=(False, False), priorities=priorities)
    link, active = settled(site)
    link.fault(active, "4")
    link.run(site.settling)
    (successor,) = link.holders("4")
    assert successor != active
    link.recover(active)
    link.run(site.settling)
    assert link.holders("4") == {successor}


@QUICK
@given(sites(count=2))
def test_sync_group_stays_together_when_one_family_is_cut(site: Site):
    """A router that hears the active in one family claims in neither."""
    site = replace(site, members=("4", "6"), priorities=(150, 100))
    link, active = settled(site)
    began = link.now
    link.cut_members = {"6"}
    link.run(site.settling)
    held = {holders for member in site.members for _, _, holders in link.spans(member, since=began)}
    assert held == {frozenset({active})}


@QUICK
@given(st.integers(0, 2**32), st.sampled_from([2, 3]))
def test_sync_groups_with_crossed_addresses_heal(seed: int, version: int):
    """At equal priorities one family's address decides for both, though the other one's is the other way."""
    site = Site(
        version=version,
        adverts=(1.0, 1.0),
        priorities=(100, 100),
        preempts=(True, True),
        delays=(0.0, 0.0),
        members=("4", "6"),
        seed=seed,
    )
    link = Link(seed=seed, quality=Quality())
    for name, peers in (("a", {"4": "192.0.2.2", "6": "fd00::1"}), ("b", {"4": "192.0.2.1", "6": "fd00::2"})):
        link.add(name, {member: site.terms(0, peers[member]) for member in peers}, peers)
    link.cut = {("a", "b"), ("b", "a")}
    link.run(site.settling)
    link.cut.clear()
    link.run(site.advert + 0.01)
    assert link.holders("4") == link.holders("6") == {"a"}
