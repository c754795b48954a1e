"""A haproxy.cfg rewritten so that it can run in a test, with nothing changed that it is compared by.

Times are shortened all by one factor, names get addresses, and what belongs to another machine (users, paths)
is left out. The same text is then given to HAProxy and to our reader.
"""

import re
from collections.abc import Iterator
from typing import Final

Endpoint = tuple[str, int]

NAMES: Final = {
    "localhost:": "127.0.0.1:",
    "m0.cluster.example.com": "192.0.2.11",
    "m1.cluster.example.com": "192.0.2.12",
}

_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ELSEWHERE: Final = re.compile(
    r"^\s*(chroot|user|group|pidfile|daemon|log |stats socket|ulimit-n|nbthread|errorfile|master-worker)"
)
_CHECK_TIME: Final = re.compile(r"\b(inter|fastinter|downinter|slowstart) +(\d+)(us|ms|s|m|h|d|)\b")
_TOO_MANY: Final = re.compile(r"\bmaxconn +\d{5,}")
_BIND: Final = re.compile(r"^\s*bind\s+(\S+)", re.MULTILINE)
_SERVER: Final = re.compile(r"^\s*server\s+\S+\s+'?\[?([0-9a-f.:]+?)\]?'?:(\d+)(.*)$", re.MULTILINE)
_DEFAULT_SERVER: Final = re.compile(r"^\s*default-server\s.*\bport (\d+)", re.MULTILINE)
_ADDRESS: Final = re.compile(r"\[?([0-9a-f:.]*?)\]?:(\d+|\$\{\w+-(\d+)\})$")

FASTEST: Final = 0.2
"""Seconds between checks at the least: a busy machine has to make them in time."""


def runnable(text: str, *, control: str) -> str:
    """Return the text for a test: short times between checks, addresses for names, a stats socket.

    HAProxy does not start where it may not open as many files as `maxconn` wants: that is bounded. Where the
    time between checks is left to HAProxy, which has 2 s, it is the shortest one.
    """
    lines = [line for line in text.splitlines() if not _ELSEWHERE.match(line)]
    kept = _CHECK_TIME.sub(_shorter, _TOO_MANY.sub("maxconn 4000", "\n".join(lines)))
    for name, address in NAMES.items():
        kept = kept.replace(name, address)
    first = "defaults" if re.search(r"^defaults", kept, re.MULTILINE) else "backend|listen"
    faster = rf"\g<0>\n  default-server inter {round(FASTEST * 1000)}ms"
    kept = re.sub(rf"^(?:{first})\b.*$", faster, kept, flags=re.MULTILINE)
    return f"{kept}\nglobal\n  stats socket {control}\n"


def servers(text: str) -> list[Endpoint]:
    """Return where servers, and their checks, are."""
    found = {(address, int(port)) for address, port, _ in _SERVER.findall(text)}
    others = _DEFAULT_SERVER.findall(text) + re.findall(r"^\s*server\s.*\bport (\d+)", text, re.MULTILINE)
    found |= {(address, int(port)) for address, _ in tuple(found) for port in others}
    return sorted(found)


def binds(text: str) -> Iterator[Endpoint]:
    """Yield the address and port of each bind; "" is every address."""
    for words in _BIND.findall(text):
        for each in words.strip('"').split(","):
            found = _ADDRESS.fullmatch(each.replace("*", ""))
            if found is None:
                raise ValueError(f"no bind that this test knows: {each}")
            address = "" if found[1] in {"", "::", "0.0.0.0"} else found[1]
            yield address, int(found[3] or found[2])


def statistics(text: str) -> frozenset[Endpoint]:
    """Return the binds of sections that show statistics, which tests of the program `stats` look at."""
    sections = re.split(r"^(?=\w)", text, flags=re.MULTILINE)
    shown = [each for each in sections if re.search(r"^\s+stats\s", each, re.MULTILINE)]
    behind = {each.split()[1] for each in shown if each.startswith("backend")}
    forwards = re.compile(r"^\s+default_backend\s+(\S+)", re.MULTILINE)
    shown += [each for each in sections if behind & set(forwards.findall(each))]
    proxies = (each for each in shown if each.startswith(("listen", "frontend")))
    return frozenset(bind for each in proxies for bind in binds(each))


def _shorter(found: re.Match[str]) -> str:
    """Return a time of checks a tenth as long, and no shorter than a test can keep up with."""
    seconds = int(found[2]) * _UNITS[found[3]] / 10
    return f"{found[1]} {round(max(seconds, FASTEST) * 1000)}ms"
