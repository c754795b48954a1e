"""The weight that an operator gives a server, in place of the configured one (HAProxy's `set weight`)."""

from dataclasses import dataclass
from typing import Final

MOST_WEIGHT: Final = 256
"""Largest weight of a server, as in HAProxy."""

MOST_PERCENT: Final = 100 * MOST_WEIGHT
"""Largest part of a weight, in percent: more has no further effect (HAProxy's own limit)."""

_LONGEST: Final = 8


class WeightError(ValueError):
    """The text is not a weight; the message describes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorWeight:
    """An operator's weight: `value` is absolute, 0 to 256, or a part of the configured one in percent.

    A part stays a part when the configuration changes. It may be a fraction: half of a weight of 1 is a half,
    while HAProxy rounds it down to 0 and takes the server out.
    """

    value: int
    percent: bool

    def of(self, configured: int) -> float:
        """Return the weight of a server with this configured one."""
        if not self.percent:
            return float(self.value)
        return min(configured * self.value / 100, float(MOST_WEIGHT))

    def keeps(self, configured: int) -> bool:
        """Return whether it equals the configured weight anyway."""
        return self.value == (100 if self.percent else configured)

    def __str__(self) -> str:
        return f"{self.value}%" if self.percent else str(self.value)


def operator_weight(text: str) -> OperatorWeight:
    """Return the weight of a text such as `30` or `50%`; raises WeightError."""
    number = text.removesuffix("%")
    percent = number != text
    most = MOST_PERCENT if percent else MOST_WEIGHT
    # isdecimal alone takes the digits of every alphabet.
    if len(text) > _LONGEST or not (number.isascii() and number.isdecimal()) or int(number) > most:
        raise WeightError(
            f"{text[:_LONGEST]!r} is not a weight; use 0 to {MOST_WEIGHT}, or a part of the configured "
            f"weight such as 50%, 100% gives that back"
        )
    return OperatorWeight(value=int(number), percent=percent)


def asked_weight(configured: int, operators: OperatorWeight | None) -> float:
    """Return the full weight of a server, before slow start: the operator's if there is one."""
    return float(configured) if operators is None else operators.of(configured)
