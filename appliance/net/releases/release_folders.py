"""The folders of releases, below /opt, and the links to the one that runs and the one before.

/opt/lb-appliance-0.1.0  /opt/lb-appliance-0.2.0
/opt/appliance -> lb-appliance-0.2.0            what the command and the service are
/opt/appliance.former -> lb-appliance-0.1.0     the way back
"""

import contextlib
import shutil
from pathlib import Path
from typing import Final

PLACE: Final = Path("/opt")
PREFIX: Final = "lb-appliance-"
"""The part before the version in the name of a release."""

_CURRENT: Final = "appliance"
_FORMER: Final = "appliance.former"


class ReleaseFolders:
    """All of them on this machine."""

    def __init__(self, place: Path = PLACE) -> None:
        self.place = place

    @property
    def current(self) -> str | None:
        """The name of the release that starts, None if it is not in these folders."""
        return self._linked(_CURRENT)

    @property
    def former(self) -> str | None:
        """The name of the one before it, None if there is none."""
        found = self._linked(_FORMER)
        return found if found and self.command(found).exists() else None

    def command(self, name: str) -> Path:
        """Return the `appliance` command of a release."""
        return self.place / name / "bin" / "appliance"

    def runs(self, name: str) -> bool:
        """Return whether a process runs by the interpreter of a release."""
        own = bytes(self.place / name / "bin") + b"/"
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended
                if each.read_bytes().startswith(own):
                    return True
        return False

    def prepare(self, name: str) -> None:
        """Create the links that `choose` renames, so that it needs no room on the disk. Raises OSError."""
        if current := self.current:
            self._prepare(_FORMER, current)
        self._prepare(_CURRENT, name)

    def choose(self, name: str) -> None:
        """Make a release the one that starts from now on; the current one becomes the former. Raises OSError.

        A link is renamed into its place, so there is always an appliance to start.
        """
        self.prepare(name)
        for link in (_FORMER, _CURRENT):
            with contextlib.suppress(FileNotFoundError):  # the first release has no former one
                self._scratch(link).replace(self.place / link)

    def by_hand(self, name: str) -> str:
        """Return the shell command for the work of `choose`, except the link to the former release."""
        link = self.place / _CURRENT
        return f"ln -sfn {name} {link}, if `appliance status` says that its version is in charge"

    def withdraw(self) -> None:
        """Remove what was prepared."""
        for link in (_FORMER, _CURRENT):
            self._scratch(link).unlink(missing_ok=True)

    def remove_others(self) -> tuple[str, ...]:
        """Remove all except the current and the former one, and return their names; raises OSError."""
        kept = {self.current, self.former}
        others = tuple(sorted(each.name for each in self.place.glob(f"{PREFIX}*") if each.name not in kept))
        for name in others:
            shutil.rmtree(self.place / name)
        return others

    def _linked(self, link: str) -> str | None:
        try:
            target = (self.place / link).readlink()
        except OSError:
            return None
        return target.name if len(target.parts) == 1 or target.parent == self.place else None

    def _prepare(self, link: str, name: str) -> None:
        scratch = self._scratch(link)
        if scratch.is_symlink() and scratch.readlink() == Path(name):
            return
        scratch.unlink(missing_ok=True)
        scratch.symlink_to(name)

    def _scratch(self, link: str) -> Path:
        return self.place / f"{link}.new"
