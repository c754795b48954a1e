"""A command in a terminal of its own: what is on its screen, and keys for it.

The screen is pyte's, which obeys escape sequences as a terminal does.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self

import pyte
from support.processes.processes import end
from support.processes.waiting import wait_until

_CHUNK: Final = 65536
_LAST: Final = 2000  # bytes in a failure's message
_KEYS: Final = {
    "up": b"\x1bOA",
    "down": b"\x1bOB",
    "enter": b"\r",
    "escape": b"\x1b",
    "tab": b"\t",
    "backspace": b"\x7f",
    "ctrl-c": b"\x03",
}


class InTerminal:
    """A running command. At the end of its context it is ended, if it is there still."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        term: str = "xterm",
        locale: str = "C.UTF-8",
        width: int = 80,
        height: int = 24,
    ) -> None:
        self._screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self._master, self._slave = pty.openpty()
        self._set_size(width, height)
        self.modes = termios.tcgetattr(self._slave)
        plain = {key: each for key, each in environment.items() if key not in ("LINES", "COLUMNS")}
        self.process = subprocess.Popen(
            command,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**plain, "TERM": term, "LC_ALL": locale},
            start_new_session=True,
            # The terminal is the one that Ctrl-C and a hang-up come from.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # one call to the kernel
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self.process)
        with contextlib.suppress(OSError):
            os.close(self._slave)
        self.close()

    @property
    def text(self) -> str:
        """What is on the screen now, line by line."""
        self._take()
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def shows_cursor(self) -> bool:
        """Whether the cursor can be seen."""
        self._take()
        return not self._screen.cursor.hidden

    def wait_for(self, condition: str | Callable[[str], object], *, timeout: float = 90.0) -> str:
        """Return the first screen that has a text, or for which a condition holds."""
        holds = (lambda seen: condition in seen) if isinstance(condition, str) else condition
        found = [""]

        def look() -> bool:
            found[0] = self.text
            return bool(holds(found[0]))

        try:
            wait_until(look, what=f"the screen shows {condition!r}", timeout=timeout)
        except AssertionError as error:
            last = self.raw[-_LAST:]
            raise AssertionError(f"{error}\n--- the screen\n{found[0]}\n--- last\n{last!r}") from error
        return found[0]

    def press(self, *keys: str) -> None:
        """Press keys by their names; any other text is typed."""
        for key in keys:
            os.write(self._master, _KEYS.get(key, key.encode()))

    def resize(self, width: int, height: int) -> None:
        """Give the terminal another size, as a window does."""
        self._take()
        self._screen.resize(lines=height, columns=width)
        self._set_size(width, height)

    def modes_now(self) -> list[object]:
        """Return the settings of the terminal, to be compared with `modes`."""
        return termios.tcgetattr(self._slave)

    def close(self) -> None:
        """Close the terminal's window: the command gets SIGHUP, and reads the end."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def wait(self) -> int:
        """Return the exit status."""

        def ended() -> bool:
            self._take()
            return self.process.poll() is not None

        wait_until(ended, what="the command has ended", timeout=90.0)
        return self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command."""
        self.process.send_signal(number)

    def _set_size(self, width: int, height: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def _take(self) -> None:
        while self._master >= 0 and select.select([self._master], [], [], 0.0)[0]:
            try:
                data = os.read(self._master, _CHUNK)
            except OSError:  # nobody has the other side any more
                return
            self.raw += data
            self._stream.feed(data)
