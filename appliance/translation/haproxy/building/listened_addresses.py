"""The addresses that a section listens on, as ours are: `[::]` takes IPv4 too."""

from appliance.model.config.values.addresses import Endpoint
from appliance.translation.haproxy.building.values import Placed
from appliance.translation.haproxy.directives.section import Section
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.values.endpoints import ANY_IPV4, ANY_IPV6
from appliance.translation.translation import Outcome


def listened(section: Section, report: Report) -> tuple[Placed[Endpoint], ...]:
    """Return the addresses of a section: `[::]` alone stands for both families."""
    wide = {each.port for bind in section.binds for each in bind.endpoints if each.host == ANY_IPV6}
    found: dict[Endpoint, Placed[Endpoint]] = {}
    for bind in section.binds:
        for endpoint in bind.endpoints:
            place = bind.place
            if endpoint.host == ANY_IPV4 and endpoint.port in wide:
                reason = f"`{Endpoint(host=ANY_IPV6, port=endpoint.port)}` takes IPv4 too: it stands for both"
                report.say(Outcome.CHANGED, place, reason)
            elif bind.ipv6_only and endpoint.host == ANY_IPV6 and not _has_ipv4(section, endpoint.port):
                reason = "`::` takes IPv4 too: name the IPv6 address itself, such as `2001:db8::1:443`"
                report.say(Outcome.REFUSED, place, reason)
            else:
                found.setdefault(endpoint, Placed(value=endpoint, place=place))
    return tuple(found.values())


def _has_ipv4(section: Section, port: int) -> bool:
    return any(
        each.host == ANY_IPV4 and each.port == port for bind in section.binds for each in bind.endpoints
    )
