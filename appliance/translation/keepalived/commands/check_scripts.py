"""Scripts that only request one URL or look for one process.

kubeadm's check_apiserver.sh and OpenShift's chk_ocp_script.sh are such scripts. Only a script's commands show
what it does; if one of them is not understood, the script stays a script.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.translation.keepalived.commands.check_commands import (
    SHELLS,
    Recognised,
    recognised,
    within_limit,
)
from appliance.translation.keepalived.commands.shell_commands import (
    ASSIGNMENT,
    LONGEST_SCRIPT,
    ShellCommand,
    shell_commands,
)
from appliance.translation.keepalived.syntax.words import CommandError, command_words

MARKER: Final = "/var/run/keepalived/iptables-rule-exists"
"""OpenShift's dynkeepalived creates this file while the redirect to the load balancer is in place."""

_INTERPRETER: Final = re.compile(rb"#![^\n]*sh\b")
_SAYING: Final = frozenset(("echo", "printf", "logger", "set", "shopt", "return", "sleep", "date"))
_TESTS: Final = frozenset(("[", "[[", "test"))
_FILE_TEST: Final = re.compile(r"\s-[a-hkprstuwxGLNOS]\s")
_MARKED: Final = re.compile(rf"\[{{1,2}}\s+-[ef]\s+{re.escape(MARKER)}\s+\]{{1,2}}")
_FAILS: Final = re.compile(r"(exit|return) [1-9][0-9]*|(exit|return)( \$\?)?|false")
_PASSES: Final = re.compile(r"(exit|return) 0")
_OWN_ADDRESSES: Final = re.compile(
    r"(\S*/)?(ip( -[46o])*( -brief)? a(d|dd|ddr|ddress)?( (show|list|ls).*)?|ifconfig.*|hostname -I)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptQuestion:
    """What a script checks. `marked`: it also requires MARKER.

    `while_held`: it checks more while this node holds the virtual IP (`if ip addr | grep ...`); that part is
    left out, as it requests the node's own address. `by_name`: the script was not read, only its name.
    `in_its_own_way`: it may do more about HAProxy than check it.
    """

    asks: Recognised
    marked: bool = False
    while_held: bool = False
    by_name: bool = False
    in_its_own_way: bool = False


def shell_text(words: Sequence[str], read: Callable[[str], bytes]) -> str | None:
    """Return the text of the shell script that a command runs, None for anything else.

    The script is a file, or the word after `-c`. Raises OSError if the file cannot be read.
    """
    rest = _unwrapped(words)
    shell = bool(rest) and rest[0].rpartition("/")[2] in SHELLS
    options = rest[1:] if shell else rest
    while shell and options and options[0].startswith("-"):
        option = options.pop(0)
        if option.endswith("c"):
            return options[0] if options else None
    if not options or not options[0].startswith("/"):
        return None
    content = read(options[0])
    if len(content) > LONGEST_SCRIPT or not _INTERPRETER.match(content):
        return None
    return content.decode(errors="replace").partition("\n")[2]


def _unwrapped(words: Sequence[str]) -> list[str]:
    """Return a command without wrappers: env(1), and timeout(1) with its options."""
    rest = list(words)
    while rest and (program := rest[0].rpartition("/")[2]) in ("env", "timeout"):
        rest = rest[1:] if program == "env" else within_limit(rest[1:])[1]
    return rest


def recognised_script(text: str) -> ScriptQuestion | None:
    """Return what the text of a script checks, None if that is uncertain."""
    return _Reading(shell_commands(text)).result()


class _Reading:
    """Goes through the commands of a script, and stops at the first unknown one."""

    def __init__(self, commands: Sequence[ShellCommand]) -> None:
        self._commands = commands
        self._functions = {each.text for each in commands if each.behind == "(" and not each.inner}
        self._found: list[Recognised] = []
        self._marked = False
        self._while_held = False

    def result(self) -> ScriptQuestion | None:
        """Return the one thing that the script checks."""
        at = 0
        while at < len(self._commands):
            if self._asks_for_own_addresses(at):
                self._while_held = True
                end = self._end_of_branch(at)
            else:
                end = at + 1 if self._is_known(at) else None
            if end is None:
                return None
            at = end
        if len(self._found) != 1:
            return None
        return ScriptQuestion(asks=self._found[0], marked=self._marked, while_held=self._while_held)

    def _asks_for_own_addresses(self, at: int) -> bool:
        command = self._commands[at]
        return command.keywords[-1:] == ("if",) and _OWN_ADDRESSES.fullmatch(command.text) is not None

    def _end_of_branch(self, at: int) -> int | None:
        """Return the index after `if ip addr ...; fi`; None if it does more than check, or has an `else`."""
        depth = 1
        for end in range(at + 1, len(self._commands)):
            command = self._commands[end]
            for keyword in command.keywords:
                depth += {"if": 1, "fi": -1}.get(keyword, 0)
                if keyword in ("else", "elif") and depth == 1:
                    return None
                if not depth:
                    return end
            asks = command.program in ("grep", "egrep", "awk", "wc", "curl", "wget", "nc")
            if command.inner or not (asks or self._is_harmless(command)):
                return None
        return len(self._commands)

    def _is_known(self, at: int) -> bool:
        command = self._commands[at]
        if command.inner or command.continues:
            return False
        if _MARKED.fullmatch(command.text):
            self._marked = True
            return True
        if self._is_harmless(command):
            return True
        found = _one(command.text)
        if found is None or not self._decides(at):
            return False
        self._found.append(found)
        return True

    def _is_harmless(self, command: ShellCommand) -> bool:
        text = command.text
        if command.program in _TESTS:
            return _FILE_TEST.search(text) is None
        known = (
            command.program in _SAYING or bool(self._functions & {*command.words[:1]}) or text.endswith("=")
        )
        known = known or ASSIGNMENT.fullmatch(text) is not None
        return known or bool(_FAILS.fullmatch(text) or _PASSES.fullmatch(text)) or text in self._functions

    def _decides(self, at: int) -> bool:
        """Return whether the script fails exactly if this command fails."""
        command = self._commands[at]
        behind = self._commands[at + 1] if at + 1 < len(self._commands) else None
        around = tuple(each for each in command.keywords if each not in ("fi", "}", "{"))
        if around == ("if", "!"):
            return behind is not None and command.behind in (";", "\n") and not _PASSES.fullmatch(behind.text)
        if around or command.behind not in ("\n", ";", "&&", "||"):
            return False
        return command.behind != "||" or (behind is not None and not _PASSES.fullmatch(behind.text))


def _one(text: str) -> Recognised | None:
    try:
        return recognised(command_words(text))
    except CommandError:
        return None
