"""The clients that a rule matches: the networks that its condition names by `src`, or all but them.

They are in the condition itself, in an `acl`, and in files that one of them names (`src -f FILE`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final

from appliance.model.config.values.addresses import network
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Rule
from appliance.translation.haproxy.text.lines import Line

MOST_NETWORKS: Final = 50_000
"""Networks that the rules of a file may name, counted for each rule or frontend that uses them."""

ReadFile = Callable[[str], bytes]
"""Returns the content of the file at a path; raises OSError."""

_EVERY_IPV4: Final = "0.0.0.0/0"
_BEFORE_MAPPED: Final = 80
"""Prefix length of the zeros that ::ffff:0:0/96 begins with."""

_ORS: Final = frozenset({"or", "||"})
_ASKED: Final = "write client networks (`src 10.0.0.0/24`)"


class ConditionError(Exception):
    """A condition that is not about networks, or that a rule cannot have."""


class ListError(ConditionError):
    """A file that is no valid list of networks; HAProxy would not start with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Networks that a rule matches, or all but them; no networks at all means everybody."""

    networks: tuple[str, ...]
    negated: bool


class ClientNetworks:
    """Reads the conditions of one haproxy.cfg; `on_use` gets the `acl` lines that they use."""

    def __init__(self, read: ReadFile, on_use: Callable[[Line], None]) -> None:
        self._read = read
        self._on_use = on_use
        self._files: dict[str, tuple[str, ...] | ListError] = {}
        self._left = MOST_NETWORKS

    def condition(self, rule: Rule, acls: Mapping[str, list[Line]]) -> Condition:
        """Read `if A`, `if A || B`, `if !A !B`, `unless A`; raises ConditionError for anything else."""
        if not rule.condition:
            return Condition(networks=(), negated=False)
        word, *rest = rule.condition
        if word not in {"if", "unless"} or not rest:
            raise ConditionError(f"{shown(word)}: expected `if` or `unless` and a condition")
        terms, negated = _terms(rest)
        found = tuple(each for term in terms for each in self._networks(term, acls))
        return Condition(networks=found, negated=negated is not (word == "unless"))

    def _networks(self, term: tuple[str, ...], acls: Mapping[str, list[Line]]) -> Iterator[str]:
        if len(term) != 1 or term[0] not in acls:
            yield from self.of_source(term)
            return
        for line in acls[term[0]]:
            self._on_use(line)
            yield from self.of_source(line.texts[2:])

    def of_source(self, words: Sequence[str]) -> Sequence[str]:
        """Return the networks of `src 10.0.0.0/8 192.0.2.1`, `src -f FILE`; raises ConditionError."""
        if not words or words[0] != "src":
            raise ConditionError(f"{shown(' '.join(words))} is not supported: {_ASKED}")
        if self._left < 0:
            raise ConditionError(f"the rules of the file name more than {MOST_NETWORKS} networks")
        files, values = _options(words[1:])
        found = [each for path in files for each in self._of_file(path)]
        found += [_network(each) for each in values]
        found += [_EVERY_IPV4] * any(map(_has_every_ipv4, found))
        if not found:
            raise ConditionError("`src` needs networks")
        self._left -= len(found)
        return found

    def _of_file(self, path: str) -> Sequence[str]:
        """Return the networks of a file, one a line (configuration.txt, 7.1: lines with `#` are comments)."""
        if path not in self._files:
            try:
                self._files[path] = tuple(_listed(path, self._read))
            except ListError as error:
                self._files[path] = error
        found = self._files[path]
        if isinstance(found, ListError):
            raise ListError(str(found))
        return found


def _has_every_ipv4(network: str) -> bool:
    """Return whether a network has the mapped form of IPv4 clients: HAProxy compares that with ::/0."""
    return network.startswith("::/") and int(network.removeprefix("::/")) <= _BEFORE_MAPPED


def _terms(words: Sequence[str]) -> tuple[list[tuple[str, ...]], bool]:
    """Return the words of each term, and whether all of them or none begin with `!`.

    Terms are joined by `or`; those with `!` by nothing, which is `and`: none of them may match.
    """
    found = list(signed_terms(words))
    negated = {sign for sign, _, _ in found}
    joins = {join for _, join, _ in found[1:]}
    if len(negated) > 1 or len(joins) > 1 or (negated == {True} and joins == {"or"}):
        raise ConditionError("write one `acl` with all networks, and use only that one")
    if negated == {False} and joins == {"and"}:
        raise ConditionError("a rule cannot require several conditions: write one `acl` of networks")
    if not found:
        raise ConditionError("a condition is missing")
    return [term for _, _, term in found], negated == {True}


def signed_terms(words: Sequence[str]) -> Iterator[tuple[bool, str, tuple[str, ...]]]:
    """Yield each term of a condition, whether `!` precedes it, and how it is joined to the one before."""
    at, negated, join = 0, False, "and"
    while at < len(words):
        word = words[at].removeprefix("!")
        negated = negated is not (word != words[at])
        at += 1
        if words[at - 1] in _ORS:
            join = "or"
        elif word == "{":
            end = words.index("}", at) if "}" in words[at:] else len(words)
            yield negated, join, tuple(words[at:end])
            at, negated, join = end + 1, False, "and"
        elif word:
            yield negated, join, (word,)
            negated, join = False, "and"


def _options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files of `-f`, and the values after all options."""
    files: list[str] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        at += 1
        if option == "--":
            break
        if option == "-f":
            files.append(value)
        elif option not in {"-n", "-i"} and (option, value) != ("-m", "ip"):
            raise ConditionError(f"{shown(option)} is not supported: {_ASKED}")
        at += option in {"-f", "-m"}
    return files, list(words[at:])


def _network(text: str) -> str:
    """Return a network in our form; as with HAProxy the address may have host bits (`10.0.0.1/8`)."""
    _, _, mask = text.partition("/")
    first = mask.partition(".")[0]
    if "." in mask and mask != "0.0.0.0" and first.isdecimal() and int(first[:4]) < 128:  # noqa: S104
        raise ConditionError(f"{shown(text)}: the mask is not a network mask")
    try:
        return network(str(ip_network(text, strict=False)))
    except ValueError:
        pass
    try:
        return network(text)
    except ValueError as error:
        raise ConditionError(str(error)) from None


def _listed(path: str, read: ReadFile) -> Iterator[str]:
    if not path.startswith("/"):
        raise ListError(f"the file {shown(path)}: write its absolute path")
    try:
        text = read(path).decode()
    except OSError as error:
        raise ListError(f"the file {shown(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ListError(f"the file {shown(path)} is not UTF-8") from None
    for number, line in enumerate(text.split("\n"), 1):
        value = line.lstrip(" \t").rstrip("\r")
        if value and not value.startswith("#"):
            yield _network_at(value, f"{path}:{number}")


def _network_at(value: str, place: str) -> str:
    try:
        return _network(value)
    except ConditionError as error:
        raise ListError(f"{place}: {error}") from None
