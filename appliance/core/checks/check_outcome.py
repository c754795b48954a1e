"""Result of one check of a server."""

from dataclasses import dataclass
from typing import Final

from appliance.model.check_results import UNREACHABLE, CheckResult

_PASSED: Final = frozenset({CheckResult.L4OK, CheckResult.L6OK, CheckResult.L7OK})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """The result of one check.

    `status` is the HTTP status, 0 if the check uses no HTTP or got no status. `duration` is in seconds.
    `detail` is why the check failed, in words, "" when it passed. `reused`: it was made on a connection of
    earlier checks.
    """

    result: CheckResult
    status: int = 0
    duration: float = 0.0
    detail: str = ""
    reused: bool = False

    @property
    def passed(self) -> bool:
        """Whether the check found the server fit for traffic."""
        return self.result in _PASSED

    @property
    def unreachable(self) -> bool:
        """Whether the check failed because nothing answered, not because of the answer."""
        return self.result in UNREACHABLE


UNCHECKED: Final = CheckOutcome(result=CheckResult.UNCHECKED)
"""Used as the last outcome until the first check has ended."""
