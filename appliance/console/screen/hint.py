"""Problems and next steps on the screen: marked with `!`, folded to a console's width."""

import textwrap
from typing import Final

_WIDTH: Final = 78


def hint(message: str) -> list[str]:
    """Return the message as lines of at most 78 characters, the first one with `!`."""
    return textwrap.wrap(message, _WIDTH, initial_indent="  ! ", subsequent_indent="    ")
