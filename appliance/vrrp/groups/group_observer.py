"""Who is told what has happened in a group of instances, after it was done: log, notify commands, answers."""

from collections.abc import Iterable
from typing import Protocol

from appliance.core.vrrp.election import Entered, SplitBrain, UnexpectedEvent
from appliance.vrrp.instance.vrrp_instance import VrrpInstance


class GroupObserver(Protocol):
    """Called by `RouterGroup`; `RouterReports` in the program."""

    def entered(self, instance: VrrpInstance, entered: Entered) -> None:
        """Report that an instance has changed its state."""

    def split_brain(self, instance: VrrpInstance, split: SplitBrain) -> None:
        """Report another active that was heard while the instance was active."""

    def handed_over(self, instance: VrrpInstance, successor: str | None) -> None:
        """Report the end of a planned hand-over, None for nobody who took over."""

    def cut_short(self, instance: VrrpInstance, why: str) -> None:
        """Report that a planned hand-over ends early, because the instance is stopped or replaced."""

    def unexpected(self, instance: VrrpInstance, unexpected: UnexpectedEvent) -> None:
        """Report an event that cannot happen in the election's state; the election has ignored it."""

    def late(self, names: Iterable[str], seconds: float, now: float) -> None:
        """Report that a group was woken too late, and by how many seconds; `names` are its instances."""

    def crashed(self, names: Iterable[str], error: Exception) -> None:
        """Report a bug that was met in the group of these instances."""
