"""The OVF properties that a virtual machine can get from outside, through its import form.

One table: the OVF descriptor is written from it, the parser reads by it, and the documentation shows it. All
values are texts, as OVF has them; an empty text is an absent property.
"""

import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.model.guest.parts import unquoted
from appliance.model.messages.problems import nearest
from appliance.model.messages.quoting import shown

CLASS: Final = "lb"
"""Class of the properties, which may stand before their keys: `lb.hostname`."""

_MOST_MISSPELT: Final = 20
_LONGEST_KEY: Final = 40
_INVISIBLE: Final = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A field of the form; `longest` is in characters, a `secret` is never shown, nor while it is typed."""

    key: str
    category: str
    label: str
    description: str
    default: str = ""
    longest: int = 1024
    secret: bool = False


_MACHINE: Final = "1. Machine"
_NETWORKS: Final = "2. Further networks"
_SERVICES: Final = "3. Services"
_CLUSTER: Final = "4. Cluster"
_WHOLE: Final = "5. Whole configuration"

PROPERTIES: Final = (
    Property(
        key="hostname",
        category=_MACHINE,
        label="Host name",
        description="Name of this machine, for example lb-1.example.com.",
        longest=64,
    ),
    Property(
        key="address",
        category=_MACHINE,
        label="Address",
        description="Address and prefix length, for example 10.0.0.11/24; several with commas. Empty: DHCP.",
    ),
    Property(
        key="gateway",
        category=_MACHINE,
        label="Gateway",
        description="Default route, in any network: 10.0.0.1; one of IPv4, one of IPv6 with a comma.",
    ),
    Property(
        key="dns",
        category=_MACHINE,
        label="DNS servers",
        description="Addresses with commas, for example 10.0.0.2, 10.0.0.3.",
    ),
    Property(
        key="ntp",
        category=_MACHINE,
        label="NTP servers",
        description="Names or addresses with commas. Empty: Debian's pool.",
    ),
    Property(
        key="ssh_key",
        category=_MACHINE,
        label="SSH public key",
        description="For the user admin, as in authorized_keys; the only way to log in. Several with commas.",
        longest=16384,
    ),
    Property(
        key="servers_address",
        category=_NETWORKS,
        label="Address, servers",
        description="On the second adapter: as above, or dhcp. Empty: servers are reached by the first.",
    ),
    Property(
        key="management_address",
        category=_NETWORKS,
        label="Address, management",
        description="On the third adapter: as above, or dhcp. SSH and the page are at its address only.",
    ),
    Property(
        key="vrrp_address",
        category=_NETWORKS,
        label="Address, VRRP",
        description="On the fourth adapter: as above. Advertisements go here, virtual IPs stay on the first.",
    ),
    Property(
        key="routes",
        category=_NETWORKS,
        label="Routes",
        description="Networks behind other routers: 10.20.0.0/16 via 10.0.1.1; several with commas.",
    ),
    Property(
        key="page_password",
        category=_SERVICES,
        label="Password of the page",
        description="For the user admin at http://ADDRESS:29445/haproxy_stats. Empty: no page.",
        longest=128,
        secret=True,
    ),
    Property(
        key="syslog",
        category=_SERVICES,
        label="Syslog server",
        description="Gets the whole journal: udp://10.0.0.9:514 or tcp://10.0.0.9:514.",
        longest=300,
    ),
    Property(
        key="ca_bundle",
        category=_SERVICES,
        label="CA certificates",
        description="Authorities that the machine trusts: PEM, or PEM in base64 (base64 -w0 ca.pem).",
        longest=65535,
    ),
    Property(
        key="cluster_name",
        category=_CLUSTER,
        label="Cluster name",
        description="As in install-config.yaml: the virtual router ids come from it. For example ocp4.",
        longest=253,
    ),
    Property(
        key="cluster_domain",
        category=_CLUSTER,
        label="Base domain",
        description="As in install-config.yaml, for example example.com.",
        longest=253,
    ),
    Property(
        key="masters",
        category=_CLUSTER,
        label="Masters",
        description="Addresses or names of the control plane's machines, with commas.",
    ),
    Property(
        key="routers",
        category=_CLUSTER,
        label="Routers",
        description="Addresses or names of the machines that ingress routers run on, with commas.",
    ),
    Property(
        key="api_vip",
        category=_CLUSTER,
        label="API virtual IP",
        description="Address that all load balancers share for the API, for example 10.0.0.200.",
    ),
    Property(
        key="ingress_vip",
        category=_CLUSTER,
        label="Ingress virtual IP",
        description="Address that all load balancers share for ingress, for example 10.0.0.201.",
    ),
    Property(
        key="nodes",
        category=_CLUSTER,
        label="Load balancers",
        description="lb-1=10.0.0.11, lb-2=10.0.0.12: host names, the same on all. The first is preferred.",
    ),
    Property(
        key="vrrp_peers",
        category=_CLUSTER,
        label="VRRP peers",
        description="Instead of that, addresses of all load balancers. Empty, and no nodes: multicast.",
    ),
    Property(
        key="vrrp_priority",
        category=_CLUSTER,
        label="VRRP priority",
        description="1 to 254; the highest holds the virtual IPs.",
        default="100",
        longest=3,
    ),
    Property(
        key="config",
        category=_WHOLE,
        label="appliance.yaml",
        description="A whole configuration, base64 (base64 -w0 appliance.yaml). Wins over the cluster's.",
        longest=65535,
    ),
)

BY_KEY: Final[Mapping[str, Property]] = {each.key: each for each in PROPERTIES}


def given_properties(written: Mapping[str, str]) -> dict[str, str]:
    """Return the properties by their key in the table, from keys as an OVF environment has them.

    Those are `key`, `lb.key`, and either with an instance after it (`lb.key.1`). An empty value is absent.
    White space and quotes around a value are removed, and invisible characters anywhere in it, except those
    inside a whole configuration. Of several keys for one property the first one with a value counts.
    """
    properties: dict[str, str] = {}
    for name, value in written.items():
        key = known(name)
        text = "" if key is None else _cleaned(key, value)
        if key is not None and text:
            properties.setdefault(key, text)
    return properties


def _cleaned(key: str, value: str) -> str:
    if key != "config":
        value = value.translate(_INVISIBLE)
    return unquoted(value.strip("".join(map(chr, _INVISIBLE)) + string.whitespace).strip())


def known(name: str) -> str | None:
    """Return the key in the table for a written one, None if it is not ours."""
    key = name.removeprefix(f"{CLASS}.").partition(".")[0]
    return key if key in BY_KEY else None


def misspelt(written: Mapping[str, str]) -> Iterator[str]:
    """Yield a message for each unknown key that must be meant for us: of our class or of none."""
    names = [
        name for name in written if known(name) is None and (name.startswith(f"{CLASS}.") or "." not in name)
    ]
    for name in names[:_MOST_MISSPELT]:
        meant = nearest(name.removeprefix(f"{CLASS}.")[:_LONGEST_KEY], BY_KEY)
        yield f"there is no property {shown(name)}" + (f": did you mean `{meant}`?" if meant else "")
    if len(names) > _MOST_MISSPELT:
        yield f"there are no properties of {len(names) - _MOST_MISSPELT} more names that were given"
