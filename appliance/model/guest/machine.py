"""The guest properties of the machine itself: its name, network, clock, and allowed logins.

A wrong part of a list is left out and the rest is used. Without any usable address the machine uses DHCP, so
that someone can reach it and correct the properties.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address, ip_interface
from typing import Final

from appliance.model.config.values.addresses import server_host
from appliance.model.guest import fields
from appliance.model.guest.public_keys import ssh_keys
from appliance.model.guest.reader import PropertyReader

_NO_GATEWAY: Final = "none"
_BEFORE_NETMASK: Final = re.compile(r"\s+(?=255\.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestMachine:
    """The machine's settings. Without addresses DHCP is used; without a name or keys the earlier ones stay.

    `addresses` have their prefix lengths; `gateways` has at most one of each family. `keys_complete` is false
    if a key could not be read: then the earlier keys stay valid too, because a truncated key must not replace
    the whole one.
    """

    host_name: str | None = None
    addresses: tuple[str, ...] = ()
    gateways: tuple[str, ...] = ()
    resolvers: tuple[str, ...] = ()
    time_servers: tuple[str, ...] = ()
    ssh_keys: tuple[str, ...] = ()
    keys_complete: bool = True


def machine(reader: PropertyReader) -> GuestMachine:
    """Return the machine's settings; the reader collects the problems."""
    addresses = tuple(_addresses(reader))
    if "address" in reader.given and not addresses:
        reader.notes.append("DHCP is asked for an address, because none of those given can be used")
    keys = ssh_keys(reader.given.get("ssh_key", ""))
    for message in keys.wrong:
        reader.warn("ssh_key", message)
    if "ssh_key" not in reader.given:
        reader.notes.append("no SSH public key was given: only who could log in before can do so now")
    return GuestMachine(
        host_name=reader.one("hostname", fields.host_name),
        addresses=addresses,
        gateways=tuple(_gateways(reader, addresses)),
        resolvers=reader.many("dns", fields.host_address),
        time_servers=reader.many("ntp", server_host),
        ssh_keys=keys.right,
        keys_complete=not keys.wrong,
    )


def _addresses(reader: PropertyReader) -> Iterable[str]:
    """Yield the machine's addresses, each once; a netmask may follow after a space."""
    seen: set[str] = set()
    text = _BEFORE_NETMASK.sub("/", reader.given.get("address", ""))
    for each in reader.many("address", fields.own_address, text=text):
        address = each.partition("/")[0]
        if address in seen:
            reader.warn("address", f"has `{address}` twice, with different prefix lengths")
            continue
        seen.add(address)
        yield each


def _gateways(reader: PropertyReader, addresses: tuple[str, ...]) -> Iterable[str]:
    if reader.given.get("gateway", "").lower() == _NO_GATEWAY:
        return
    given = reader.many("gateway", fields.gateway)
    if given and not addresses:
        if "address" not in reader.given:
            reader.warn("gateway", "means nothing without `address`: DHCP brings its own")
        return
    if addresses and "gateway" not in reader.given:
        message = (
            "is missing: only the networks of the machine's own addresses are reached. Where that is meant: "
            f"`{_NO_GATEWAY}`"
        )
        reader.warn("gateway", message)
    families: set[int] = set()
    for gateway in given:
        objection = _objection(gateway, addresses)
        version = ip_address(gateway).version
        if objection is None and version in families:
            objection = f"`{gateway}` is the second of IPv{version}: one of each family"
        if objection is not None:
            reader.warn("gateway", objection)
            continue
        families.add(version)
        yield gateway


def _objection(gateway: str, addresses: Iterable[str]) -> str | None:
    """Return why a gateway cannot be reached from these addresses, None if it can."""
    wanted = ip_address(gateway)
    own = [ip_interface(each) for each in addresses]
    if any(wanted == each.ip for each in own):
        return f"`{gateway}` is this machine's own address"
    if wanted.version == 6 and wanted.is_link_local:
        return None
    around = [each.network for each in own if each.version == wanted.version and wanted in each.network]
    if any(fields.is_broadcast(wanted, each) or fields.is_network(wanted, each) for each in around):
        return f"`{gateway}` is the address of the network itself, or of all in it: no router has that"
    if around:
        return None
    networks = ", ".join(str(each.network) for each in own)
    return f"`{gateway}` is not in the network of the machine's address, {networks}"
