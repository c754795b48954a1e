"""A websocket server and client of Debian's package, run by Debian's Python; see `support.peers.websocket`.

`server PORT` answers each message with the same text. `client URL` has one connection: for each line of its
input it sends that as a message, and prints the answer.
"""

import asyncio
import sys

import websockets  # type: ignore[import-not-found]  # Debian's package, for Debian's Python


async def _serve(port: int) -> None:
    async def echo(connection: object) -> None:
        async for message in connection:  # type: ignore[attr-defined]  # see above
            await connection.send(message)  # type: ignore[attr-defined]

    async with websockets.serve(echo, "127.0.0.1", port, ping_interval=1):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Future()


async def _talk(url: str) -> None:
    loop = asyncio.get_running_loop()
    async with websockets.connect(url, ping_interval=1) as connection:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            await connection.send(line.strip())
            sys.stdout.write(f"{await connection.recv()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    what, where = sys.argv[1:]
    asyncio.run(_serve(int(where)) if what == "server" else _talk(where))
