"""Reports what a group of instances has done: to the log, notify commands and waiting operators."""

from collections.abc import Iterable
from typing import Protocol

from appliance.core.vrrp.election import Entered, SplitBrain, UnexpectedEvent
from appliance.vrrp.instance.vrrp_instance import VrrpInstance


class GroupObserver(Protocol):
    """The observer that `RouterGroup` calls; `RouterReports` in the program."""

    def entered(self, instance: VrrpInstance, entered: Entered) -> None:
        """Report that an instance has changed its state."""

    def split_brain(self, instance: VrrpInstance, split: SplitBrain) -> None:
        """Report another active router, noticed while the instance was active."""

    def handed_over(self, instance: VrrpInstance, successor: str | None) -> None:
        """Report the end of a planned hand-over, None if no node took over."""

    def cut_short(self, instance: VrrpInstance, why: str) -> None:
        """Report that a planned hand-over ends early because the instance is stopped or replaced."""

    def unexpected(self, instance: VrrpInstance, unexpected: UnexpectedEvent) -> None:
        """Report an event that cannot happen in the election's state, which the election ignored."""

    def late(self, names: Iterable[str], seconds: float, now: float) -> None:
        """Report that a group was woken too late, and by how many seconds; `names` are its instances."""

    def crashed(self, names: Iterable[str], error: Exception) -> None:
        """Report a bug in the group of these instances."""
