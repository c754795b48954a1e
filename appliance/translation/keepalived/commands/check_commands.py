"""Commands that check what we can check ourselves: whether haproxy runs, or a URL or a port answers.

A check of our own needs no process, no curl in the image and no shell. A command that is not clearly one of
these stays a script.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from appliance.model.config.values.addresses import server_endpoint
from appliance.model.config.values.http import url
from appliance.translation.keepalived.commands.shell_commands import CONNECTION
from appliance.translation.keepalived.syntax.words import CommandError, command_words

HAPROXY: Final = "haproxy"

_LOCAL_URL: Final = re.compile(r"(?:https?://)?(localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)", re.ASCII)
_LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
_SECONDS: Final = re.compile(r"([0-9]*\.?[0-9]+)s?", re.ASCII)
_FINDERS: Final = frozenset(("killall", "pkill", "pidof", "pgrep", "systemctl", "service", "ps"))
_SIGNALS: Final = frozenset(("-0", "-s", "--signal", "0"))
_CONNECTED: Final = re.compile(rf"[<>]{{1,2}}\s*{CONNECTION}")
_OPENERS: Final = frozenset(("env", "exec", "cat", "echo", ":", "true", "<"))
SHELLS: Final = frozenset(("sh", "bash", "dash"))
_DISCARDED: Final = re.compile(
    r"\s*(?:&?>{1,2}\s*/dev/null|[12]>{1,2}\s*/dev/null|2>&1|1>&2)|\s*\|\|\s*(?:exit [1-9][0-9]*|false)\s*$"
)
_SHELL_SYNTAX: Final = re.compile(r"[|&;<>()`$*?\[\]{}!]")

# Options of curl(1) that make no difference here, without and with a value.
_CURL_ALONE: Final = frozenset("sSkfLIigv46")
_CURL_LONG_ALONE: Final = frozenset(
    ("silent", "show-error", "insecure", "fail", "location", "head", "include", "get", "verbose")
)
_CURL_VALUES: Final = {"-o", "--output", "-w", "--write-out", "--retry", "--connect-timeout", "--noproxy"}
_CURL_TIMEOUTS: Final = {"-m", "--max-time"}
_WGET_ALONE: Final = frozenset(("-q", "--quiet", "--spider", "--no-check-certificate", "-nv"))
_WGET_VALUES: Final = {"-O", "-o", "-t", "--tries"}
_WGET_TIMEOUTS: Final = {"-T", "--timeout"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What a command checks: `kind` and `target` of a track.

    `haproxy`: it checks that haproxy runs. `timeout`: seconds that the command itself sets. `any_status`: any
    answer is good, as for curl without `-f`. `unverified`: the command would verify the certificate, which we
    do only with a file of CA certificates.
    """

    kind: str
    target: str
    haproxy: bool = False
    timeout: str | None = None
    any_status: bool = False
    unverified: bool = False


def recognised(words: Sequence[str]) -> Recognised | None:
    """Return what a command checks, None if that is uncertain."""
    program, rest = (words[0].rpartition("/")[2], list(words[1:])) if words else ("", [])
    if program in SHELLS:
        return in_shell(rest[1]) if len(rest) == 2 and rest[0] in ("-c", "-lc", "-ec") else None
    if any(each.lstrip("<>").startswith(CONNECTION) for each in words):
        return _redirection(words)
    if program in _FINDERS:
        return _process(program, rest)
    known = _KNOWN.get(program)
    return known(rest) if known else None


def in_shell(text: str) -> Recognised | None:
    """Return what one simple shell command checks; it may discard its output."""
    while (shorter := _DISCARDED.sub("", text)) != text:
        text = shorter
    text = _CONNECTED.sub(CONNECTION, text)
    if _SHELL_SYNTAX.search(re.sub(r"\[::1\]", "", text)):
        return None
    try:
        return recognised(command_words(text))
    except CommandError:
        return None


def _with_timeout(words: list[str]) -> Recognised | None:
    limit, command = within_limit(words)
    found = recognised(command) if limit else None
    return replace(found, timeout=found.timeout or limit) if found else None


def within_limit(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the seconds and the command that follow timeout(1): `[-k N] [-s SIGNAL] N COMMAND`."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-k", "-s") and rest:
            rest.pop(0)
    limit = _SECONDS.fullmatch(rest.pop(0)) if rest else None
    return (limit[1] if limit else None), rest


