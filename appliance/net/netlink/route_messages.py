"""rtnetlink messages about our routes and rules: requests that add, remove and list them, and the answers.

They are pyroute2's classes: an address has few routes, and their encoding is cached. `protocol` is the
rtm_protocol that marks routes as ours.
"""

from functools import lru_cache
from ipaddress import ip_network
from socket import AF_INET, AF_INET6
from typing import Final

from appliance.model.snapshot.virtual_router import OWN_METRICS, VirtualRoute, VirtualRule
from appliance.net.netlink.address_messages import OURS
from appliance.net.netlink.netlink import ACKNOWLEDGE, CREATE, DUMP, EXCLUSIVE, REPLACE, REQUEST, Message
from appliance.net.netlink.netlink_messages import bare, nlmsg
from appliance.net.netlink.rtnetlink import encode, one_decoding_error

with bare("pyroute2"):
    from pyroute2.netlink.rtnl import (
        RTM_DELROUTE,
        RTM_DELRULE,
        RTM_GETROUTE,
        RTM_GETRULE,
        RTM_NEWROUTE,
        RTM_NEWRULE,
    )
    from pyroute2.netlink.rtnl.fibmsg import FR_ACT_TO_TBL, fibmsg
    from pyroute2.netlink.rtnl.rtmsg import rtmsg

_UNICAST: Final = 1  # RTN_UNICAST of linux/rtnetlink.h
_ANYWHERE: Final = 0  # RT_SCOPE_UNIVERSE
_ON_LINK: Final = 253  # RT_SCOPE_LINK
_NOWHERE: Final = 255  # RT_SCOPE_NOWHERE: a route of any scope is removed
_GATEWAY_ON_LINK: Final = 4  # RTNH_F_ONLINK
_COMPAT_TABLE: Final = 252  # RT_TABLE_COMPAT: the attribute has the number
_PROTOCOL_AT: Final = 16 + 5  # of struct rtmsg, after struct nlmsghdr


@lru_cache(maxsize=1024)
def add_route(route: VirtualRoute, index: int, *, replace: bool = False, protocol: int = OURS) -> bytes:
    """Return the request for a route of ours, EEXIST without `replace`; `index` 0 is without an interface."""
    message = _route(route, protocol)
    message["scope"] = _ANYWHERE if route.via else _ON_LINK
    message["type"] = _UNICAST
    message["flags"] = _GATEWAY_ON_LINK if route.onlink else 0
    wanted = {"RTA_GATEWAY": route.via, "RTA_PREFSRC": route.source}
    message["attrs"] += [(key, each) for key, each in wanted.items() if each is not None]
    if index:
        message["attrs"].append(("RTA_OIF", index))
    return encode(message, kind=RTM_NEWROUTE, flags=_adding(replace=replace))


@lru_cache(maxsize=1024)
def remove_route(route: VirtualRoute, *, protocol: int = OURS) -> bytes:
    """Return the request that removes a route of ours, whatever its next hop; ESRCH if it does not exist."""
    message = _route(route, protocol)
    message["scope"] = _NOWHERE
    return encode(message, kind=RTM_DELROUTE, flags=REQUEST | ACKNOWLEDGE)


@lru_cache(maxsize=1024)
def add_rule(rule: VirtualRule) -> bytes:
    """Return the request that adds a rule of ours; EEXIST if the same rule exists."""
    return encode(_rule(rule), kind=RTM_NEWRULE, flags=_adding(replace=False))


@lru_cache(maxsize=1024)
def remove_rule(rule: VirtualRule) -> bytes:
    """Return the request that removes a rule of ours; ENOENT if it does not exist."""
    return encode(_rule(rule), kind=RTM_DELRULE, flags=REQUEST | ACKNOWLEDGE)


def all_routes(family: int, *, protocol: int = OURS) -> bytes:
    """Return the request for our routes, with 0 or before Linux 4.20 for those of all programs."""
    message = rtmsg()
    message["family"], message["proto"] = family, protocol
    return encode(message, kind=RTM_GETROUTE, flags=REQUEST | DUMP)


