"""Which clients may connect: rules of a frontend and its backend as lists of networks, if equivalent.

HAProxy evaluates the rules of a level in order; the first match decides, and a client without a match gets
through. A client must pass each level: connection, session and content of the frontend, then content of the
backend. Here a client in `deny` may not connect, and if there is an `allow`, only clients in it may. Rules
without an exact equivalent are refused, and no client may connect then: no output is more open than the file.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.model.network_cover import Network, NetworkCover, numbered
from appliance.translation.haproxy.building.client_networks import (
    ClientNetworks,
    Condition,
    ConditionError,
    ListError,
)
from appliance.translation.haproxy.directives.rules import ACCEPTING
from appliance.translation.haproxy.directives.section import Level, Placed, Rule, Section
from appliance.translation.haproxy.text.report import Report
from appliance.translation.translation import Outcome

_OF_TCP: Final = (Level.CONNECTION, Level.SESSION, Level.CONTENT)
_OF_PAGE: Final = (Level.REQUEST, Level.STATS)
_WAITS: Final = "it accepts clients that are accepted anyway: no later rule rejects any"
_CHANGES_NOTHING: Final = "it has no effect: no later rule rejects a client that it accepts"
_SILENT: Final = "silent-drop"
_NOT_SILENT: Final = "the connection is closed, so the client does not wait for an answer"
_SAY_WHO_IS_REJECTED: Final = "write the clients to reject: `tcp-request connection reject if ...`"
_WHEN: Final = (("if",), ("unless",))
_ASKING: Final = frozenset({"auth", "redirect"})


@dataclass(slots=True, kw_only=True)
class Access:
    """The lists of a frontend."""

    allow: list[Placed[str]] = field(default_factory=list)
    deny: list[Placed[str]] = field(default_factory=list)

    def equals(self, other: "Access") -> bool:
        """Return whether the lists are equal, wherever they are written."""
        return all(
            [each.value for each in mine] == [each.value for each in theirs]
            for mine, theirs in ((self.allow, other.allow), (self.deny, other.deny))
        )


def access(
    section: Section, target: Section | None, networks: ClientNetworks, report: Report
) -> Access | None:
    """Return who may connect to a section with this target; None if lists cannot express it."""
    found = [
        _level(rules, owner, networks, report, Outcome.REFUSED) for rules, owner in _passed(section, target)
    ]
    return _all(found, report)


def page_access(
    section: Section, target: Section | None, networks: ClientNetworks, report: Report
) -> Access | None:
    """Return who may see the statistics of a section, by HTTP rules; None as in `access`."""
    owners = [section] if target is None or target is section else [section, target]
    found = [
        _level(rules, owner, networks, report, Outcome.CHANGED)
        for owner in owners
        for level in _OF_PAGE
        if (rules := owner.rules.get(level))
    ]
    return _all(found, report)


def both(one: Access, other: Access, report: Report) -> Access | None:
    """Return the clients that pass both; None, with a reported reason, if none does."""
    allow = common(one.allow, other.allow) if one.allow and other.allow else one.allow or other.allow
    if one.allow and not allow:
        reason = "no client could connect: other rules reject the clients accepted here"
        report.add(Outcome.REFUSED, other.allow[0].place, reason)
        return None
    return Access(allow=allow, deny=one.deny + other.deny)


def _passed(section: Section, target: Section | None) -> Iterator[tuple[Sequence[Rule], Section]]:
    for level in _OF_TCP:
        if rules := section.rules.get(level):
            yield rules, section
    if target is not None and target is not section and (rules := target.rules.get(Level.CONTENT)):
        yield rules, target


def _all(found: Iterable[Access | None], report: Report) -> Access | None:
    lists: Access | None = Access()
    for each in found:
        if each is None or lists is None:
            return None
        lists = both(lists, each, report)
    return lists


def _level(
    rules: Sequence[Rule], owner: Section, networks: ClientNetworks, report: Report, outcome: Outcome
) -> Access | None:
    """Return the lists of one level; if a rule has no equivalent, report it and return None."""
    lists = _Lists()
    understood = True
    for rule in rules:
        report.use(rule.line.number)
        try:
            lists.add(rule, networks.condition(rule, owner.acls))
            if rule.verb == _SILENT:
                report.add(Outcome.CHANGED, rule.line.place, _NOT_SILENT)
        except ConditionError as error:
            if isinstance(error, ListError) or not lists.puts_off(rule):
                report.add(outcome, rule.line.place, str(error))
                understood = False
    lists.end(report)
    return lists.access if understood else None


class _Lists:
    """The lists so far; the clients left are those that no rule has accepted or rejected yet.

    `_open` is whether any clients are left, `_rest` the only networks left, None for no such limit.
    """

    def __init__(self) -> None:
        self.access = Access()
        self._accepted: list[Placed[str]] = []
        self._accepting: list[Rule] = []
        self._unknown: list[Rule] = []
        self._networks = NetworkCover()
        self._starts: dict[int, list[int]] = {4: [], 6: []}
        self._rest: list[Placed[str]] | None = None
        self._open = True
        self._matters = False

    def add(self, rule: Rule, condition: Condition) -> None:
        found = [Placed(value=each, place=rule.line.place) for each in condition.networks]
        if not self._open:
            raise ConditionError("no connection reaches this rule: remove it")
        if rule.verb in ACCEPTING:
            self._accept(rule, condition, found)
        elif rule.verb in _ASKING:
            raise ConditionError("here `stats auth USER:PASSWORD` restricts who sees the page")
        elif self._unknown:
            before = self._unknown[0].line.texts
            raise ConditionError(
                f"this rejects clients that {shown(' '.join(before))} accepts, a rule that is not supported"
            )
        elif self._rest is not None:
            self._deny_rest(self._rest, found)
        elif found and not condition.negated:
            self._deny(found)
        else:
            self._allow(found)

    def puts_off(self, rule: Rule) -> bool:
        """Return whether an unknown rule can wait: it accepts, so only a later rejecting rule conflicts."""
        if rule.verb not in ACCEPTING or not self._open or rule.condition[:1] not in _WHEN:
            return False
        self._unknown.append(rule)
        return True

    def end(self, report: Report) -> None:
        for rule in self._unknown:
            report.add(Outcome.IGNORED, rule.line.place, _WAITS)
        for rule in self._accepting if not self._matters else ():
            report.add(Outcome.IGNORED, rule.line.place, _CHANGES_NOTHING)

    def _accept(self, rule: Rule, condition: Condition, found: list[Placed[str]]) -> None:
        if not found:
            self._open = False
            return
        if self._rest is not None:
            raise ConditionError(_SAY_WHO_IS_REJECTED)
        self._accepting.append(rule)
        if condition.negated:
            self._rest = found
            return
        self._accepted += found
        for each in found:
            network = numbered(each.value)
            self._networks.add(network)
            insort(self._starts[network.version], network.first)

    def _allow(self, found: list[Placed[str]]) -> None:
        """Reject all clients but those accepted so far, and the networks that later rules decide on."""
        if self.access.allow:
            raise ConditionError("an earlier rule sets who may connect: write one `acl` with all networks")
        if not self._accepted and not found:
            raise ConditionError("no client could connect: remove the frontend, or allow some clients")
        self.access.allow = self._accepted + found
        self._matters = True
        self._open = bool(found)

    def _deny_rest(self, rest: list[Placed[str]], found: list[Placed[str]]) -> None:
        """Reject the clients outside a rule that accepts all others, if no rule has accepted them."""
        if found:
            raise ConditionError(_SAY_WHO_IS_REJECTED)
        self._deny(rest)
        self._matters = True
        self._open = False

    def _deny(self, found: list[Placed[str]]) -> None:
        for each in found:
            if self._overlaps(numbered(each.value)):
                raise ConditionError(
                    f"{shown(each.value)} overlaps with networks accepted before: write the rejecting "
                    "rules first, without the accepted networks"
                )
        self.access.deny += found

    def _overlaps(self, network: Network) -> bool:
        """Return whether a network shares clients with the accepted ones: one is within the other."""
        starts = self._starts[network.version]
        at = bisect_left(starts, network.first)
        around_one = at < len(starts) and starts[at] <= network.last
        return around_one or self._networks.cover(network)


def common(one: Sequence[Placed[str]], other: Sequence[Placed[str]]) -> list[Placed[str]]:
    """Return the networks that both lists contain, or that lie within one of the other list."""
    ones, others = (NetworkCover(numbered(each.value) for each in some) for some in (one, other))
    found = [each for each in one if others.cover(numbered(each.value))]
    rest = ((each, numbered(each.value)) for each in other)
    return found + [each for each, network in rest if network not in ones and ones.cover(network)]
