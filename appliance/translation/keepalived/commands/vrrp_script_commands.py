"""What the command of a `vrrp_script` checks, judged by its words, its file or its name."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from appliance.translation.keepalived.commands.check_commands import HAPROXY, Recognised, recognised
from appliance.translation.keepalived.commands.check_scripts import (
    ScriptQuestion,
    recognised_script,
    shell_text,
)
from appliance.translation.keepalived.commands.shell_commands import ShellCommand, shell_commands

_LOOKERS: Final = frozenset(
    (
        *("pidof", "pgrep", "pkill", "killall", "ps", "systemctl", "service", "rc-service", "supervisorctl"),
        *("netstat", "ss", "lsof", "docker", "podman", "crictl", "socat", "nc", "ncat", "cat", "ls", "stat"),
        *("[", "[[", "test"),
    )
)
_FILTERS: Final = frozenset(
    (
        "grep",
        "egrep",
        "fgrep",
        "awk",
        "sed",
        "cut",
        "head",
        "tail",
        "tr",
        "sort",
        "uniq",
        "wc",
        "xargs",
        "tee",
    )
)
_HARMLESS: Final = frozenset(
    (
        *("echo", "printf", "logger", "mail", "sleep", "date", "exit", "return", "true", "false", ":", "set"),
        *("shopt", "export", "local", "readonly", "expr", "let", "seq", "for", "break", "continue", "kill"),
        *("haproxy", "keepalived", "hostname", "function"),
    )
)
_SERVICES: Final = frozenset(("systemctl", "service", "rc-service", "supervisorctl", "docker", "podman"))
_ACTIONS: Final = frozenset(("start", "stop", "restart", "reload", "try-restart"))
_OURS: Final = re.compile(r"haproxy|keepalived", re.IGNORECASE)
_FILE_TEST: Final = re.compile(r"\s-[a-hkprstuwxGLNOS]\s")
_BEFORE: Final = frozenset(("sudo", "exec", "command"))
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

_LIVES: Final = Recognised(kind="program", target=HAPROXY, haproxy=True)
_IN_ITS_OWN_WAY: Final = ScriptQuestion(asks=_LIVES, in_its_own_way=True)


class _Kind(Enum):
    LOOK = auto()
    HARMLESS = auto()
    OTHER = auto()


def asks_for_haproxy_alone(text: str) -> bool:
    """Return whether a script checks that HAProxy runs, and nothing else.

    If our own proxies have replaced HAProxy, such a script always fails. Its commands show whether it checks
    anything else: they may look at HAProxy, filter the output, or act on the result.
    """
    commands = shell_commands(text)
    functions = {each.text for each in commands if each.behind == "("}
    kinds = [_kind(each, functions) for each in _pipelines(commands)]
    return _Kind.LOOK in kinds and _Kind.OTHER not in kinds


def names_haproxy(text: str) -> bool:
    """Return whether a command of a script names HAProxy; text that is only printed does not count."""
    said = ("echo", "printf", "logger")
    return any(_names(each.text) for each in shell_commands(text) if each.program not in said)


def _names(text: str) -> bool:
    """Return whether a text names HAProxy, also as `[h]aproxy`, by which grep(1) does not match itself."""
    return HAPROXY in text.lower().replace("[h]", "h")


def _pipelines(commands: Sequence[ShellCommand]) -> Iterator[list[ShellCommand]]:
    found: list[ShellCommand] = []
    for each in commands:
        found += [] if each.continues else [each]
        if each.behind != "|":
            yield found
            found = []


def _kind(stages: Sequence[ShellCommand], functions: set[str]) -> _Kind:
    bare = [words for each in stages if (words := _command(each.words))]
    if not bare or all(_is_harmless(words, functions) for words in bare):
        return _Kind.HARMLESS
    programs = {words[0].rpartition("/")[2] for words in bare}
    looks = any(_names(word) for words in bare for word in words) and programs & _LOOKERS
    return _Kind.LOOK if looks and programs <= _LOOKERS | _FILTERS | _HARMLESS else _Kind.OTHER


def _command(words: Sequence[str]) -> list[str]:
    """Return the words of a command from its program on."""
    rest = list(words)
    while rest and (rest[0] in _BEFORE or _ASSIGNED.match(rest[0])):
        rest.pop(0)
    return rest


def _is_harmless(words: Sequence[str], functions: set[str]) -> bool:
    program = words[0].rpartition("/")[2]
    rest = " ".join(words[1:])
    if program in ("[", "[[", "test"):
        return _FILE_TEST.search(f" {rest} ") is None and not _names(rest)
    if program in ("killall", "pkill"):
        return "-0" not in words and _OURS.search(rest) is not None
    if program in _SERVICES or "init.d/" in words[0]:
        return bool(_ACTIONS & set(words)) and _OURS.search(" ".join(words)) is not None
    if program == "cat":
        return "keepalived" in rest
    return program in _HARMLESS or words[0] in functions


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
