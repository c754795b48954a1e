"""The data on the screen of a virtual machine: current addresses, host keys and status."""

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.console.status.status import current_status
from appliance.core.status.status import Status
from appliance.guest.host_keys import SSH, HostKey, host_keys
from appliance.model.paths import Paths
from appliance.net.netlink.links import Links

_LOOPBACK: Final = "lo"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenFacts:
    """The data of the screen.

    `configured`: the operator's file exists. `addresses` are those of each interface but `lo`, with their
    prefix lengths. Operators compare `host_keys` with those that ssh shows at the first login.
    """

    host: str
    config: Path
    configured: bool
    addresses: tuple[tuple[str, tuple[str, ...]], ...]
    host_keys: tuple[HostKey, ...]
    status: Status


def current_facts(paths: Paths, links: Links | None = None) -> ScreenFacts:
    """Return the facts; `links` None reads the interfaces once."""
    if links is None:
        with Links() as own:
            return current_facts(paths, own)
    return ScreenFacts(
        host=socket.gethostname(),
        config=paths.config,
        configured=any(each.exists() for each in paths.operators_files),
        addresses=interface_addresses(links),
        host_keys=host_keys(SSH),
        status=current_status(paths),
    )


def interface_addresses(links: Links) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the addresses of each interface but `lo`, sorted by its name."""
    with contextlib.suppress(OSError):  # the kernel did not answer: the addresses known before are shown
        links.read()
    names = sorted(name for _, name in socket.if_nameindex() if name != _LOOPBACK)
    found = ((name, link.addresses) for name in names if (link := links.state(name)))
    return tuple((name, addresses) for name, addresses in found if addresses)
