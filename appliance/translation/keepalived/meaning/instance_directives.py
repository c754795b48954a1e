"""The directives of a `vrrp_instance` (keepalived.conf(5)), each with its translation."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.meaning.addresses import excluded_addresses, virtual_addresses
from appliance.translation.keepalived.meaning.directive_handling import (
    Table,
    Understood,
    apply,
    changed,
    ignored,
    refused,
)
from appliance.translation.keepalived.meaning.globals import RFC_GROUPS
from appliance.translation.keepalived.meaning.instance_draft import OTHER_GROUP, Instance
from appliance.translation.keepalived.meaning.notify import KEYS, notify
from appliance.translation.keepalived.meaning.tracking import track
from appliance.translation.keepalived.meaning.values import (
    DirectiveError,
    address,
    duration_or_off,
    faults_in,
    is_on,
    only,
    seconds,
    whole,
)
from appliance.translation.keepalived.meaning.virtual_routes import virtual_routes, virtual_rules
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

_LONGEST: Final = 86400  # seconds: keepalived takes more, but to no effect


PROTECTING: Final = frozenset(("authentication", "mcast_dst_ip", "no_accept", "strict_mode", "unicast_peer"))
"""Keywords without which an instance would be more open, or reach other routers, than its file says."""


def source(instance: Instance, given: Directive) -> None:
    """Take `unicast_src_ip` or `mcast_src_ip`."""
    word = _alone(instance, only(given))
    address(word)
    instance.source = word


def peers(instance: Instance, given: Directive) -> None:
    """Take `unicast_peer`: addresses, each with `min_ttl` and `max_ttl` if given."""
    if not given.within:
        reason = "without a peer adverts are sent by multicast, as in keepalived"
        instance.ledger.change(given.place, reason)
    for each in given.within:
        with faults_in(instance.ledger):
            _ttls(instance, list(each.values))
            _peer(instance, _alone(instance, each.words[0]))


def _alone(instance: Instance, word: Word) -> Word:
    """Return a router's address without the prefix length, which keepalived ignores."""
    host, slash, length = word.text.partition("/")
    if slash:
        reason = f"a router has no prefix length: keepalived ignores {shown(slash + length)}"
        instance.ledger.change(word.place, reason)
    return Word(text=host, place=word.place)


def _peer(instance: Instance, word: Word) -> None:
    found = address(word)
    if any(address(each) == found for each in instance.peers):
        instance.ledger.ignore(word.place, f"`{found}` is listed already")
        return
    instance.peers.append(word)


def _ttls(instance: Instance, words: list[Word]) -> None:
    while words:
        option = words.pop(0)
        if option.text not in ("min_ttl", "max_ttl"):
            raise DirectiveError("a line has one peer, with `min_ttl` and `max_ttl`", option.place)
        if not words:
            raise DirectiveError(f"`{option.text}` needs a number", option.place)
        ttl = whole(words.pop(0), least=0, most=255)
        if option.text == "min_ttl":
            instance.least_ttls.append((ttl, option.place))
        elif ttl < 255:
            instance.ledger.ignore(option.place, "`max_ttl`: a greater TTL is harmless, and is accepted")


def authentication(instance: Instance, given: Directive) -> None:
    """Take `authentication`."""
    for each in given.within:
        apply(_AUTHENTICATION, instance, each, instance.ledger)


def _auth_type(instance: Instance, given: Directive) -> None:
    instance.auth_type = only(given)


def _auth_pass(instance: Instance, given: Directive) -> None:
    if len(given.values) != 1:
        raise DirectiveError("`auth_pass` takes one value, in quotes if needed", given.place)
    instance.auth_pass = given.values[0]


_AUTHENTICATION: Table[Instance] = {
    "auth_type": Understood(act=_auth_type),
    "auth_pass": Understood(act=_auth_pass),
    "auth_hmac": refused(
        "is not translated: write `auth: { hmac: ... }` with the same keys in the appliance's YAML"
    ),
}


def _interface(instance: Instance, given: Directive) -> None:
    word = only(given)
    instance.interface = word
    instance.put("interface", value=word.text, place=word.place)


