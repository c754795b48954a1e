"""A websocket server and a client with one connection, both of Debian's python3-websockets."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from support.processes.processes import end

PACKAGE: Final = "/usr/lib/python3/dist-packages/websockets"
"""What a test needs that uses this."""

_PROGRAM: Final = Path(__file__).with_name("websocket_peer.py")


@contextlib.contextmanager
def websocket_server(port: int) -> Iterator[None]:
    """Run a server that answers each message with the same one."""
    with _running("server", str(port)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield


class WebsocketClient:
    """A client that holds one connection; it pings each second, and ends with an error where that fails."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin, self._stdout = stdin, stdout

    def echo(self, text: str) -> str:
        """Send a message and return the answer, "" where there is no connection any more."""
        self._stdin.write(f"{text}\n")
        self._stdin.flush()
        return self._stdout.readline().strip()


@contextlib.contextmanager
def websocket_client(url: str) -> Iterator[WebsocketClient]:
    """Run a client of a server."""
    with _running("client", url) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield WebsocketClient(process.stdin, process.stdout)


@contextlib.contextmanager
def _running(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = ["/usr/bin/python3", "-I", str(_PROGRAM), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            end(process)  # type: ignore[arg-type]  # it reads no output
