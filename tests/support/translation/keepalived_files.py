"""A keepalived.conf in a test: read as the appliance does, with files that exist in the test only."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from appliance.model.document.tree import Plain, plain
from appliance.translation.keepalived.reader import translate
from appliance.translation.translation import Outcome, Translation

PATH: Final = "/etc/keepalived/keepalived.conf"
BOTH: Final = ("proxy-api", "proxy-ingress")


_PROGRAMS: Final = dict.fromkeys(("/c", "/bin/check"), "\x7fELF")
"""Commands of checks that are no scripts."""


class Files:
    """Files by path: read and matched as those of a machine."""

    def __init__(self, contents: Mapping[str, str | OSError]) -> None:
        self._contents = contents

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        found = self._contents.get(path, FileNotFoundError(2, "No such file or directory"))
        if isinstance(found, OSError):
            raise found
        return found.encode(errors="surrogateescape")

    def matching(self, pattern: str) -> Sequence[str]:
        """Return the paths that a pattern matches, in no order."""
        return [path for path in reversed(self._contents) if fnmatchcase(path, pattern)]


def translated(
    text: str,
    *,
    files: Mapping[str, str | OSError] | None = None,
    programs: Sequence[str] = BOTH,
    hostname: str = "lb-0.example.com",
    environment: Mapping[str, str] | None = None,
) -> Translation:
    """Translate a text; `files` are further ones that the machine has."""
    machine = Files({PATH: text, **_PROGRAMS, **(files or {})})
    return translate(
        PATH,
        read=machine.read,
        matching=machine.matching,
        hostname=hostname,
        environment=environment or {},
        programs=programs,
    )


def instance(*lines: str) -> str:
    """Return a `vrrp_instance VI` with an interface, a router id, an address and further lines."""
    own = ("interface eth0", "virtual_router_id 7", "virtual_ipaddress { 192.0.2.10/24 }")
    return "\n".join(("vrrp_instance VI {", *own, *lines, "}", ""))


def virtual_ips(translation: Translation) -> dict[str, Plain]:
    """Return the virtual IPs of a translation as plain values."""
    return mapping(plain(translation.root), "virtual_ips")


def mapping(value: Plain, *path: str) -> dict[str, Plain]:
    """Return the mapping at a path."""
    for step in path:
        assert isinstance(value, dict), value
        value = value[step]
    assert isinstance(value, dict), value
    return value


def told(translation: Translation, *outcomes: Outcome) -> list[tuple[int, int, str]]:
    """Return line, column and reason of each outcome that is one of these; without any, those not KEPT."""
    wanted = outcomes or (Outcome.CHANGED, Outcome.IGNORED, Outcome.REFUSED)
    return [
        (each.place.line, each.place.column, each.reason or "")
        for each in translation.lines
        if each.outcome in wanted
    ]
