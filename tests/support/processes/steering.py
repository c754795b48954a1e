"""The other end of `support.processes.remote`: an asyncio program obeys the lines on its stdin."""

import asyncio
import json
import resource
import sys
from collections.abc import Callable, Mapping

Commands = Mapping[str, Callable[[dict[str, object]], dict[str, object]]]


def say(values: Mapping[str, object]) -> None:
    """Print one object as a line."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


async def obey(commands: Commands) -> None:
    """Answer commands until stdin ends. A descriptor limit that may be raised is."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        values = json.loads(line)
        say(commands[values.pop("command")](values))
