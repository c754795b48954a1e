"""Keys that several directives of an instance decide together, as in keepalived's vrrp_complete_instance."""

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.model.rules.virtual_router_rules import PASSWORD_SIZE
from appliance.translation.keepalived.meaning.instance_draft import OTHER_GROUP, Instance
from appliance.translation.keepalived.meaning.notify import KEYS
from appliance.translation.keepalived.meaning.values import address, duration, duration_or_off

_MASTER: Final = "MASTER"
_AUTH_TYPES: Final = frozenset(("AH", "PASS"))
_LONGEST_V2: Final = 255
_LONGEST_V3: Final = Decimal("40.95")
_OWNER: Final = 255
_UNREADABLE: Final = "\ufffd"  # replaces bytes that are not UTF-8
_ACCEPTS: Final = "an address that is held accepts connections"
_STRICT: Final = "passwords and preempt delays are left out, as in keepalived"
_OWNER_ACCEPTS: Final = "has no effect on the owner of the addresses, as in keepalived"
_STRICT_DROPS: Final = (
    "keepalived drops connections to the virtual IP with it, and here they are accepted: leave it out, on "
    "all routers (they then send passwords), or write `accept` with `version 3`"
)
_DOES: Final = frozenset(
    ("virtual_ipaddress", "virtual_ipaddress_excluded", "virtual_routes", "virtual_rules", *KEYS)
)


def complete(instance: Instance) -> bool:
    """Write the keys that depend on more than one directive.

    Return whether the instance has all that a virtual IP needs, and all that protects it; if not, it is left
    out, and its lines are marked so.
    """
    _place(instance)
    version = _version(instance)
    _state(instance)
    _advert(instance, version)
    _preemption(instance)
    _acceptance(instance, version)
    _authentication(instance, version)
    _source(instance)
    _peers(instance)
    _multicast(instance)
    _labels(instance)
    _listen(instance, version)
    _user(instance)
    if _is_idle(instance):
        instance.ledger.ignore(instance.head.place, "is left out: it holds no address and runs no command")
        instance.ledger.leave_out(instance.head.places, f"`{instance.head.values[0].text}` does nothing")
        return False
    lacks = [*_unprotected(instance), *_missing(instance, version)]
    if lacks:
        instance.ledger.refuse(instance.head.place, ", and ".join(lacks))
        reason = f"`{instance.head.values[0].text}` is left out"
        instance.ledger.leave_out(instance.head.places, reason, head=instance.head.place)
    return not lacks


def _place(instance: Instance) -> None:
    """Write the interface: without one of its own, that of all addresses, or the default one."""
    if instance.interface is None:
        names = {each.text: each for each in instance.devices}
        word = next(iter(names.values())) if len(names) == 1 else instance.surface.default_interface
        if word is not None:
            instance.interface = word
            instance.put("interface", value=word.text, place=word.place)


def _is_idle(instance: Instance) -> bool:
    """Return whether the instance would have no visible effect: no address, no command, no group."""
    said = {each.keyword for each in instance.head.within if each.values or each.within}
    return not said & _DOES and not instance.has("notify") and instance.membership is None


def _missing(instance: Instance, version: int) -> Iterator[str]:
    """Yield what every virtual IP needs and this one lacks; version 2 needs no address in keepalived."""
    needed = (
        *(("interface", "interface"), ("virtual_router_id", "router_id")),
        ("virtual_ipaddress", "addresses"),
    )
    said = {each.keyword for each in instance.head.within if each.values or each.within}
    if "virtual_ipaddress" not in said and version == 2:
        instance.put("addresses", value=[], place=instance.head.place)
    for keyword, key in needed:
        if not instance.has(key):
            yield f"its `{keyword}` cannot be applied" if keyword in said else f"has no `{keyword}`"


def _unprotected(instance: Instance) -> Iterator[str]:
    """Yield why an instance would be more open than its file says, if it would."""
    keywords = " and ".join(f"`{each}`" for each in dict.fromkeys(instance.unprotected))
    if keywords:
        yield (
            f"is left out: without its {keywords} it would accept more, or send to others, than with "
            "keepalived"
        )


def _version(instance: Instance) -> int:
    if instance.family == 6:
        if instance.version is not None and instance.version[0] == 2:
            instance.ledger.refuse(
                instance.version[1], "version 2 has no IPv6: set `version 3` on all routers"
            )
        elif instance.version is not None:
            instance.put("version", value=3, place=instance.version[1])
        return 3
    version, place = instance.version or instance.default_version or (2, instance.head.place)
    if place != instance.head.place:
        instance.put("version", value=version, place=place)
    return version