def all_rules(family: int) -> bytes:
    """Return the request for all rules of all programs."""
    message = fibmsg()
    message["family"] = family
    return encode(message, kind=RTM_GETRULE, flags=REQUEST | DUMP)


def decode_route(message: Message, *, protocol: int = OURS) -> VirtualRoute | None:
    """Return the place of a route of ours, None for a route of another program; raises DamagedMessage."""
    with one_decoding_error():
        if message.kind != RTM_NEWROUTE or message.data[_PROTOCOL_AT] != protocol:
            return None
        found = rtmsg(message.data)
        found.decode()
        everywhere = "::" if found["family"] == AF_INET6 else "0.0.0.0"  # noqa: S104  # a network, no socket
        to = ip_network(f"{found.get_attr('RTA_DST') or everywhere}/{found['dst_len']}")
        metric = found.get_attr("RTA_PRIORITY") or 0
        return VirtualRoute(
            to=str(to),
            table=found.get_attr("RTA_TABLE") or found["table"],
            metric=None if metric == OWN_METRICS[to.version] else metric,
        )


def decode_place(message: Message) -> tuple[int, int] | None:
    """Return table and protocol of a route of any program. Raises DamagedMessage."""
    with one_decoding_error():
        if message.kind != RTM_NEWROUTE:
            return None
        found = rtmsg(message.data)
        found.decode()
        return found.get_attr("RTA_TABLE") or found["table"], found["proto"]


def decode_rule(message: Message) -> VirtualRule | None:
    """Return a rule of ours; None for a rule of another program. Raises DamagedMessage."""
    with one_decoding_error():
        found = fibmsg(message.data)
        found.decode()
        if message.kind != RTM_NEWRULE or found.get_attr("FRA_PROTOCOL") != OURS:
            return None
        ends = {key: found.get_attr(name) for key, name in (("src_len", "FRA_SRC"), ("dst_len", "FRA_DST"))}
        source, to = (str(ip_network(f"{each}/{found[key]}")) if each else None for key, each in ends.items())
        return VirtualRule(
            source=source,
            to=to,
            table=found.get_attr("FRA_TABLE") or found["table"],
            priority=found.get_attr("FRA_PRIORITY") or 0,
        )


def _adding(*, replace: bool) -> int:
    return REQUEST | ACKNOWLEDGE | CREATE | (REPLACE if replace else EXCLUSIVE)


def _route(route: VirtualRoute, protocol: int) -> nlmsg:
    """Return the part that the requests to add and to remove a route share."""
    to, table, metric = ip_network(route.to), *route.place[1:]
    message = rtmsg()
    message["family"] = AF_INET if to.version == 4 else AF_INET6
    message["dst_len"] = to.prefixlen
    message["table"], message["proto"] = min(table, _COMPAT_TABLE), protocol
    message["attrs"] = [("RTA_TABLE", table)]
    if to.prefixlen:
        message["attrs"].append(("RTA_DST", str(to.network_address)))
    if metric:
        message["attrs"].append(("RTA_PRIORITY", metric))
    return message


def _rule(rule: VirtualRule) -> nlmsg:
    message = fibmsg()
    message["table"], message["action"] = min(rule.table, _COMPAT_TABLE), FR_ACT_TO_TBL
    message["attrs"] = [
        ("FRA_TABLE", rule.table),
        ("FRA_PRIORITY", rule.priority),
        ("FRA_PROTOCOL", OURS),
    ]
    for length, name, text in (("src_len", "FRA_SRC", rule.source), ("dst_len", "FRA_DST", rule.to)):
        if text is not None:
            network = ip_network(text)
            message["family"] = AF_INET if network.version == 4 else AF_INET6
            message[length] = network.prefixlen
            message["attrs"].append((name, str(network.network_address)))
    return message