def _process(program: str, words: list[str]) -> Recognised | None:
    """Parse a command that looks for one process by name."""
    if program in ("killall", "pkill") and not _SIGNALS & set(words):
        return None  # it would kill the process
    names = [each for each in words if not each.startswith("-") and each not in _SIGNALS]
    if program == "systemctl":
        names = [each.removesuffix(".service") for each in names if each not in ("is-active", "status")]
    if program == "service":
        names = names[:1] if names[1:] == ["status"] else []
    if program == "ps" and "-C" not in words:
        return None
    name = names[0].rpartition("/")[2] if len(names) == 1 else ""
    if name == HAPROXY:
        return Recognised(kind="program", target=HAPROXY, haproxy=True)
    plain = program in ("killall", "pidof", "ps") or (program == "pgrep" and "-x" in words)
    return Recognised(kind="process", target=name) if name and plain and "-f" not in words else None


def _redirection(words: Sequence[str]) -> Recognised | None:
    """Parse bash's `</dev/tcp/HOST/PORT`, alone or after words that only open it."""
    *before, last = words
    if any(each.rpartition("/")[2] not in _OPENERS and not each.isdigit() for each in before):
        return None
    host, _, port = last.lstrip("<>").removeprefix(CONNECTION).partition("/")
    try:
        target = server_endpoint(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except ValueError:
        return None
    return Recognised(kind="tcp", target=str(target))


def _connection(words: list[str]) -> Recognised | None:
    """Parse `nc -z localhost 6443`."""
    names = [each for each in words if not each.startswith("-")]
    flags = "".join(each.lstrip("-") for each in words if each.startswith("-"))
    timed = "w" in flags and len(names) == 3
    if "z" not in flags or "u" in flags or len(names) - timed != 2:
        return None
    host, port = names[-2:]
    if host not in _LOCAL or not _PORT.fullmatch(port) or (timed and not _PORT.fullmatch(names[0])):
        return None
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Recognised(kind="tcp", target=address, timeout=names[0] if timed else None)


def _curl(words: list[str]) -> Recognised | None:
    timeout: str | None = None
    flags: set[str] = set()
    urls: list[str] = []
    while words:
        word = words.pop(0)
        if word in _CURL_VALUES | _CURL_TIMEOUTS and words:
            value = words.pop(0)
            timeout = value if word in _CURL_TIMEOUTS else timeout
        elif word.startswith("--"):
            if word[2:] not in _CURL_LONG_ALONE:
                return None
            flags.add(word[2:])
        elif word.startswith("-"):
            short, taken = _short_options(word[1:])
            if short is None or (taken and not words):
                return None
            value = words.pop(0) if taken else ""
            timeout = value if taken == "m" else timeout
            flags |= short
        else:
            urls.append(word)
    verified = not flags & {"k", "insecure"}
    return _http(urls, timeout=timeout, any_status=not flags & {"f", "fail"}, verified=verified)


def _short_options(letters: str) -> tuple[set[str] | None, str]:
    """Return the options in `-sko`, and the last one if it takes the next word; None if one is unknown."""
    taken = letters[-1:] if letters[-1:] in ("o", "m", "w") else ""
    plain = set(letters[: len(letters) - len(taken)])
    return (plain if plain <= _CURL_ALONE else None), taken


def _wget(words: list[str]) -> Recognised | None:
    timeout: str | None = None
    verified = True
    urls: list[str] = []
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if name in _WGET_TIMEOUTS | _WGET_VALUES:
            value = value or (words.pop(0) if words else "")
            timeout = value if name in _WGET_TIMEOUTS else timeout
        elif word in _WGET_ALONE or word in ("-qO-", "-O-"):
            verified = verified and word != "--no-check-certificate"
        elif word.startswith("-"):
            return None
        else:
            urls.append(word)
    return _http(urls, timeout=timeout, any_status=False, verified=verified)


def _http(urls: list[str], *, timeout: str | None, any_status: bool, verified: bool) -> Recognised | None:
    if len(urls) != 1 or not _LOCAL_URL.match(urls[0]):
        return None
    address = urls[0] if "://" in urls[0] else f"http://{urls[0]}"
    try:
        target = url(address)
    except ValueError:
        return None
    if timeout is not None and not _SECONDS.fullmatch(timeout):
        return None
    return Recognised(
        kind="http",
        target=target,
        timeout=timeout and timeout.removesuffix("s"),
        any_status=any_status,
        unverified=verified and target.startswith("https:"),
    )


_KNOWN: Final[Mapping[str, Callable[[list[str]], Recognised | None]]] = {
    "timeout": _with_timeout,
    "env": recognised,
    "curl": _curl,
    "wget": _wget,
    "nc": _connection,
    "ncat": _connection,
    "netcat": _connection,
}