def _state(instance: Instance) -> None:
    state = instance.state
    if state is None or (state.text == _MASTER and instance.priority == _OWNER):
        return
    if instance.owner and instance.priority is None:
        instance.put("priority", value=_OWNER, place=state.place)
        instance.ledger.change(state.place, "without a priority the owner's applies, 255, as in keepalived")
    elif state.text == _MASTER:
        reason = (
            "every router starts as backup and listens; the highest priority becomes active, as in keepalived"
        )
        instance.ledger.change(state.place, reason)
    else:
        instance.ledger.ignore(state.place, "every router starts as backup, and the priority decides")


def _advert(instance: Instance, version: int) -> None:
    if instance.advert is None:
        return
    asked, place = instance.advert
    if version == 2:
        time = min(max(asked.to_integral_value(ROUND_HALF_UP), Decimal(1)), Decimal(_LONGEST_V2))
        why = "version 2 has whole seconds, 1 to 255, and keepalived rounds, too"
    else:
        time = min(max(round(asked, 2), Decimal("0.01")), _LONGEST_V3)
        why = "version 3 has hundredths of a second, up to 40.95"
    if time != asked:
        instance.ledger.change(place, f"is {time.normalize():f} s: {why}")
    instance.put("advert", value=duration(time), place=place)


def _preemption(instance: Instance) -> None:
    """Keep `nopreempt` and `preempt_delay` unless keepalived would clear them."""
    cleared = _cleared(instance)
    if instance.nopreempt is not None:
        if cleared:
            instance.ledger.ignore(instance.nopreempt.place, cleared)
        else:
            instance.put("preempt", value=False, place=instance.nopreempt.place)
    if instance.preempt_delay is None:
        return
    time, place = instance.preempt_delay
    if instance.nopreempt is not None and not cleared:
        cleared = "has no effect with `nopreempt`, as in keepalived"
    if instance.strict is not None:
        cleared = "has no effect with `vrrp_strict`, as in keepalived"
    if cleared:
        instance.ledger.ignore(place, cleared)
    else:
        instance.put("preempt_delay", value=duration_or_off(time), place=place)


def _cleared(instance: Instance) -> str | None:
    """Return why keepalived discards `nopreempt` and `preempt_delay`, None if it keeps them."""
    if instance.owner:
        return "has no effect on the owner of the addresses, as in keepalived"
    if instance.state is not None and instance.state.text == _MASTER and instance.strict is None:
        return "keepalived discards it with `state MASTER`: write `state BACKUP` to keep it"
    return None


def _acceptance(instance: Instance, version: int) -> None:
    """Refuse what has keepalived drop connections to the addresses: an address that is held accepts them.

    Only the owner of the addresses always accepts (keepalived.conf(5), `priority`, `vrrp_strict`, `accept`).
    """
    given = instance.acceptance
    allows = given is not None and given.keyword == "accept"
    if given is not None and not allows and not instance.owner:
        instance.ledger.refuse(given.place, "an address that is held accepts connections: leave it out")
        instance.unprotected.append(given.keyword)
    elif given is not None:
        instance.ledger.ignore(given.place, _ACCEPTS if allows else _OWNER_ACCEPTS)
    if instance.strict is None:
        return
    if instance.owner or (allows and version == 3):
        instance.ledger.change(instance.strict, _STRICT)
        return
    instance.ledger.refuse(instance.strict, _STRICT_DROPS)
    instance.unprotected.append("vrrp_strict")


def _authentication(instance: Instance, version: int) -> None:
    kind, password = instance.auth_type, instance.auth_pass
    without = _sent_without(instance, version)
    if kind is not None and kind.text not in _AUTH_TYPES and not without:
        reason = (
            f"{shown(kind.text)} is unknown to keepalived, which sends no password, nor does the "
            "appliance: is `PASS` meant?"
        )
        instance.ledger.change(kind.place, reason)
        kind, without = None, "has no effect without a type that keepalived supports"
    if kind is None or password is None or without:
        reason = without or "`auth_type` and `auth_pass` take effect only together, as in keepalived"
        for each in (kind, password):
            if each is not None:
                instance.ledger.ignore(each.place, reason)
        return
    if kind.text != "PASS":
        reason = "PASS is supported, AH is not: `auth_type PASS` on all routers, or `auth: {hmac: ...}`"
        instance.ledger.refuse(kind.place, reason)
        instance.ledger.ignore(password.place, "belongs to `auth_type AH`, which is refused")
        instance.unprotected.append("authentication")
        return
    whole = password.text.encode()
    sent = whole[:PASSWORD_SIZE].decode(errors="replace")
    if _UNREADABLE in sent:
        reason = "its first 8 bytes are not valid UTF-8: choose another password, on all routers"
        instance.ledger.refuse(password.place, reason)
        instance.unprotected.append("authentication")
        return
    if len(whole) > PASSWORD_SIZE:
        instance.ledger.change(
            password.place, "only its first 8 bytes count, as in keepalived: the rest is dropped"
        )
    instance.put("auth", "pass", value=sent, place=password.place)


