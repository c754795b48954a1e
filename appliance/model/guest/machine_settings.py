"""The guest properties of the machine itself: its name, networks, clock, allowed logins, log and authorities.

A wrong part of a list is left out and the rest is used. Without any usable address the machine uses DHCP, so
that someone can reach it and correct the properties.
"""

import base64
import binascii
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from appliance.model.config.values.addresses import server_host
from appliance.model.guest import value_types
from appliance.model.guest.networks import GuestNetwork, Role, networks
from appliance.model.guest.parts import Parts, read_each
from appliance.model.guest.reader import PropertyReader
from appliance.model.messages.quoting import shown

_LEAST_RSA: Final = 1024  # bits; sshd accepts none that has fewer
_ED25519: Final = 32  # bytes
_UNCOMPRESSED: Final = 4  # SEC 1 s.2.3.3: both coordinates follow

Field = Callable[[bytes], bool]

_PORT: Final = 514
_PROTOCOLS: Final = ("udp", "tcp")
_RIGHT: Final = "must be udp://HOST:PORT or tcp://HOST:PORT"

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_CERTIFICATE: Final = re.compile(f"{_BEGIN}(.*?){_END}", re.DOTALL)
_SEQUENCE: Final = 0x30  # the first byte of every certificate: ITU-T X.690 s.8.9.1
_LINE: Final = 64  # RFC 7468 s.2


def _is_ed25519(field: bytes) -> bool:
    return len(field) == _ED25519


def _is_modulus(field: bytes) -> bool:
    return int.from_bytes(field).bit_length() >= _LEAST_RSA


def _on(curve: str, coordinate: int) -> tuple[Field, Field]:
    """Return the fields of a key on a curve: its name, and a point with coordinates of so many bytes."""
    return (
        lambda field: field == curve.encode(),
        lambda field: len(field) == 1 + 2 * coordinate and field[0] == _UNCOMPRESSED,
    )


_FIELDS: Final[Mapping[str, tuple[Field, ...]]] = {
    "ssh-ed25519": (_is_ed25519,),
    "ssh-rsa": (bool, _is_modulus),
    "ecdsa-sha2-nistp256": _on("nistp256", 32),
    "ecdsa-sha2-nistp384": _on("nistp384", 48),
    "ecdsa-sha2-nistp521": _on("nistp521", 66),
    "sk-ssh-ed25519@openssh.com": (_is_ed25519, bool),
    "sk-ecdsa-sha2-nistp256@openssh.com": (*_on("nistp256", 32), bool),
}
"""By type the further fields of a key's data; the last field of sk- is the application, often `ssh:`."""

_ANY_TYPE: Final = "|".join(map(re.escape, _FIELDS))
_KEY: Final = re.compile(
    rf"(?P<options>[^\x00-\x1f]*[ \t])?(?P<type>{_ANY_TYPE})[ \t]+(?P<blob>[A-Za-z0-9+/]+={{0,2}})"
    r"(?P<comment>[ \t][^\x00-\x1f]*)?"
)
# A comma separates keys, but also occurs inside options and comments: only before a type it separates.
_BETWEEN_KEYS: Final = re.compile(rf"[\r\n]+|[,;]\s*(?=(?:{_ANY_TYPE})\s)")


def ssh_keys(text: str) -> Parts[str]:
    """Read lines of authorized_keys, with commas or line breaks between them.

    A truncated key opens nothing, so it must not pass for a whole one: its data must be exactly what its type
    requires (RFC 4253 s.6.6, RFC 5656 s.3.1, RFC 8709 s.4, PROTOCOL.u2f of OpenSSH).
    """
    if "PRIVATE KEY" in text:
        message = (
            "is a private key, which belongs nowhere but on its own machine: the public one ends in .pub"
        )
        return Parts(right=(), wrong=(message,))
    lines = (each.strip() for each in _BETWEEN_KEYS.split(text))
    return read_each((each for each in lines if each and not each.startswith("#")), ssh_key)


def ssh_key(line: str) -> str:
    """Return a line of authorized_keys, if its key is a whole one of its type."""
    found = _KEY.fullmatch(line)
    if found is None or re.search(rf"(?:{_ANY_TYPE})\s", found["options"] or ""):
        # Not quoted: a password that was written into the wrong field of a form would be shown.
        such = "such as `ssh-ed25519 AAAA... name`"
        raise ValueError(f"a line of {len(line)} characters is not a public key {such}")
    try:
        whole = _is_whole(found["type"], list(_fields(found["blob"])))
    except ValueError:
        whole = False
    if not whole:
        raise ValueError(
            f"{shown(line)} is damaged: its middle part is no whole key of the type {found['type']}; "
            "was it cut off, or wrapped into two lines?"
        )
    return line


def _fields(blob: str) -> Iterator[bytes]:
    """Yield the strings in a key's data; raises ValueError if the last one is incomplete."""
    try:
        data = base64.b64decode(blob, validate=True)
    except binascii.Error as error:
        raise ValueError("is no base64") from error
    while data:
        end = 4 + int.from_bytes(data[:4])
        if len(data) < end:
            raise ValueError("is cut off")
        yield data[4:end]
        data = data[end:]


def _is_whole(kind: str, data: list[bytes]) -> bool:
    expected: tuple[Field, ...] = (lambda field: field == kind.encode(), *_FIELDS[kind])
    return len(data) == len(expected) and all(
        is_right(each) for is_right, each in zip(expected, data, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SyslogTarget:
    """The server: `protocol` is udp or tcp."""

    protocol: str
    host: str
    port: int


def syslog_target(text: str) -> SyslogTarget:
    """Return the server of a URL, or of a host alone: udp, and port 514; raises ValueError."""
    try:
        parts = urlsplit(text if "://" in text else f"udp://{text}")
        port = parts.port
    except ValueError:
        raise ValueError(f"{_RIGHT}, not {shown(text)}") from None
    if parts.scheme == "tls":
        raise ValueError(f"{shown(text)}: the journal is sent by udp or tcp only")
    if parts.scheme not in _PROTOCOLS or not parts.hostname or port == 0 or parts.path.strip("/"):
        raise ValueError(f"{_RIGHT}, not {shown(text)}")
    return SyslogTarget(protocol=parts.scheme, host=server_host(parts.hostname), port=port or _PORT)


def authorities(text: str) -> tuple[str, ...]:
    """Return each certificate as PEM in its usual lines, which a form may have joined; raises ValueError."""
    if _BEGIN not in text:
        text = _decoded("".join(text.split())).decode(errors="replace")
    found = tuple(dict.fromkeys(_pem(each) for each in _CERTIFICATE.findall(text)))
    if not found:
        raise ValueError(f"has no certificate, which begins with `{_BEGIN}`: PEM, or PEM in base64")
    if text.count(_BEGIN) != len(_CERTIFICATE.findall(text)):
        raise ValueError(f"ends in the middle of a certificate, without `{_END}`: was it cut off at the end?")
    return found


def _pem(body: str) -> str:
    data = _decoded("".join(body.split()))
    if data[:1] != bytes([_SEQUENCE]):
        raise ValueError("has something else than a certificate between its two marks")
    lines = textwrap.wrap(base64.b64encode(data).decode(), _LINE)
    return "\n".join((_BEGIN, *lines, _END, ""))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("is neither PEM nor base64") from error


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
        host_name=reader.one("hostname", value_types.host_name),
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
