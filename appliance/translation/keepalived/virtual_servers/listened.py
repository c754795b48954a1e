"""What a `virtual_server` listens on: an address with its port, or those of a `virtual_server_group`."""

from collections.abc import Mapping
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.meaning.values import DirectiveError
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.virtual_servers.blocks import endpoint

Groups = Mapping[str, Directive]
"""The groups of a file by name; they may follow the virtual servers that use them."""

GROUP: Final = "group"
_EACH: Final = "write a `virtual_server ADDRESS PORT` for each"
_MARKED: Final = f"marks of another firewall are not supported: {_EACH}"


def group_of(given: Directive, groups: Groups) -> Directive | None:
    """Return the group that a virtual server names, None if it names an address."""
    words = [each.text for each in given.values]
    return groups.get(words[1]) if len(words) > 1 and words[0] == GROUP else None


def listened(given: Directive, groups: Groups) -> tuple[Endpoint, ...]:
    """Return the addresses of a virtual server; raises DirectiveError."""
    kind = given.values[0].text if given.values else ""
    if kind == "fwmark":
        raise DirectiveError(_MARKED, given.place)
    if kind != GROUP:
        return (endpoint(given),)
    group = group_of(given, groups)
    if group is None:
        raise DirectiveError("names no virtual_server_group of this file", given.place)
    found = tuple(dict.fromkeys(_member(given, each) for each in group.within))
    if not found:
        raise DirectiveError("its virtual_server_group has no address", given.place)
    if len({":" in each.host for each in found}) > 1:
        raise DirectiveError(f"its group has addresses of both versions of IP: {_EACH}", given.place)
    _refuse_ports_of_servers(given, found)
    return found


def _member(given: Directive, member: Directive) -> Endpoint:
    """Return the address in one line of a group."""
    if member.keyword == "fwmark":
        raise DirectiveError(_MARKED, given.place)
    if "-" in member.keyword or len(member.words) > 2:
        reason = f"its group has more than an address and a port: {shown(member.keyword)}; {_EACH}"
        raise DirectiveError(reason, given.place)
    try:
        return endpoint(Directive(words=(given.words[0], *member.words)))
    except DirectiveError as fault:
        raise DirectiveError(fault.reason, given.place) from None


def _refuse_ports_of_servers(given: Directive, found: tuple[Endpoint, ...]) -> None:
    """Refuse servers without a port behind several listened ports: each connection would keep its own."""
    servers = [each for each in given.within if each.keyword in {"real_server", "sorry_server"}]
    if len({each.port for each in found}) > 1 and any(len(each.values) < 2 for each in servers):
        raise DirectiveError(
            f"its servers use the ports of its group, which has several: {_EACH}", given.place
        )
