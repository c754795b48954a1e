"""The addresses that a section listens on, in our form: `[::]` includes IPv4, and none is listed twice."""

from dataclasses import dataclass
from typing import Final

from appliance.model.config.values.addresses import Endpoint, literal
from appliance.translation.haproxy.directives.section import Placed, Section
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.values.endpoints import ANY_IPV4, ANY_IPV6
from appliance.translation.translation import Outcome

_BOTH_FAMILIES: Final = "`::` accepts IPv4 too: write the IPv6 address itself, such as `2001:db8::1:443`"


def listened(section: Section, taken: dict[Endpoint, int], report: Report) -> tuple[Placed[Endpoint], ...]:
    """Return the addresses of a section: `[::]` alone means both families.

    `taken` are those of earlier sections, each with its line; those of this section are added.
    """
    ports = _ports(section)
    found: dict[Endpoint, Placed[Endpoint]] = {}
    for bind in section.binds:
        for endpoint in bind.endpoints:
            place, wider = bind.place, _wider(endpoint, ports)
            if bind.ipv6_only and endpoint.host == ANY_IPV6 and endpoint.port not in ports.both:
                report.add(Outcome.REFUSED, place, _BOTH_FAMILIES)
            elif endpoint.host == ANY_IPV4 and wider:
                reason = f"`{wider}` accepts IPv4 too: it covers both"
                report.add(Outcome.CHANGED, place, reason)
            elif wider:
                report.add(Outcome.CHANGED, place, f"`{wider}` of this section accepts its connections too")
            elif endpoint in taken:
                reason = (
                    f"{report.line_name(taken[endpoint])} binds `{endpoint}` already, and in HAProxy "
                    "chance decides which section gets a connection: remove one of them"
                )
                report.add(Outcome.REFUSED, place, reason)
            else:
                found.setdefault(endpoint, Placed(value=endpoint, place=place))
    taken.update({endpoint: placed.place.line for endpoint, placed in found.items()})
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _WidePorts:
    """The ports on which a section accepts connections to every address: of IPv4, or of both families."""

    ipv4: frozenset[int]
    both: frozenset[int]


def _ports(section: Section) -> _WidePorts:
    every = [(bind, each) for bind in section.binds for each in bind.endpoints]
    ipv4 = frozenset(each.port for _, each in every if each.host == ANY_IPV4)
    wide = ((bind, each.port) for bind, each in every if each.host == ANY_IPV6)
    both = frozenset(port for bind, port in wide if not bind.ipv6_only or port in ipv4)
    return _WidePorts(ipv4=ipv4, both=both)


def _wider(endpoint: Endpoint, ports: _WidePorts) -> Endpoint | None:
    """Return the wildcard address that accepts the connections to this one too, None without one."""
    address = literal(endpoint.host)
    if address is None or endpoint.host == ANY_IPV6:
        return None
    if endpoint.port in ports.both:
        return Endpoint(host=ANY_IPV6, port=endpoint.port)
    if address.version == 4 and endpoint.host != ANY_IPV4 and endpoint.port in ports.ipv4:
        return Endpoint(host=ANY_IPV4, port=endpoint.port)
    return None
