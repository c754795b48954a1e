"""`vrrp_script`, `vrrp_track_process` and `track_file`: what instances can track, by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.commands.check_commands import HAPROXY, Recognised
from appliance.translation.keepalived.commands.check_scripts import MARKER, ScriptQuestion
from appliance.translation.keepalived.commands.vrrp_script_commands import (
    CheckCommand,
    Doubt,
    doubt,
    question,
)
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.directive_handling import (
    Table,
    Understood,
    apply,
    changed,
    ignored,
    refused,
)
from appliance.translation.keepalived.meaning.instance_draft import Watched
from appliance.translation.keepalived.meaning.notify import command, command_is_found
from appliance.translation.keepalived.meaning.values import DirectiveError, duration, only, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

MOST_CHECKS: Final = 1000
"""Greatest `rise` and `fall` of our configuration."""

_LONGEST: Final = 4294  # seconds: 32 bits of microseconds
_REVERSE: Final = "`reverse` is not supported: invert the check, so that it exits with 0 on success"
_ANY_STATUS: Final = "100-599"
_LIVES: Final = (
    "checks that haproxy runs, and here that the appliance's proxy accepts connections (`program`)"
)
_DOUBTS: Final = {
    Doubt.NAMED: (
        "names HAProxy, which does not run alongside the appliance: a check for it always fails. Write "
        "`track` with `program`, `pool`, `http` or `tcp` instead"
    ),
    Doubt.UNREAD: (
        "cannot be interpreted, and is run unchanged: if it checks HAProxy, which does not run here, it "
        "always fails. Write `track` with `program` then"
    ),
}


@dataclass(slots=True, kw_only=True)
class _Check:
    """A block while it is being read."""

    name: Word
    ledger: Ledger
    default_user: Word | None = None
    script: Word | None = None
    interval: tuple[Decimal, FilePosition] = field(init=False)
    timeout: tuple[Decimal, FilePosition] | None = None
    counts: dict[str, tuple[int, FilePosition]] = field(default_factory=dict)
    weight: int = 0
    weight_place: FilePosition | None = None
    user: Word | None = None
    target: Word | None = None

    def __post_init__(self) -> None:
        self.interval = (Decimal(1), self.name.place)


def vrrp_script(
    given: Directive,
    *,
    ledger: Ledger,
    read: Callable[[str], bytes],
    default_user: Word | None,
    programs: Sequence[str],
) -> Watched | None:
    """Return the translation of a `vrrp_script`, None if it is refused.

    If another program balances the load, OpenShift's marker file is required, as by its keepalived pod. If
    our own `programs` do, no file reports their `redirect`.
    """
    check = _Check(name=only(given), ledger=ledger, default_user=default_user)
    for each in given.within:
        apply(_SCRIPT, check, each, ledger)
    if check.script is None:
        _refuse_without(given, "script")
        return None
    asked = CheckCommand(text=check.script.text, words=command(check.script), name=check.name.text)
    found = question(asked, read, proxies=bool(programs))
    if found is None:
        if programs and (why := doubt(asked, read)) is not None:
            ledger.change(check.script.place, _DOUBTS[why])
        return _script(check, check.script)
    if found.asks.haproxy and not programs:
        found = replace(found, asks=Recognised(kind="process", target=HAPROXY))
    marker = MARKER if found.marked and not programs else None
    return _builtin(check, check.script, found, marker=marker)


def _script(check: _Check, script: Word) -> Watched:
    """Return the script unchanged."""
    if not command_is_found(script):
        reason = "`/usr/bin/env` searches for the command: commands need an absolute path here"
        check.ledger.change(script.place, reason)
    user = check.user or check.default_user
    own: list[tuple[str, Plain, FilePosition]] = [("user", user.text, user.place)] if user else []
    return Watched(
        name=check.name.text,
        place=check.name.place,
        kind="script",
        target=[*command(script)],
        target_place=script.place,
        settings=(*own, *_times(check, None)),
        weight=check.weight,
        weight_place=check.weight_place,
    )


def _builtin(check: _Check, script: Word, asked: ScriptQuestion, *, marker: str | None) -> Watched:
    """Return a check of our own that replaces the script; `marker` is a file that must exist as well."""
    found, place = asked.asks, script.place
    check.ledger.change(place, _why(asked, marker=marker))
    if check.user is not None:
        check.ledger.ignore(check.user.place, "no command is run, so no user is needed")
    expected: list[tuple[str, Plain, FilePosition]] = (
        [("expect", _ANY_STATUS, place)] if found.any_status else []
    )
    if marker is not None:
        expected.append(("exists", marker, place))
    return Watched(
        name=check.name.text,
        place=check.name.place,
        kind=found.kind,
        target=found.target,
        target_place=place,
        settings=(*expected, *_times(check, found.timeout)),
        weight=check.weight,
        weight_place=check.weight_place,
        haproxy=found.haproxy,
    )


def _why(asked: ScriptQuestion, *, marker: str | None) -> str:
    found = asked.asks
    if asked.by_name:
        return f"cannot be interpreted; by its name it {_LIVES}"
    if found.haproxy:
        return f"{_LIVES}: nothing is started or stopped for it" if asked.in_its_own_way else _LIVES
    reason = {
        "http": f"the appliance requests {found.target} itself (`http`)",
        "tcp": f"the appliance connects to {found.target} itself (`tcp`)",
        "process": f"the appliance looks for the process itself (`process: {found.target}`)",
    }[found.kind]
    if asked.while_held:
        reason += ", but not also through the virtual IP while that is held"
    if found.unverified:
        reason += ", and accepts any certificate: `verify: FILE` verifies it"
    if marker is not None:
        reason += f", while {marker} exists (`exists`)"
    elif asked.marked:
        reason += f", and does not check {MARKER}: the appliance's `redirect` follows the frontend"
    return reason


def _times(check: _Check, own_timeout: str | None) -> list[tuple[str, Plain, FilePosition]]:
    """Return interval, timeout, rise and fall."""
    interval, interval_place = check.interval
    found: list[tuple[str, Plain, FilePosition]] = [("interval", duration(interval), interval_place)]
    timeout = check.timeout
    if own_timeout is not None and (timeout is None or Decimal(own_timeout) < timeout[0]):
        timeout = (Decimal(own_timeout), check.script.place if check.script else interval_place)
    if timeout is not None and timeout[0] > interval:
        check.ledger.change(timeout[1], "is limited to the interval here: checks never overlap")
        timeout = (interval, timeout[1])
    if timeout is not None:
        found.append(("timeout", duration(timeout[0]), timeout[1]))
    found += [(key, count, place) for key, (count, place) in check.counts.items()]
    return found


def vrrp_track_process(given: Directive, *, ledger: Ledger, programs: Sequence[str]) -> Watched | None:
    """Return the translation of a `vrrp_track_process`, None if it is refused."""
    check = _Check(name=only(given), ledger=ledger)
    for each in given.within:
        apply(_PROCESS, check, each, ledger)
    if check.target is None:
        _refuse_without(given, "process")
        return None
    name = check.target.text.rpartition("/")[2]
    ours = name == HAPROXY and bool(programs)
    if ours:
        ledger.change(check.target.place, _LIVES)
    return Watched(
        name=check.name.text,
        place=check.name.place,
        kind="process",
        target=name,
        target_place=check.target.place,
        weight=check.weight,
        weight_place=check.weight_place,
        haproxy=ours,
    )


def track_file(given: Directive, *, ledger: Ledger) -> Watched | None:
    """Return the translation of a `track_file`, None if it is refused; its weight is 1 by default."""
    check = _Check(name=only(given), ledger=ledger, weight=1)
    for each in given.within:
        apply(_FILE, check, each, ledger)
    if check.target is None:
        _refuse_without(given, "file")
        return None
    return Watched(
        name=check.name.text,
        place=check.name.place,
        kind="file",
        target=check.target.text,
        target_place=check.target.place,
        weight=check.weight,
        weight_place=check.weight_place,
    )


def _refuse_without(given: Directive, keyword: str) -> None:
    """Refuse a block that names nothing to track, unless that directive was refused itself."""
    if not any(each.keyword == keyword for each in given.within):
        raise DirectiveError(f"has no `{keyword}`", given.place)


def _take_script(check: _Check, given: Directive) -> None:
    if not given.values:
        raise DirectiveError("`script` needs a command", given.place)
    check.script, *further = given.values
    if further:
        reason = (
            f"{shown(further[0].text)} would not be passed to the command, nor would keepalived pass it: "
            "put the command and all its arguments in quotes"
        )
        raise DirectiveError(reason, further[0].place)


def _take_time(check: _Check, given: Directive) -> None:
    word = only(given)
    setattr(check, given.keyword, (Decimal(whole(word, least=1, most=_LONGEST)), word.place))


def _take_count(check: _Check, given: Directive) -> None:
    word = only(given)
    number = whole(word, least=1, most=2**31 - 1)
    if number > MOST_CHECKS:
        check.ledger.change(word.place, f"is limited to {MOST_CHECKS} here")
    check.counts[given.keyword] = (min(number, MOST_CHECKS), word.place)


def _take_weight(check: _Check, given: Directive) -> None:
    words = [each for each in given.values if each.text not in ("noreverse", "no_reverse")]
    reverse = next((each for each in words if each.text == "reverse"), None)
    if reverse is not None:
        raise DirectiveError(_REVERSE, reverse.place)
    if len(words) != 1:
        raise DirectiveError("`weight` takes one number", given.place)
    check.weight = whole(words[0], least=-254, most=254)
    check.weight_place = words[0].place


def _take_user(check: _Check, given: Directive) -> None:
    if not given.values:
        raise DirectiveError("`user` needs a name", given.place)
    check.user = given.values[0]
    if len(given.values) > 1:
        check.ledger.change(given.values[1].place, "the group is the user's own: no other can be set")


def _take_process(check: _Check, given: Directive) -> None:
    if not given.values:
        raise DirectiveError("`process` needs a name", given.place)
    if len(given.values) > 1:
        reason = "a process is found by its name here, not by its parameters: a `script` can check those"
        raise DirectiveError(reason, given.values[1].place)
    check.target = given.values[0]


def _take_quorum(check: _Check, given: Directive) -> None:
    word = only(given)
    if whole(word, least=0, most=65535) != 1:
        raise DirectiveError("one process is enough here: a `script` can count them", word.place)
    del check


def _take_file(check: _Check, given: Directive) -> None:
    check.target = only(given)


_SCRIPT: Final[Table[_Check]] = {
    "script": Understood(act=_take_script),
    "interval": Understood(act=_take_time, slip="uses 1 s"),
    "timeout": Understood(act=_take_time, slip="uses none"),
    "rise": Understood(act=_take_count, slip="uses 1"),
    "fall": Understood(act=_take_count, slip="uses 1"),
    "weight": Understood(act=_take_weight, slip="uses 0"),
    "user": Understood(act=_take_user),
    "init_fail": changed("no address is claimed before the first result, which decides"),
}
_DELAYED: Final = "a process that starts or exits counts at the next check, without a delay"
_PROCESS: Final[Table[_Check]] = {
    "process": Understood(act=_take_process),
    "weight": Understood(act=_take_weight),
    "quorum": Understood(act=_take_quorum),
    "quorum_max": refused("too many processes cause no fault here: a `script` can count them"),
    "fork_delay": ignored(_DELAYED),
    "terminate_delay": ignored(_DELAYED),
    "delay": ignored(_DELAYED),
    "full_command": refused(
        "a process is found by its name here: a `script` with `pgrep -f` matches its command"
    ),
    "param_match": refused("a process is found by its name here, not by its parameters: write a `script`"),
}
_FILE: Final[Table[_Check]] = {
    "file": Understood(act=_take_file),
    "weight": Understood(act=_take_weight),
    "init_file": changed("the file is not created at the start: a missing file counts as 0"),
}
