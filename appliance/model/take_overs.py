"""Results of take-overs by other appliances, since the runtime directory was made."""

from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """A successful one: when (Unix seconds), and from which release and process by which release."""

    when: float
    version: str
    pid: _Count
    by: str


class FailedTakeOver(msgspec.Struct, frozen=True, kw_only=True):
    """A failed one: when (Unix seconds), the release and process that tried, and why it failed.

    `version` is "" and `pid` 0 for one that could not even ask.
    """

    when: float
    version: str
    pid: _Count
    reason: str


class TakeOvers(msgspec.Struct, frozen=True, kw_only=True):
    """How many there were, `done` and `failed`, and the last one of each kind."""

    done: _Count = 0
    failed: _Count = 0
    last: TakenOver | None = None
    last_failed: FailedTakeOver | None = None

    def with_done(self, last: TakenOver) -> "TakeOvers":
        """Return the same with one more success."""
        return msgspec.structs.replace(self, done=self.done + 1, last=last)

    def with_failed(self, last: FailedTakeOver) -> "TakeOvers":
        """Return the same with one more failure."""
        return msgspec.structs.replace(self, failed=self.failed + 1, last_failed=last)

    @property
    def failure(self) -> FailedTakeOver | None:
        """Return the last failure, None if one succeeded after it."""
        if self.last and self.last_failed and self.last.when > self.last_failed.when:
            return None
        return self.last_failed
