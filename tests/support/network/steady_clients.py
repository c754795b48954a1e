"""Connections that are never silent for long: `python steady_clients.py HOST PORT COUNT PERIOD`, until TERM.

Each sends a byte every PERIOD seconds to a greeter, which answers by its name. "open" is printed when all
have had a first answer. USR1 has all ask at once; "answered" is printed when none waits any more. At the end
one JSON line: how many ended before their time, how many each name answered last, how many answers there
were, and the longest wait for one.
"""

import json
import selectors
import signal
import socket
import sys
import time
from collections import Counter


class Steady:
    """One connection: when it asked last and has no answer yet, 0.0 for none, and who answered last."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=20)
        self.socket.setblocking(False)  # noqa: FBT003  # socket's own signature
        self.asked = time.monotonic()  # a greeter says its name first
        self.name = ""
        self.answers = 0
        self.ended = ""

    def ask(self, now: float) -> None:
        """Send a byte unless an answer is due."""
        if self.asked or self.ended:
            return
        try:
            self.socket.send(b".")
            self.asked = now
        except OSError as error:
            self.ended = str(error)

    def answer(self, now: float) -> float:
        """Read; return how long the answer took, 0.0 for none."""
        try:
            data = self.socket.recv(4096)
        except BlockingIOError:
            return 0.0
        except OSError as error:
            self.ended = str(error)
            return 0.0
        if not data:
            self.ended = "closed"
            return 0.0
        self.name, waited, self.asked = data.decode().split()[-1], now - self.asked, 0.0
        self.answers += 1
        return waited


def main() -> None:
    """Ask until asked to end."""
    host, port, count, period = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    told: list[int] = []
    wanted: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    signal.signal(signal.SIGUSR1, lambda number, _: wanted.append(number))
    selector = selectors.DefaultSelector()
    clients = [Steady(host, port) for _ in range(count)]
    for each in clients:
        selector.register(each.socket, selectors.EVENT_READ, each)
    longest, next_round, is_open = 0.0, time.monotonic() + period, False
    while not told:
        wait = max(0.0, min(next_round - time.monotonic(), 0.05))
        longest = max(longest, _read(selector, wait))
        if not is_open and all(each.name for each in clients):
            is_open, longest = True, 0.0
            sys.stdout.write("open\n")
            sys.stdout.flush()
        if wanted == [0] and not any(map(_waits, clients)):
            wanted.clear()
            sys.stdout.write("answered\n")
            sys.stdout.flush()
        if wanted and wanted[0]:
            wanted[:], next_round = [0], 0.0
        if time.monotonic() >= next_round:
            next_round = time.monotonic() + period
            for each in clients:
                each.ask(time.monotonic())
    longest = max(longest, _read(selector, 0.0))  # what came before the end counts
    _tell(clients, longest, time.monotonic())


def _read(selector: selectors.BaseSelector, wait: float) -> float:
    """Read the answers that have come, and return the longest wait for one."""
    longest = 0.0
    for key, _ in selector.select(wait):
        longest = max(longest, key.data.answer(time.monotonic()))
        if key.data.ended:
            selector.unregister(key.fileobj)
    return longest


def _waits(client: Steady) -> bool:
    return bool(client.asked) and not client.ended


def _tell(clients: list[Steady], longest: float, now: float) -> None:
    longest = max([longest, *(now - each.asked for each in clients if each.asked and not each.ended)])
    sys.stdout.write(
        json.dumps(
            {
                "ended": sum(1 for each in clients if each.ended),
                "why": dict(Counter(each.ended for each in clients if each.ended)),
                "by": dict(Counter(each.name for each in clients)),
                "answers": sum(each.answers for each in clients),
                "longest": longest,
            }
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
