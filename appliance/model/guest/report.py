"""The report about a virtual machine's properties, for `appliance guest show` and `appliance status`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from appliance.model.guest.properties import BY_KEY
from appliance.model.messages.quoting import printable

_MOST_PROBLEMS: Final = 50
_LONGEST_LINE: Final = 1000


class Origin(StrEnum):
    """Where the properties came from; REMEMBERED: from an earlier start, NONE: from nowhere."""

    VMWARE = "vmware"
    CREDENTIAL = "credential"
    ISO = "iso"
    REMEMBERED = "remembered"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestProblem:
    """One problem, with the correction; `key` is its property if any, `line` and `column` are in its YAML."""

    message: str
    key: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(each) for each in (self.line, self.column) if each is not None)
        label = f"{BY_KEY[self.key].label} ({self.key})" if self.key else ""
        return legible(": ".join(each for each in (label, place, self.message) if each))


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestReport:
    """The whole report.

    `applied_at` is Unix seconds; long `properties` are shortened. `login_keys` is how many keys open the
    machine, `management` the only interface that ssh answers on, if there is one for that.
    """

    origin: Origin
    applied_at: float
    properties: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[GuestProblem, ...] = ()
    notes: tuple[str, ...] = ()
    login_keys: int = 0
    management: str | None = None


def foremost(problems: Sequence[GuestProblem]) -> tuple[GuestProblem, ...]:
    """Return the first 50 problems, and how many more there are."""
    if len(problems) <= _MOST_PROBLEMS:
        return tuple(problems)
    more = f"and {len(problems) - _MOST_PROBLEMS} more problems"
    return (*problems[:_MOST_PROBLEMS], GuestProblem(message=more))


def shortened(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties in the form to show: of a key both ends, of a whole file its length."""
    return {key: _short(key, value) for key, value in properties.items()}


def _short(key: str, value: str) -> str:
    if BY_KEY[key].secret:
        return "(given)"
    if key in ("config", "ca_bundle"):
        return f"({len(value)} characters)"
    if key == "ssh_key" and len(value) > 40:
        value = f"{value[:20]}...{value[-16:]}"
    return legible(value)


def legible(text: str) -> str:
    """Return a text from outside as one line of bounded length, without control characters."""
    return printable(text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + "...")
