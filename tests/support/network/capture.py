"""What goes over a segment: tcpdump on its bridge, read while it runs."""

import contextlib
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self, TypeVar

from support.network.namespaces import Segment
from support.processes.processes import end
from support.processes.waiting import wait_until
from support.run import tools
from support.vrrp.vrrp_packets import Advert, Announcement, Packet, read

_FILTER: Final = "ip proto 112 or ip6 proto 112 or arp or (icmp6 and ip6[40] == 136)"
_FILE_HEADER: Final = 24
_RECORD_HEADER: Final = struct.Struct("=IIII")

_Kind = TypeVar("_Kind", bound=Packet)


class Capture:
    """A running tcpdump. `packets` grows as `read` is called. Use it as a context manager."""

    def __init__(self, segment: Segment) -> None:
        """Start it; on return every later packet is captured."""
        self.packets: list[Packet] = []
        self._offset = _FILE_HEADER
        self._directory = tempfile.TemporaryDirectory(prefix="lb-capture-")
        self._file = Path(self._directory.name) / "packets"
        self._log = Path(self._directory.name) / "log"
        command = [tools.path("tcpdump") or "tcpdump", "-i", "bridge", "-n", "-U", "--immediate-mode"]
        command += ["-Z", "root", "--time-stamp-precision=nano", "-w", str(self._file), _FILTER]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{segment.name}", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            wait_until(lambda: "listening on" in self._log.read_text(), what="tcpdump listens", pause=0.005)
            undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it and delete its file."""
        end(self._process)
        self._directory.cleanup()

    def read(self) -> list[Packet]:
        """Return everything captured so far, oldest first."""
        with self._file.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self.packets += self._parsed(data)
        return self.packets

    def adverts(self, **fields: object) -> list[Advert]:
        """Return the advertisements whose fields have these values."""
        return _matching(self.read(), Advert, fields)

    def announcements(self, **fields: object) -> list[Announcement]:
        """Return the gratuitous ARP and neighbour advertisements whose fields have these values."""
        return _matching(self.read(), Announcement, fields)

    def wait_for_advert(self, *, since: int = 0, pause: float = 0.002, **fields: object) -> Advert:
        """Wait for an advertisement after the first `since` packets with these fields, and return it."""
        return wait_until(
            lambda: _matching(self.read()[since:], Advert, fields),
            what=f"an advertisement with {fields}",
            pause=pause,
        )[0]

    def mark(self) -> int:
        """Return how many packets there are, for `since`."""
        return len(self.read())

    def _parsed(self, data: bytes) -> Iterator[Packet]:
        at = 0
        while len(data) - at >= _RECORD_HEADER.size:
            seconds, nanoseconds, size, _ = _RECORD_HEADER.unpack_from(data, at)
            start = at + _RECORD_HEADER.size
            if len(data) < start + size:
                return
            at = start + size
            self._offset += _RECORD_HEADER.size + size
            packet = read(data[start:at], at=seconds + nanoseconds / 1e9)
            if packet is not None:
                yield packet


def _matching(packets: list[Packet], kind: type[_Kind], fields: dict[str, object]) -> list[_Kind]:
    return [
        each
        for each in packets
        if isinstance(each, kind) and all(getattr(each, name) == value for name, value in fields.items())
    ]
