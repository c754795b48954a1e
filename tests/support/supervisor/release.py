"""Another release of the appliance: a copy of this one with another version, and with changes where given."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from support.processes.processes import alive
from support.processes.waiting import wait_until

import appliance
from appliance.model.paths import Paths

DIES: Final = """\
import sys, types

class Dies(types.ModuleType):
    main = property(lambda _: sys.exit("it does not like this machine"))

sys.modules[__name__].__class__ = Dies
if __name__ == "__main__":
    sys.modules[__name__].main
"""
"""Put before a program's module: it can be loaded, and ends at once where it is run, by an exec or a fork."""

_SOURCE: Final = Path(appliance.__file__).parent


class Release:
    """A package of its own below `root`; `changes` are texts put before modules, by their paths in it."""

    def __init__(self, root: Path, version: str, *, changes: Mapping[str, str] | None = None) -> None:
        self.version = version
        self.root = root
        self._package = root / "appliance"
        shutil.copytree(_SOURCE, self._package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(_SOURCE.parent / "config", root / "config")
        first = self._package / "__init__.py"
        first.write_text(first.read_text().replace(appliance.__version__, version))
        for name, text in (changes or {}).items():
            self.put_before(name, text)

    def put_before(self, name: str, text: str) -> None:
        """Put lines before everything else in a module."""
        path = self._package / name
        path.write_text(text + path.read_text())

    def change(self, name: str, old: re.Pattern[bytes], new: bytes) -> None:
        """Put other text in the one place of a module that `old` finds."""
        path = self._package / name
        text, count = old.subn(new, path.read_bytes())
        assert count == 1, f"{name} has {old.pattern!r} {count} times"
        path.write_bytes(text)

    def environment(self, paths: Paths) -> dict[str, str]:
        """Return the environment in which everything is of this release."""
        return {**os.environ, **paths.environment(), "PYTHONPATH": str(self.root)}

    def run(self, paths: Paths, log: Path, *options: str) -> "subprocess.Popen[bytes]":
        """Start it in the runtime directory of another one; what it says goes to `log`."""
        return self.launch(paths, log, (*_COMMAND, "run", *options))

    def launch(self, paths: Paths, log: Path, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a command of this release."""
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment(paths),
                start_new_session=True,
                cwd="/",
            )

    def command(self, *arguments: str, paths: Paths) -> "subprocess.CompletedProcess[str]":
        """Run its command, as an operator who has installed it, whatever release runs."""
        return subprocess.run(
            [self.script(), *arguments],
            env={**os.environ, **paths.environment()},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def script(self) -> Path:
        """Return its `appliance`, which is all that an operator knows of it."""
        path = self.root / "bin" / "appliance"
        if not path.exists():
            path.parent.mkdir()
            path.write_text(_SCRIPT.format(python=sys.executable, root=str(self.root)))
            path.chmod(0o755)
        return path


class NotOurChild(subprocess.Popen[bytes]):
    """A process that another one has started, for those who know what to do with a child of theirs.

    Its exit status is its parent's to know: it counts as 0.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """Return 0 when it has ended."""
        return None if alive(self.pid) else 0

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        wait_until(lambda: not alive(self.pid), what=f"process {self.pid} ends", timeout=timeout or 60.0)
        return 0

    def send_signal(self, sig: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, sig)


_COMMAND: Final = (sys.executable, "-P", "-m", "appliance.console")
_SCRIPT: Final = """\
#!{python} -P
import os, sys
sys.path.insert(0, {root!r})
os.environ["PYTHONPATH"] = {root!r}
from appliance.console.__main__ import run
run()
"""
