"""The one check of a server here, made from its checkers in keepalived."""

from decimal import Decimal

from appliance.model.config.values.addresses import dns_name
from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.checks import MOST_CHECKS
from appliance.translation.keepalived.meaning.values import DirectiveError, duration
from appliance.translation.keepalived.virtual_servers.blocks import Block
from appliance.translation.keepalived.virtual_servers.checkers import (
    MISC,
    TCP,
    Checker,
    Keys,
    requests_of,
    usual,
)
from appliance.translation.keepalived.virtual_servers.real_server import RealServer

_DELAY = Decimal(60)
_LONGEST_CONNECT = Decimal(10)


def check_of(server: RealServer, around: Block) -> Keys | None:
    """Return the check of a server, None if it is always up; raises DirectiveError."""
    found = _the_one(server)
    if found is None:
        return None
    first, *others = [_named(each, found) for each in requests_of(found, server, around)] or [{}]
    keys = {**found.keys, **first, **_times(found, server, around)}
    if others:
        also: dict[str, Plain] = {
            f"url-{number}": _plain(each) for number, each in enumerate(others, start=2)
        }
        keys["also"] = (also, found.urls[1].head.place)
    return keys


def _named(request: Keys, found: Checker) -> Keys:
    """Return the keys of a request, with the name that the TLS handshake sends: `sni_name`, or its host."""
    if "sni" in found.keys:
        return {**request, "sni": found.keys["sni"]}
    host = request.get("host")
    if found.sends_sni is None or host is None:
        return request
    return {**request, "sni": (_name(host), host[1])}


def _plain(keys: Keys) -> dict[str, Plain]:
    return {key: value for key, (value, _) in keys.items()}


def _the_one(server: RealServer) -> Checker | None:
    """Return the checker that covers all others; any checker over TCP connects as well."""
    others = [each for each in server.checkers if each.head.keyword != TCP]
    asked = {each.target for each in others}
    found = list(others)
    for each in server.checkers:
        if each.head.keyword == TCP and each.target in asked:
            reason = "another check of this server connects there as well, and tests more"
            each.ledger.ignore(each.head.place, reason)
            each.ledger.leave_out(each.head.places, f"belongs to `{TCP}`, line {each.head.place.line}")
        elif each.head.keyword == TCP:
            found.append(each)
    if len(found) > 1:
        last = max((each.head for each in found), key=lambda head: head.place.line)
        reason = (
            "a server has one check here: remove one, or list the server twice, each time with its own port"
        )
        raise DirectiveError(reason, last.place)
    return found[0] if found else None


def _name(host: tuple[object, FilePosition]) -> str:
    try:
        return dns_name(host[0])
    except ValueError as error:
        raise DirectiveError(f"is sent in the TLS handshake (`enable_sni`): {error}", host[1]) from None


def _times(found: Checker, server: RealServer, around: Block) -> Keys:
    """Return interval, timeout, rise and fall; the innermost block that sets one counts."""
    place = found.head.place
    outer = {**around.numbers, **server.numbers}
    if found.head.keyword == MISC:
        outer.pop("connect_timeout", None)
    said = {**outer, **found.numbers}
    interval, interval_place = said.get("delay_loop", (_DELAY, place))
    rest = {key: (number, place) for key, number in usual(found.head.keyword, interval).items()}
    retries, retries_place = said.get("retry", rest["retry"])
    again, again_place = said.get("delay_before_retry", rest["delay_before_retry"])
    timeout, timeout_place = said.get("connect_timeout", rest["connect_timeout"])
    _tell_of_connecting(timeout, interval, timeout_place, found.ledger)
    keys: Keys = {"interval": (duration(interval), interval_place)}
    if retries and again != interval:
        keys["fast_interval"] = (duration(again) if again else "1ms", again_place)
    keys["timeout"] = (duration(timeout), timeout_place)
    keys["rise"] = (1, place)
    keys["fall"] = (min(int(retries) + 1, MOST_CHECKS), retries_place)
    if retries >= MOST_CHECKS:
        found.ledger.change(retries_place, f"is limited to {MOST_CHECKS - 1} here")
    return keys


def _tell_of_connecting(timeout: Decimal, interval: Decimal, place: FilePosition, ledger: Ledger) -> None:
    most = min(_LONGEST_CONNECT, interval)
    if timeout > most:
        ledger.change(place, f"a check connects within {most.normalize():f} s, or fails")
