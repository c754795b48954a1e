"""The programs that run as forks of supervisord, which has imported what they need.

`vrrp` has an interpreter of its own, as it locks its memory: all that it shared would be copied. So has
`announce`, which starts as seldom.
"""

from collections.abc import Sequence
from typing import Final

from appliance.core.program_table import PROGRAMS
from appliance.model.program_names import ANNOUNCE, VRRP
from appliance.net.process import python
from appliance.net.starting import forked_program
from appliance.net.starting.forked_program import ReleaseFiles

_ALONE: Final = frozenset({VRRP, ANNOUNCE})
_FORKED: Final = frozenset(
    tuple(python.command(each.module, *each.arguments)) for each in PROGRAMS if each.name not in _ALONE
)
_LOADED: Final = ("health", "proxy", "reload", "worker")
"""The programs that nearly every appliance runs; what the others need besides, each imports itself."""


class ProgramForks:
    """The programs that can be forked of this process, once it has loaded them."""

    def __init__(self) -> None:
        self._files = ReleaseFiles()
        self._possible = forked_program.is_possible()

    def load(self) -> None:
        """Import what programs need."""
        if self._possible:
            forked_program.load(f"appliance.programs.{each}" for each in _LOADED)

    def runs(self, words: Sequence[str]) -> bool:
        """Return whether a command is to be run by a fork: a program of ours, of the release that runs here.

        If another release has been installed, an interpreter of its own runs that one.
        """
        return self._possible and tuple(words) in _FORKED and not self._files.changed
