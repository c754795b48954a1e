"""Whether a server that fails its checks answers at all.

A server that answers badly (L7STS, L7RSP) still ends its connections itself, such as an API server that shuts
down: its /readyz is red, and its requests are completed. If nothing comes from a server (L4CON, L4TOUT,
L6TOUT ...), no one ends its sessions. `on_down: auto` closes only those.
"""

from appliance.core.checks.check_outcome import CheckOutcome


class Reachability:
    """Counts the checks of one server without an answer; a bad answer, or being up, ends `unreachable`."""

    __slots__ = ("_unanswered", "unreachable")

    def __init__(self) -> None:
        self._unanswered = 0
        self.unreachable = False

    @property
    def in_question(self) -> bool:
        """Whether the last checks got no answer, but not yet enough of them in a row."""
        return bool(self._unanswered) and not self.unreachable

    def check_ended(self, outcome: CheckOutcome, *, needed: int) -> None:
        """Process an outcome; `needed` checks in a row must be without an answer.

        A bad answer counts at once: it cannot come from a server that is not there.
        """
        if outcome.unreachable:
            self._unanswered += 1
            self.unreachable = self.unreachable or self._unanswered >= needed
            return
        self._unanswered = 0
        if not outcome.passed:
            self.unreachable = False

    def count_anew(self) -> None:
        """Forget the checks in a row, but keep their result: another check begins."""
        self._unanswered = 0
