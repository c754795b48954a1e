"""One tracked thing over time: results go in, its verdict comes out.

`rise` and `fall` are keepalived's. The first result alone decides, whichever it is: a start need not wait for
`rise` checks.
"""


class RiseAndFall:
    """The verdict of one track; `up` None is no verdict yet. `streak` results in a row were against it."""

    __slots__ = ("fall", "rise", "streak", "up")

    def __init__(self, *, rise: int, fall: int) -> None:
        self.rise = rise
        self.fall = fall
        self.up: bool | None = None
        self.streak = 0

    def result(self, up: bool) -> bool:  # noqa: FBT001  # the result is the argument
        """Take a result; return the verdict."""
        self.streak = 0 if up is self.up else self.streak + 1
        if self.up is None or self.streak >= (self.rise if up else self.fall):
            self.up = up
            self.streak = 0
        return self.up