def _state(instance: Instance, given: Directive) -> None:
    word = only(given)
    if word.text not in ("MASTER", "BACKUP"):
        raise DirectiveError(f"must be MASTER or BACKUP, not {shown(word.text)}", word.place)
    instance.state = word


def _router_id(instance: Instance, given: Directive) -> None:
    word = only(given)
    instance.put("router_id", value=whole(word, least=1, most=255), place=word.place)
    instance.router_id = word


def _priority(instance: Instance, given: Directive) -> None:
    word = only(given)
    instance.priority = whole(word, least=1, most=255)
    instance.put("priority", value=instance.priority, place=word.place)


def _placed(field: str, value: Callable[[Word], object]) -> Callable[[Instance, Directive], None]:
    """Return what sets a field of the instance to its value and place."""

    def take(instance: Instance, given: Directive) -> None:
        word = only(given)
        setattr(instance, field, (value(word), word.place))

    return take


_version: Final = partial(whole, least=2, most=3)


def _strict(instance: Instance, given: Directive) -> None:
    instance.strict = given.place if is_on(given) else None


def _acceptance(instance: Instance, given: Directive) -> None:
    instance.acceptance = given


def _nopreempt(instance: Instance, given: Directive) -> None:
    instance.nopreempt = given


def _adverts_that_may_be_missing(instance: Instance, given: Directive) -> None:
    word = only(given)
    instance.put("down_timer_adverts", value=whole(word, least=1, most=100), place=word.place)


def _announce_time(key: str) -> Callable[[Instance, Directive], None]:
    def take(instance: Instance, given: Directive) -> None:
        word = only(given)
        time = Decimal(whole(word, least=0, most=_LONGEST))
        instance.put("announce", key, value=duration_or_off(time), place=word.place)

    return take


def _announce_count(key: str) -> Callable[[Instance, Directive], None]:
    def take(instance: Instance, given: Directive) -> None:
        word = only(given)
        number = whole(word, least=0, most=2**31 - 1)
        if not 1 <= number <= 100:
            instance.ledger.change(word.place, "is limited to 1 to 100 here")
        instance.put("announce", key, value=min(max(number, 1), 100), place=word.place)

    return take


def _min_garp(instance: Instance, given: Directive) -> None:
    if is_on(given):
        instance.put("announce", "repeat", value=1, place=given.place)
        instance.put("announce", "delay", value="off", place=given.place)


def _vmac(instance: Instance, given: Directive) -> None:
    instance.put("virtual_mac", value=True, place=given.place)
    if given.values:
        reason = "the appliance names the interface itself, and the MAC address is the RFC's"
        instance.ledger.change(given.values[0].place, reason)


def _multicast_group(instance: Instance, given: Directive) -> None:
    word = only(given)
    if str(address(word)) not in RFC_GROUPS:
        raise DirectiveError(OTHER_GROUP, word.place)
    instance.multicast_group = word


def _unicast_ttl(instance: Instance, given: Directive) -> None:
    word = only(given)
    if whole(word, least=0, most=255) != 255:
        instance.ledger.change(word.place, "adverts are sent with a TTL of 255, which all routers accept")


_NO_MAIL: Final = "no email is sent: the log shows every transition, and `notify` runs a command"
_LOWER: Final = "a lower advert is answered at once, and the addresses are announced again"

