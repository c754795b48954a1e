"""What became of take-overs by other appliances, since the runtime directory was begun."""

from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """One that went well: when (Unix seconds), and from which release and process by which release."""

    when: float
    version: str
    pid: _Count
    by: str


class FailedTakeOver(msgspec.Struct, frozen=True, kw_only=True):
    """One that did not: when (Unix seconds), the release and process that wanted to, and why it could not.

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
        """Return the same with one more that went well."""
        return msgspec.structs.replace(self, done=self.done + 1, last=last)

    def with_failed(self, last: FailedTakeOver) -> "TakeOvers":
        """Return the same with one more that did not."""
        return msgspec.structs.replace(self, failed=self.failed + 1, last_failed=last)

    @property
    def failure(self) -> FailedTakeOver | None:
        """Return the last one that failed, None where one went well after it."""
        if self.last and self.last_failed and self.last.when > self.last_failed.when:
            return None
        return self.last_failed
