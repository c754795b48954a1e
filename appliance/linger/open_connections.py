"""Counts this node's connections of an address: those of its sockets, and those that the kernel forwards.

When `longest` is over they are ended: sockets by the kernel, so that old workers and other programs need not
be asked; forwarded connections by `forward`, which knows how to notify both ends.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import gevent

from appliance.core.forwarding.mark_numbers import MARK, MARK_MASK
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD
from appliance.net.control.control_client import ControlUnavailable, ask, status_of
from appliance.net.netlink.conntrack import Conntrack
from appliance.net.netlink.socket_connections import SocketConnections
from appliance.wire.lines.control import Question
from appliance.wire.lines.forward_status import ForwardStatus

_AT_ONCE: Final = 256  # connections after which others get their turn
_ASKED: Final = 5.0  # seconds for an answer of `forward`; the other nodes wait longer for a report


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How many connections of an address were ended, and why some were not, "" if all were."""

    connections: int
    trouble: str


class OpenConnections:
    """The kernel's lists. Functions raise OSError."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._sockets = SocketConnections()
        self._conntrack: Conntrack | None = None

    def close(self) -> None:
        """Close the sockets of netlink."""
        self._sockets.close()
        if self._conntrack is not None:
            self._conntrack.close()

    def count(
        self, addresses: Iterable[str], *, forwards: bool, synced: Collection[str] = ()
    ) -> dict[str, int]:
        """Return the number of connections of each address.

        `forwards` is whether frontends have `forward: kernel`. Other nodes have the connections of addresses
        in `synced` (`sync: true`), too: these are not counted, unless nobody learns them.
        """
        forwarded = self._forwarded() if forwards else Counter[str]()
        for each in self._continued() if synced and forwarded else ():
            forwarded.pop(each, None)
        return {each: self._sockets.count(each) + forwarded[each] for each in addresses}

    def cut(self, address: str, *, forwards: bool) -> Cut:
        """End all connections of an address; `forwards` as for `count`."""
        ended, troubles = 0, list[str]()
        try:
            ended += self._cut_sockets(address)
        except OSError as error:
            troubles.append(f"the kernel cannot close sockets: {error.strerror or error}")
        if forwards:
            try:
                ended += self._cut_forwarded(address)
            except ControlUnavailable as error:
                troubles.append(str(error))
        return Cut(connections=ended, trouble="; ".join(troubles))

    def _cut_sockets(self, address: str) -> int:
        found, ended = self._sockets.at(address), 0
        for start in range(0, len(found), _AT_ONCE):
            ended += self._sockets.end(found[start : start + _AT_ONCE])
            gevent.sleep(0)
        return ended

    def _cut_forwarded(self, address: str) -> int:
        question = Question(command="kill", values={"destination": address})
        answer = ask(self._paths.control(FORWARD), question, timeout=_ASKED)
        killed = answer.values.get("killed")
        if not isinstance(killed, int):
            raise ControlUnavailable(f"{FORWARD} refuses: {answer.reason}")
        return killed

    def _continued(self) -> Collection[str]:
        """Return the addresses whose forwarded connections other nodes have."""
        status = status_of(self._paths.control(FORWARD), ForwardStatus, timeout=_ASKED)
        sync = status.sync if status else None
        return sync.addresses if sync and not sync.unlearnt else ()

    def _forwarded(self) -> Counter[str]:
        if self._conntrack is None:
            self._conntrack = Conntrack()
        found = self._conntrack.connections(MARK, MARK_MASK)
        return Counter(each.client.destination for each in found if each.open)
