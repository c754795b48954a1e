"""Who may connect: `acl` and `tcp-request connection` as lists of networks, where they say exactly that.

HAProxy goes through the rules, and the first one that fits decides; who fits none may connect. With us who is
in `deny` may not, and if there is an `allow`, only those in it may. What these two cannot say exactly is
refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from appliance.model.config.values.addresses import network
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.building.values import Build, Placed
from appliance.translation.haproxy.directives.section import Rule, Section
from appliance.translation.haproxy.text.line import Line
from appliance.translation.translation import Outcome

_FLAGS: Final = frozenset({"-m", "ip", "-n", "--"})
_Network = IPv4Network | IPv6Network

_ORS: Final = frozenset({"or", "||"})


@dataclass(slots=True, kw_only=True)
class Access:
    """The lists of a frontend."""

    allow: list[Placed[str]] = field(default_factory=list)
    deny: list[Placed[str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """Networks that a rule is about, or all but them; no networks at all is everybody."""

    networks: tuple[str, ...]
    negated: bool


class _ConditionError(Exception):
    """A condition that is not one of networks."""


def access(section: Section, build: Build) -> Access:
    """Return the lists of a section; its rules and `acl` lines get their outcomes."""
    lists = _Lists()
    used: set[str] = set()
    for rule in section.access:
        try:
            condition = _condition(rule, section.acls, used)
            lists.add(rule, condition)
        except _ConditionError as error:
            build.report.say(Outcome.REFUSED, rule.line.place, str(error))
    lists.end(build)
    _tell_acls(section, used, build)
    return lists.access


class _Lists:
    """The lists so far. `_open` is whether who fits no rule so far is still undecided."""

    def __init__(self) -> None:
        self.access = Access()
        self._accepted: list[Placed[str]] = []
        self._covering: set[_Network] = set()
        self._within: set[_Network] = set()
        self._open = True

    def add(self, rule: Rule, condition: _Condition) -> None:
        place = rule.line.place
        found = [Placed(value=each, place=place) for each in condition.networks]
        if not self._open:
            raise _ConditionError("no connection comes to this rule: leave it out")
        if rule.verb == "accept":
            self._accept(condition, found)
        elif not condition.networks:
            self._close()
        elif condition.negated:
            self._accepted += found
            self._close()
        else:
            self._deny(found)

    def end(self, build: Build) -> None:
        if self._open and self._accepted:
            place = self._accepted[0].place
            reason = "no rule behind it rejects anybody whom it accepts: it changes nothing"
            build.report.say(Outcome.IGNORED, place, reason)

    def _accept(self, condition: _Condition, found: list[Placed[str]]) -> None:
        if not condition.networks:
            self._open = False
        elif condition.negated:
            raise _ConditionError("write who is rejected: `tcp-request connection reject if ...`")
        else:
            self._accepted += found
            for each in found:
                network = ip_network(each.value)
                self._within.add(network)
                self._covering.update(_around(network))

    def _close(self) -> None:
        """Nobody else may connect: those accepted so far are the `allow` list."""
        if not self._accepted:
            raise _ConditionError("nobody could connect: leave the frontend out, or say who may")
        self.access.allow = self._accepted
        self._open = False

    def _deny(self, found: list[Placed[str]]) -> None:
        for each in found:
            if self._overlaps(ip_network(each.value)):
                raise _ConditionError(
                    f"{shown(each.value)} overlaps with what was accepted before: write the rejecting "
                    "rules first, without what is accepted"
                )
        self.access.deny += found

    def _overlaps(self, network: _Network) -> bool:
        """Tell whether a network has clients in common with those accepted: it lies around one, or within."""
        return network in self._covering or any(each in self._within for each in _around(network))


def _condition(rule: Rule, acls: Mapping[str, list[Line]], used: set[str]) -> _Condition:
    """Read `if A`, `if A || B`, `if !A`, `unless A`; raises _ConditionError for what no networks say."""
    if not rule.condition:
        return _Condition(networks=(), negated=False)
    word, *rest = rule.condition
    if word not in {"if", "unless"} or not rest:
        raise _ConditionError(f"{shown(word)}: `if` or `unless` and a condition are needed")
    terms = _terms(rest)
    negations = {negated for negated, _ in terms}
    if len(negations) > 1 or (negations == {True} and len(terms) > 1):
        raise _ConditionError("write one `acl` with all networks, and ask for that one alone")
    networks = tuple(each for _, term in terms for each in _networks(term, acls, used))
    return _Condition(networks=networks, negated=(negations == {True}) is not (word == "unless"))


def _terms(words: Sequence[str]) -> list[tuple[bool, tuple[str, ...]]]:
    """Return the terms that are joined by `or`: whether `!` stands before, and the words of each."""
    terms: list[tuple[bool, tuple[str, ...]]] = []
    at, negated = 0, False
    while at < len(words):
        word = words[at]
        if word in _ORS:
            at += 1
            continue
        if terms and words[at - 1] not in _ORS and not negated:
            raise _ConditionError(
                "conditions that must all hold are not understood: write one `acl` of networks"
            )
        if word == "!":
            negated, at = True, at + 1
            continue
        if word.startswith("!"):
            negated, word = True, word[1:]
        if word == "{":
            end = words.index("}", at) if "}" in words[at:] else len(words)
            terms.append((negated, tuple(words[at + 1 : end])))
            at = end
        else:
            terms.append((negated, (word,)))
        at, negated = at + 1, False
    if not terms:
        raise _ConditionError("a condition is missing")
    return terms


def _networks(term: tuple[str, ...], acls: Mapping[str, list[Line]], used: set[str]) -> list[str]:
    if len(term) == 1 and term[0] in acls:
        used.add(term[0])
        return [each for line in acls[term[0]] for each in _of_source(line.texts[2:])]
    return _of_source(term)


def _of_source(words: Sequence[str]) -> list[str]:
    """Return the networks of `src 10.0.0.0/8 192.0.2.1`."""
    if not words or words[0] != "src":
        raise _ConditionError(
            f"{shown(' '.join(words))} is not asked: networks of clients are (`src 10.0.0.0/24`)"
        )
    values = [each for each in words[1:] if each not in _FLAGS]
    try:
        found = [network(each) for each in values]
    except ValueError as error:
        raise _ConditionError(str(error)) from None
    if not found:
        raise _ConditionError("`src` needs networks")
    return found


def _around(network: _Network) -> Iterator[_Network]:
    """Yield a network and all that it lies in: at most 129, so that long lists take no long time."""
    return (network.supernet(new_prefix=length) for length in range(network.prefixlen, -1, -1))


def _tell_acls(section: Section, used: set[str], build: Build) -> None:
    for name, lines in section.acls.items():
        for line in lines:
            if name not in used:
                reason = "no rule that is obeyed asks for it"
                build.report.say(Outcome.IGNORED, line.place, reason)
