"""What the command of a `vrrp_script` checks, judged by its words, its file or its name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from appliance.translation.keepalived.commands.check_commands import HAPROXY, Recognised, recognised
from appliance.translation.keepalived.commands.check_scripts import (
    ScriptQuestion,
    recognised_script,
    shell_text,
)
from appliance.translation.keepalived.commands.haproxy_scripts import asks_for_haproxy_alone, names_haproxy

_LIVES: Final = Recognised(kind="program", target=HAPROXY, haproxy=True)
_IN_ITS_OWN_WAY: Final = ScriptQuestion(asks=_LIVES, in_its_own_way=True)


class Doubt(Enum):
    """Why a command may check HAProxy: it names it, or runs a script that cannot be read."""

    NAMED = auto()
    UNREAD = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCommand:
    """The command of a check: its `text` in the file, its `words`, and the `name` of the check."""

    text: str
    words: Sequence[str]
    name: str


def question(command: CheckCommand, read: Callable[[str], bytes], *, proxies: bool) -> ScriptQuestion | None:
    """Return what a command checks, None if that is uncertain.

    `proxies`: our own proxies have replaced HAProxy. A command that only HAProxy can answer is then taken to
    check them, and a file that cannot be read is judged by its name.
    """
    known = recognised(command.words)
    if known is not None:
        return ScriptQuestion(asks=known)
    if proxies and asks_for_haproxy_alone(command.text):
        return _IN_ITS_OWN_WAY
    try:
        text = shell_text(command.words, read)
    except OSError:
        named = HAPROXY in f"{command.name} {command.text}".lower()
        return ScriptQuestion(asks=_LIVES, by_name=True) if named and proxies else None
    if text is None:
        return None
    found = recognised_script(text)
    return _IN_ITS_OWN_WAY if found is None and proxies and asks_for_haproxy_alone(text) else found


def doubt(command: CheckCommand, read: Callable[[str], bytes]) -> Doubt | None:
    """Return why an unknown command may check HAProxy, None if nothing suggests that."""
    try:
        text = shell_text(command.words, read)
    except OSError:
        return Doubt.UNREAD
    named = HAPROXY in command.text.lower() or (text is not None and names_haproxy(text))
    return Doubt.NAMED if named else None