INSTANCE: Final[Table[Instance]] = {
    "interface": Understood(act=_interface),
    "state": Understood(act=_state, slip="starts as backup"),
    "virtual_router_id": Understood(act=_router_id),
    "priority": Understood(act=_priority, slip="uses 100"),
    "advert_int": Understood(act=_placed("advert", seconds), slip="uses 1 s"),
    "version": Understood(act=_placed("version", _version)),
    "strict_mode": Understood(act=_strict),
    "authentication": Understood(act=authentication, block=True),
    "mcast_src_ip": Understood(act=source),
    "unicast_src_ip": Understood(act=source),
    "unicast_peer": Understood(act=peers, block=True),
    "unicast_ttl": Understood(act=_unicast_ttl),
    "mcast_dst_ip": Understood(act=_multicast_group),
    "virtual_ipaddress": Understood(act=virtual_addresses, block=True),
    "virtual_ipaddress_excluded": Understood(act=excluded_addresses, block=True),
    "nopreempt": Understood(act=_nopreempt),
    "preempt": ignored("the router preempts unless `nopreempt` is set"),
    "preempt_delay": Understood(act=_placed("preempt_delay", seconds), slip="does not wait"),
    "down_timer_adverts": Understood(act=_adverts_that_may_be_missing),
    "track_interface": Understood(act=track("interface"), block=True),
    "track_script": Understood(act=track("vrrp_script"), block=True),
    "track_process": Understood(act=track("vrrp_track_process"), block=True),
    "track_file": Understood(act=track("track_file"), block=True),
    "track_bfd": refused("BFD is not supported: `track` an interface, a URL or a script instead"),
    "garp_master_delay": Understood(act=_announce_time("delay")),
    "garp_master_repeat": Understood(act=_announce_count("repeat")),
    "garp_master_refresh": Understood(act=_announce_time("refresh")),
    "garp_master_refresh_repeat": Understood(act=_announce_count("refresh_repeat")),
    "garp_lower_prio_delay": ignored(_LOWER),
    "garp_lower_prio_repeat": ignored(_LOWER),
    "lower_prio_no_advert": ignored(_LOWER),
    "higher_prio_send_advert": ignored("the router that remains active announces the addresses again"),
    "garp_extra_if": ignored("all addresses of a virtual IP are on its interface, and announced there"),
    "use_vmac": Understood(act=_vmac),
    "use_vmac_addr": ignored("all addresses of a virtual IP are on its interface"),
    "vmac_xmit_base": changed("adverts are sent from the virtual MAC's own interface"),
    "use_ipvlan": refused(
        "ipvlan is not supported: write `use_vmac`, or put the addresses on the interface itself"
    ),
    "native_ipv6": ignored("the addresses determine the family"),
    "dont_track_primary": changed("the interface is always watched: without a carrier a router cannot serve"),
    "track_src_ip": ignored("a missing source address is always a fault"),
    "skip_check_adv_addr": ignored(
        "an advert that shares an address is accepted, and a difference is reported"
    ),
    "check_unicast_src": ignored("adverts of routers that are not peers are always dropped"),
    "unicast_fault_no_peer": ignored("peers are configured, or adverts are multicast"),
    "old_unicast_checksum": ignored(
        "is for keepalived before 1.3.7: version 3 accepts both of today's checksums"
    ),
    "accept": Understood(act=_acceptance),
    "no_accept": Understood(act=_acceptance),
    "promote_secondaries": ignored("addresses that the kernel removes with another one are restored at once"),
    "virtual_routes": Understood(act=virtual_routes, block=True),
    "virtual_rules": Understood(act=virtual_rules, block=True),
    "vrf": refused("VRFs are not supported: run the appliance in the VRF, with ip-vrf(8)"),
    "linkbeat_use_polling": ignored("the kernel reports links that change"),
    "lvs_sync_daemon_interface": ignored("IPVS is not used, so it has no connections to synchronise"),
    "debug": ignored("keepalived does not use it either"),
    "smtp_alert": ignored(_NO_MAIL),
    "notify_deleted": ignored("a virtual IP that a reload removes runs `notify_stop`"),
    "notify_master_rx_lower_pri": refused(
        "no command is run for it: `notify_master` runs when the router becomes active"
    ),
    "notify_priority_changes": ignored("`appliance status` and the log show the priority"),
    "kernel_rx_buf_size": ignored("the socket buffers hold all that a virtual router receives"),
    "rx_buf_size": ignored("the socket buffers hold all that a virtual router receives"),
    **{keyword: Understood(act=notify(key)) for keyword, key in KEYS.items()},
    # Those valid only in global_defs, under names that no instance has.
    "vrrp_version": Understood(act=_placed("default_version", _version)),  # not of IPv6 instances
    "vrrp_startup_delay": Understood(act=_placed("startup_delay", seconds)),
    "vrrp_min_garp": Understood(act=_min_garp),
}
