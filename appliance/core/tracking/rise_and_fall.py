"""The verdict of one track over time: from results of its checks to up or down.

`rise` and `fall` are keepalived's: how many results in a row change the verdict. The first result alone
decides, whatever it is, so that a start need not wait for `rise` checks.
"""


class RiseAndFall:
    """The verdict of one track; `up` None: no verdict yet. `streak` results in a row contradict it."""

    __slots__ = ("fall", "rise", "streak", "up")

    def __init__(self, *, rise: int, fall: int) -> None:
        self.rise = rise
        self.fall = fall
        self.up: bool | None = None
        self.streak = 0

    def result(self, up: bool) -> bool:  # noqa: FBT001  # the result is the argument
        """Count a result; return the verdict."""
        self.streak = 0 if up is self.up else self.streak + 1
        if self.up is None or self.streak >= (self.rise if up else self.fall):
            self.up = up
            self.streak = 0
        return self.up
