"""`virtual_ipaddress` and `virtual_ipaddress_excluded`: addresses with options of ip-address(8)."""

import re
from typing import Final

from appliance.model.config.values.addresses import literal
from appliance.model.config.values.vrrp import DEVICE
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.meaning.instance_draft import Instance
from appliance.translation.keepalived.meaning.values import DirectiveError, address, faults_in
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

_LENGTH: Final = re.compile(r"[0-9]{1,3}", re.ASCII)
_WIDTHS: Final = {4: 32, 6: 128}
_ALONE: Final = {
    "home": "belongs to Mobile IPv6, and has no effect on a virtual IP",
    "-nodad": "duplicate address detection is always off for virtual IPs",
    "mngtmpaddr": "is for addresses of hosts, and has no effect on a virtual IP",
    "noprefixroute": "the kernel's route of the prefix stays: write `/32` to have none",
    "autojoin": "is for multicast addresses, and has no effect on a virtual IP",
    "no_track": "a removed address is restored at once",
    "use_vmac": "`virtual_mac` applies to all addresses of a virtual IP",
}
_WITH_VALUE: Final = {
    "brd": "a broadcast address has no effect on a virtual IP",
    "broadcast": "a broadcast address has no effect on a virtual IP",
    "scope": "the kernel sets the scope of the address: global, or link for link-local ones",
    "preferred_lft": "an address is preferred as long as it is held",
    "track_group": "belongs to static addresses",
}
_VALUED: Final = frozenset(("dev", "label", "peer", *_WITH_VALUE))


def virtual_addresses(instance: Instance, given: Directive) -> None:
    """Take `virtual_ipaddress`."""
    for each in given.within:
        _one(instance, each, "addresses")


def excluded_addresses(instance: Instance, given: Directive) -> None:
    """Take `virtual_ipaddress_excluded`."""
    for each in given.within:
        _one(instance, each, "excluded")


def _one(instance: Instance, given: Directive, key: str) -> None:
    """Take the address of one line, with its options."""
    if given.block is not None:
        instance.ledger.refuse(given.place, f"{shown(given.keyword)} is an address, and takes no block")
        return
    word = given.words[0]
    with faults_in(instance.ledger, slip=_slip(instance, word, key)):
        text = _with_length(instance, word, key)
        own = (":" in text) == (instance.family == 6)
        device = _options(instance, list(given.values), own=own)
        instance.append(key, value=f"{text}{device}", place=given.place)
        instance.address_count += own


def _slip(instance: Instance, word: Word, key: str) -> str | None:
    """Return what keepalived does with a word that is no address here, None if it is one for keepalived."""
    found = literal(word.text.partition("/")[0])
    other = found is not None and instance.family not in {None, found.version}
    return "ignores it" if found is None or (other and key == "addresses") else None


def _with_length(instance: Instance, word: Word, key: str) -> str:
    """Return an address with its prefix length; without one it is a host address, as in keepalived.

    An excluded one may be of the other family: it is not in the advertisements.
    """
    host, slash, length = word.text.partition("/")
    found = address(Word(text=host, place=word.place))
    family = instance.family or found.version
    if found.version != family and key == "addresses":
        reason = (
            f"{shown(host)} is IPv{found.version} in an instance of IPv{family}, and belongs into "
            "`virtual_ipaddress_excluded`, or a separate vrrp_instance in the same vrrp_sync_group"
        )
        raise DirectiveError(reason, word.place)
    instance.family = family
    instance.held.add(found)
    width = _WIDTHS[found.version]
    if slash and _LENGTH.fullmatch(length) and int(length) <= width:
        return f"{found}/{int(length)}"
    if slash:
        reason = (
            f"{shown(length)} is not a prefix length, 0 to {width}: keepalived uses {width}, and so "
            "does the appliance"
        )
        instance.ledger.change(word.place, reason)
    else:
        instance.bare_addresses.append(word)
    return f"{found}/{width}"


def _options(instance: Instance, options: list[Word], *, own: bool) -> str:
    """Take the options after an address; return why it is on another interface, if it is.

    `own` is whether the address is of the instance's family: the others have no label.
    """
    elsewhere = ""
    while options:
        option = options.pop(0)
        if option.text in _ALONE:
            instance.ledger.ignore(option.place, f"`{option.text}`: {_ALONE[option.text]}")
            continue
        if option.text not in _VALUED:
            instance.ledger.change(option.place, _unknown_option(option.text))
            continue
        if not options:
            raise DirectiveError(f"`{option.text}` needs a value", option.place)
        value = options.pop(0)
        match option.text:
            case "dev":
                elsewhere = _device(instance, value)
            case "label" if own:
                instance.labels.append(value)
            case "label":
                instance.ledger.ignore(
                    option.place, "`label`: only addresses of the virtual IP's family have one"
                )
            case "peer":
                reason = "a virtual IP has no peer address (point to point): leave it out"
                raise DirectiveError(reason, option.place)
            case name if value.text != "global":
                instance.ledger.ignore(option.place, f"`{name}`: {_WITH_VALUE[name]}")
    return elsewhere


def _unknown_option(text: str) -> str:
    if text.startswith("/"):
        return (
            f"{shown(text)} is separated from its address: keepalived ignores it, and the address becomes a "
            "host address, here too"
        )
    return f"{shown(text)} is not an option of an address: keepalived ignores it, and so does the appliance"


def _device(instance: Instance, value: Word) -> str:
    """Take `dev`; return nothing for the instance's own interface."""
    instance.devices.append(value)
    own = instance.interface
    return "" if own is not None and own.text == value.text else f"{DEVICE}{value.text}"
