"""Install the Debian packages that tests and bench use, or say which are missing.

As root on Debian it installs what is missing, and only then touches the network. As a user, or elsewhere,
it prints what is missing and what that costs: the tests that need it are skipped, each with its reason.
A layer of tests as an argument leaves out what only the image's need, unless it is `image`.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.run import tools  # needs the line above


def main() -> int:
    """Install or report; returns the exit status."""
    only = set(sys.argv[1:]) - {"image"}
    wanted = sorted(set(tools.PACKAGES) - (tools.FOR_IMAGES if only else set()))
    absent = tools.missing(wanted)
    if not absent:
        _say("debian: every tool is there")
        return 0
    packages = sorted({tools.PACKAGES[tool] for tool in absent})
    if not tools.is_root() or tools.path("apt-get") is None:
        _say(f"debian: missing {', '.join(absent)}; tests that need them will be skipped")
        _say(f"debian: as root: apt-get install {' '.join(packages)}")
        return 0
    return _install(packages)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _install(packages: list[str]) -> int:
    _say(f"debian: installing {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # opensmtpd would take the place of the machine's own mail server.
    install = ["apt-get", "install", "-qy", "--no-remove", "--no-install-recommends", *packages]
    with _no_daemons():
        for command in (["apt-get", "update", "-q"], install):
            done = subprocess.run(
                command,
                env=environment,
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if done.returncode:
                _say(done.stdout)
                _say(f"debian: {' '.join(command)} failed; tests that need it will be skipped or fail")
                return done.returncode if tools.must_be_complete() else 0
    return 0


class _no_daemons:  # noqa: N801  # used as a function
    """Keep packages from starting their daemons: tests start their own (invoke-rc.d, policy-rc.d)."""

    _policy = Path("/usr/sbin/policy-rc.d")

    def __enter__(self) -> None:
        self._ours = not self._policy.exists()
        if self._ours:
            self._policy.write_text("#!/bin/sh\nexit 101\n")
            self._policy.chmod(0o755)

    def __exit__(self, *_: object) -> None:
        if self._ours:
            self._policy.unlink()


if __name__ == "__main__":
    sys.exit(main())