def _sent_without(instance: Instance, version: int) -> str | None:
    """Return why keepalived sends no password, None if it sends one."""
    if instance.strict is not None:
        return "with `vrrp_strict` no password is sent, as in keepalived"
    if version == 3:
        return "version 3 has no passwords, and keepalived sends none either"
    return None


def _source(instance: Instance) -> None:
    """Write the source address of advertisements, unless it is one that only the active router has."""
    if instance.source is None:
        return
    source = address(instance.source)
    if source in instance.held and not instance.owner:
        reason = (
            "is the virtual IP itself, which a backup does not have: adverts come from the interface's "
            "address"
        )
        instance.ledger.change(instance.source.place, reason)
        instance.source = None
    else:
        instance.put("source", value=str(source), place=instance.source.place)


def _peers(instance: Instance) -> None:
    own = None if instance.source is None else address(instance.source)
    for each in instance.peers:
        if address(each) == own:
            instance.ledger.ignore(each.place, "is `unicast_src_ip`, this router itself")
        else:
            instance.append("peers", value=str(address(each)), place=each.place)
    if instance.peers and instance.strict is not None:
        reason = (
            "does not allow `unicast_peer`, and keepalived does not run the instance: remove one of the two"
        )
        instance.ledger.refuse(instance.strict, reason)
    if not instance.least_ttls:
        return
    least, place = min(instance.least_ttls, key=lambda each: each[0])
    for ttl, where in instance.least_ttls:
        if ttl != least or len(instance.least_ttls) < len(instance.peers):
            instance.ledger.change(where, "all peers share one `min_ttl` here, the lowest of theirs")
    if len(instance.least_ttls) == len(instance.peers) and least:
        instance.put("min_ttl", value=least, place=place)


def _multicast(instance: Instance) -> None:
    """Refuse a multicast group of `global_defs` that is not the RFC's, if this instance would use it."""
    other = instance.surface.multicast_groups.get(instance.family or 4)
    if other is not None and not instance.peers and instance.multicast_group is None:
        instance.ledger.refuse(other.place, OTHER_GROUP)
        instance.unprotected.append(f"vrrp_mcast_group{instance.family or 4}")


def _labels(instance: Instance) -> None:
    """Keep a label that all addresses share; a label of only some of them has no effect but the name."""
    if not instance.labels:
        return
    names = {each.text for each in instance.labels}
    if instance.family == 6:
        reason = "`label`: the kernel has labels for IPv4 only"
    elif len(names) > 1 or len(instance.labels) < instance.address_count:
        reason = "`label`: a virtual IP has one label for all of its addresses, or none, as in this case"
    else:
        instance.put("label", value=instance.labels[0].text, place=instance.labels[0].place)
        return
    for each in instance.labels:
        instance.ledger.ignore(each.place, reason)


def _listen(instance: Instance, version: int) -> None:
    """Set the listen time: keepalived's wait at its start, then the time in which a failure is noticed."""
    if instance.startup_delay is None or not instance.startup_delay[0]:
        return
    delay, place = instance.startup_delay
    advert = instance.advert[0] if instance.advert else Decimal(1)
    priority = instance.priority or 100
    skew = Decimal(256 - priority) / 256 * (1 if version == 2 else advert)
    instance.put("listen", value=duration(delay + 3 * advert + skew), place=place)


def _user(instance: Instance) -> None:
    """Write the FIFO, and the user of the notify commands: the first that one names, else the global one."""
    if instance.surface.fifo is not None:
        instance.put("notify", "fifo", value=instance.surface.fifo.text, place=instance.surface.fifo.place)
    if not any(instance.has("notify", each) for each in KEYS.values()):
        return
    user = instance.users[0] if instance.users else instance.surface.script_user
    if user is None:
        return
    instance.put("notify", "user", value=user.text, place=user.place)
    for each in instance.users[1:]:
        if each.text != user.text:
            reason = f"all commands of a virtual IP run as one user, `{user.text}`"
            instance.ledger.change(each.place, reason)
