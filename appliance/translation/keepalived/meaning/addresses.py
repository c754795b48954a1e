"""`virtual_ipaddress` and `virtual_ipaddress_excluded`: addresses with what ip-address(8) may say of them."""

from ipaddress import ip_interface
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.meaning.instance import Instance
from appliance.translation.keepalived.meaning.values import DirectiveError, address
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

_WIDTHS: Final = {4: 32, 6: 128}
_ALONE: Final = {
    "home": "is Mobile IPv6's, and means nothing to a virtual IP",
    "-nodad": "duplicate address detection is off for virtual IPs in any case",
    "mngtmpaddr": "is for addresses of hosts, and means nothing to a virtual IP",
    "noprefixroute": "the kernel's route of the prefix stays: say `/32` where there should be none",
    "autojoin": "is for multicast addresses, and means nothing to a virtual IP",
    "no_track": "an address that somebody removes is put back at once",
    "use_vmac": "`virtual_mac` holds for all addresses of a virtual IP",
}
_WITH_VALUE: Final = {
    "brd": "a broadcast address means nothing to a virtual IP",
    "broadcast": "a broadcast address means nothing to a virtual IP",
    "scope": "the scope is the kernel's own for the address: global, or link for link-local ones",
    "preferred_lft": "an address is preferred as long as it is held",
    "track_group": "belongs to static addresses",
}


def virtual_addresses(instance: Instance, given: Directive) -> None:
    """Take `virtual_ipaddress`."""
    for each in given.within:
        _one(instance, each, "addresses")


def excluded_addresses(instance: Instance, given: Directive) -> None:
    """Take `virtual_ipaddress_excluded`."""
    for each in given.within:
        _one(instance, each, "excluded")


def _one(instance: Instance, given: Directive, key: str) -> None:
    """Take the addresses of one line: one with its options, or several without."""
    if given.block is not None:
        instance.ledger.refuse(given.place, f"{shown(given.keyword)} is an address, and has no block")
        return
    words = list(given.words)
    while words:
        word = words.pop(0)
        try:
            text = _with_length(instance, word)
            elsewhere = _options(instance, words, text)
        except DirectiveError as fault:
            instance.ledger.refuse(fault.place, fault.reason)
            return
        if not elsewhere:
            instance.append(key, value=text, place=word.place)
            instance.addresses.append((text, word.place))


def _with_length(instance: Instance, word: Word) -> str:
    """Return an address with its prefix length: without one it is a host's, as in keepalived."""
    host, slash, length = word.text.partition("/")
    found = address(Word(text=host, place=word.place))
    family = instance.family or found.version
    if found.version != family:
        reason = (
            f"{shown(host)} is IPv{found.version} in an instance of IPv{family}: give it a vrrp_instance "
            "of its own, and both the same vrrp_sync_group"
        )
        raise DirectiveError(reason, word.place)
    instance.family = family
    if not slash:
        instance.bare_addresses.append(word)
        return f"{found}/{_WIDTHS[family]}"
    if length.isascii() and length.isdecimal() and int(length[:4]) <= _WIDTHS[family]:
        return str(ip_interface(f"{found}/{int(length)}"))
    if family == 4 and "." in length:
        return _with_mask(host, length, word)
    raise DirectiveError(f"{shown(length)} is no prefix length: 0 to {_WIDTHS[family]}", word.place)


def _with_mask(host: str, mask: str, word: Word) -> str:
    try:
        return str(ip_interface(f"{host}/{mask}"))
    except ValueError:
        raise DirectiveError(f"{shown(mask)} is no network mask", word.place) from None


def _options(instance: Instance, words: list[Word], text: str) -> bool:
    """Take the options that follow an address; return whether it is on another interface."""
    elsewhere = False
    while words and not _is_address(words[0]):
        option = words.pop(0)
        if option.text in _ALONE:
            instance.ledger.ignore(option.place, f"`{option.text}`: {_ALONE[option.text]}")
            continue
        if not words:
            raise DirectiveError(
                f"{shown(option.text)} needs a value, or is no option of an address", option.place
            )
        value = words.pop(0)
        match option.text:
            case "dev":
                elsewhere = _device(instance, value, text)
            case "label":
                instance.labels.append(value)
            case "peer":
                raise DirectiveError(
                    "a virtual IP has no peer address (point to point): leave it out", option.place
                )
            case "scope" if value.text == "global":
                pass
            case name if name in _WITH_VALUE:
                instance.ledger.ignore(option.place, f"`{name}`: {_WITH_VALUE[name]}")
            case name:
                raise DirectiveError(f"{shown(name)} is no option of an address", option.place)
    return elsewhere


def _is_address(word: Word) -> bool:
    try:
        address(Word(text=word.text.partition("/")[0], place=word.place))
    except DirectiveError:
        return False
    return True


def _device(instance: Instance, value: Word, text: str) -> bool:
    """Take `dev`; return whether it is another interface than the instance's."""
    if instance.interface is None or instance.interface.text == value.text:
        instance.devices.append(value)
        return False
    reason = (
        f"{text} is on `{value.text}`, and the instance on `{instance.interface.text}`: give it a "
        f"vrrp_instance with `interface {value.text}`, and both the same vrrp_sync_group"
    )
    instance.ledger.refuse(value.place, reason)
    return True
