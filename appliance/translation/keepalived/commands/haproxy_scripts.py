"""Scripts that check HAProxy in a way that only HAProxy can pass: its process, socket, pid file or unit.

If our own proxies have replaced HAProxy, such a script always fails. The script's commands show whether it
checks anything else: they may look at HAProxy, filter the output, or act on the result.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Final

from appliance.translation.keepalived.commands.check_commands import HAPROXY
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


class _Kind(Enum):
    LOOK = auto()
    HARMLESS = auto()
    OTHER = auto()


def asks_for_haproxy_alone(text: str) -> bool:
    """Return whether a script checks that HAProxy runs, and nothing else."""
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
