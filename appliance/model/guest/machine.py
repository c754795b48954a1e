"""The guest properties of the machine itself: its name, networks, clock, allowed logins, log and authorities.

A wrong part of a list is left out and the rest is used. Without any usable address the machine uses DHCP, so
that someone can reach it and correct the properties.
"""

from dataclasses import dataclass, replace

from appliance.model.config.values.addresses import server_host
from appliance.model.guest import fields
from appliance.model.guest.authorities import authorities
from appliance.model.guest.networks import GuestNetwork, Role, networks
from appliance.model.guest.public_keys import ssh_keys
from appliance.model.guest.reader import PropertyReader
from appliance.model.guest.syslog_target import SyslogTarget, syslog_target


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestMachine:
    """The machine's settings. Without a name or keys the earlier ones stay.

    `networks` begins with that of the clients. `keys_complete` is false if a key could not be read: then the
    earlier keys stay valid too, because a truncated key must not replace the whole one. `authorities` are
    certificates as PEM.
    """

    host_name: str | None = None
    networks: tuple[GuestNetwork, ...] = (GuestNetwork(),)
    time_servers: tuple[str, ...] = ()
    ssh_keys: tuple[str, ...] = ()
    keys_complete: bool = True
    syslog: SyslogTarget | None = None
    authorities: tuple[str, ...] = ()

    def network(self, role: Role) -> GuestNetwork | None:
        """Return the network of a role, None if the machine has none."""
        return next((each for each in self.networks if each.role is role), None)

    def of(self, *roles: Role) -> tuple[str, ...]:
        """Return the addresses in the networks of some roles, with their prefix lengths."""
        return tuple(address for each in self.networks if each.role in roles for address in each.addresses)

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses, with their prefix lengths."""
        return self.of(*Role)

    @property
    def gateways(self) -> tuple[str, ...]:
        """The default gateways of all networks."""
        return tuple(gateway for each in self.networks for gateway in each.gateways)

    @property
    def resolvers(self) -> tuple[str, ...]:
        """The DNS servers in all networks."""
        return tuple(address for each in self.networks for address in each.resolvers)


def machine(reader: PropertyReader) -> GuestMachine:
    """Return the machine's settings; the reader collects the problems."""
    found = networks(reader)
    if "address" in reader.given and not found[0].addresses:
        reader.notes.append("DHCP is asked for an address, because none of those given can be used")
    keys = ssh_keys(reader.given.get("ssh_key", ""))
    for message in keys.wrong:
        reader.warn("ssh_key", message)
    if "ssh_key" not in reader.given:
        reader.notes.append("no SSH public key was given: only users who could log in before can log in now")
    return GuestMachine(
        host_name=reader.one("hostname", fields.host_name),
        networks=found,
        time_servers=reader.many("ntp", server_host),
        ssh_keys=keys.right,
        keys_complete=not keys.wrong,
        syslog=reader.one("syslog", syslog_target),
        authorities=reader.one("ca_bundle", authorities) or (),
    )


def on_adapters(reader: PropertyReader, wanted: GuestMachine, adapters: int) -> GuestMachine:
    """Return the machine with the networks that it has adapters for; the others become problems."""
    kept = tuple(
        each for each in wanted.networks if each.role.adapter < adapters or each.role is Role.CLIENTS
    )
    for each in wanted.networks:
        if each not in kept:
            needed = each.role.adapter + 1
            reader.warn(
                each.role.key, f"needs {needed} network adapters, and there are {adapters}; it is left out"
            )
    return replace(wanted, networks=kept)
