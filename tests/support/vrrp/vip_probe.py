"""Probes a virtual IP with numbered datagrams until its stdin ends, then says what happened in a JSON line.

`vip_probe.py ADDRESS PORT INTERVAL`, started in a node by `support.vrrp.vip_client`. A line on stdin is
answered by how many probes were sent and who answered last.
"""

import contextlib
import json
import select
import socket
import struct
import sys
import time
from typing import Final

_NUMBER: Final = struct.Struct("!Q")
_LAST_ANSWERS: Final = 0.25
"""How long answers are waited for after the last probe."""


class _Prober:
    def __init__(self, address: str, port: int, interval: float) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._target = (address, port)
        self._interval = interval
        self._sent: list[float] = []
        self._answers: dict[int, tuple[float, str]] = {}
        self._last = ""

    def run(self) -> None:
        """Probe until the end of stdin."""
        due = time.monotonic()
        while True:
            now = time.monotonic()
            if now >= due:
                self._send()
                # After a stall the missed probes are not sent in one burst: they would say nothing new.
                due = max(due + self._interval, now)
            ready, _, _ = select.select([self._socket, sys.stdin], [], [], max(0.0, due - time.monotonic()))
            if self._socket in ready:
                self._receive()
            if sys.stdin in ready:
                if not sys.stdin.buffer.readline():
                    return
                _say([len(self._sent), self._last])

    def finish(self) -> list[list[object]]:
        """Wait for the last answers, and return a row for each probe: sent, answered, by whom."""
        deadline = time.monotonic() + _LAST_ANSWERS
        while len(self._answers) < len(self._sent) and (left := deadline - time.monotonic()) > 0:
            select.select([self._socket], [], [], left)
            self._receive()
        return [[at, *self._answers.get(number, (0.0, ""))] for number, at in enumerate(self._sent)]

    def _send(self) -> None:
        self._sent.append(time.monotonic())
        # Where nobody has the address sending may fail: that is what is measured.
        with contextlib.suppress(OSError):
            self._socket.sendto(_NUMBER.pack(len(self._sent) - 1), self._target)

    def _receive(self) -> None:
        while True:
            try:
                data = self._socket.recv(64)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error to an earlier probe
            (number,) = _NUMBER.unpack_from(data)
            self._last = data[_NUMBER.size :].decode()
            self._answers.setdefault(number, (time.monotonic(), self._last))


def _say(value: object) -> None:
    sys.stdout.write(f"{json.dumps(value)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    prober = _Prober(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
    prober.run()
    _say(prober.finish())
