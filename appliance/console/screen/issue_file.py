"""The file in which agetty finds what it shows above the login prompt (issue(5), /run/issue.d)."""

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

_AGETTY_SECONDS: Final = 10.0


def write_issue(screen: str, issue: Path) -> None:
    """Write the screen to the file and tell agetty, unless the file has this text already.

    Every `agetty --reload` draws the console again, under the fingers of whoever is typing.
    """
    issue = issue.resolve()  # a rename would replace a symbolic link instead of the file it leads to
    with contextlib.suppress(OSError):
        if issue.read_text(encoding="utf-8") == screen:
            return
    issue.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    scratch = issue.with_name(f".{issue.name}.new")  # agetty reads *.issue only
    scratch.write_text(screen, encoding="utf-8")
    scratch.chmod(0o644)
    scratch.replace(issue)
    agetty = shutil.which("agetty")
    if agetty is not None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([agetty, "--reload"], timeout=_AGETTY_SECONDS, check=False)  # noqa: S603  # no shell
