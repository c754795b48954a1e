"""The error of a command that cannot do its task: the reason and the next step."""

from typing import Final

import click

LOOK: Final = "`appliance status` shows what runs"
"""The next step if the state of the appliance is the reason."""


class Refused(click.ClickException):
    """Ends a command with status 1, a reason and the next step; a usage error is click's UsageError."""

    def __init__(self, message: str, *, step: str) -> None:
        super().__init__(message)
        self._step = step

    def format_message(self) -> str:
        """Return both, each on its own line."""
        return f"{self.message}\nNext: {self._step}"
