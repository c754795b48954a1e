"""The segments that virtual IPs are on, from the kernel's interfaces: finds the peers that are on none."""

from collections.abc import Iterator
from typing import Final

from appliance.core.linger.segment import objection, off_segment
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.netlink.links import Links
from appliance.wire.lines.control import AnswerProblem

_LOOKED: Final = 1.0  # seconds between two checks


class Segments:
    """The networks of this machine's interfaces. Functions raise OSError."""

    def __init__(self) -> None:
        self._links: Links | None = None
        self._looked_at = float("-inf")
        self._trouble = ""

    def trouble(self, snapshot: Snapshot, now: float) -> str:
        """Return why connections cannot move to some peers, "" if they can; called repeatedly."""
        if now - self._looked_at >= _LOOKED:
            self._looked_at = now
            self._trouble = "; ".join(self._objections(snapshot).values())
        return self._trouble

    def objections(self, snapshot: Snapshot | None, proposed: Snapshot) -> Iterator[AnswerProblem]:
        """Yield why connections cannot move with a proposed snapshot, without reasons that exist already."""
        present = self._objections(snapshot) if snapshot else {}
        for (name, peer), why in self._objections(proposed).items():
            if (name, peer) not in present:
                yield AnswerProblem(message=why, path=f"virtual_ips.{name}.peers")

    def close(self) -> None:
        """Close the sockets."""
        links, self._links = self._links, None
        if links is not None:
            links.close()

    def _objections(self, snapshot: Snapshot) -> dict[tuple[str, str], str]:
        if snapshot.linger is None:
            return {}
        if self._links is None:
            self._links = Links()
        self._links.read()
        found = off_segment(snapshot.virtual_routers, self._own)
        return {(router.name, peer): objection(router, peer) for router, peer in found}

    def _own(self, interface: str) -> tuple[str, ...]:
        link = self._links.state(interface) if self._links else None
        return link.own if link else ()
