"""The check of a server and its further ones, made from its checkers in keepalived."""

from decimal import Decimal

from appliance.model.config.pools import MOST_FURTHER_CHECKS
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
    plain,
    requests_of,
    usual,
)
from appliance.translation.keepalived.virtual_servers.real_server import RealServer

_DELAY = Decimal(60)
_LONGEST_CONNECT = Decimal(10)


def check_of(server: RealServer, around: Block) -> Keys | None:
    """Return the check of a server, None if it is always up; raises DirectiveError."""
    found = _checkers(server)
    if not found:
        return None
    times, *others = [_times(each, server, around) for each in found]
    for checker, each in zip(found[1:], others, strict=True):
        if plain(each) != plain(times):
            reason = "the checks of one server have the same times and retries here: remove one, or adapt it"
            raise DirectiveError(reason, checker.head.place)
    first, *further = [keys for each in found for keys in _of_checker(each, server, around)]
    if len(further) > MOST_FURTHER_CHECKS:
        reason = f"a server has at most {MOST_FURTHER_CHECKS + 1} checks here"
        raise DirectiveError(reason, found[-1].head.place)
    keys = {**first, **times}
    if further:
        also: dict[str, Plain] = {
            f"check-{at}": plain(_beside(each, first, server)) for at, each in enumerate(further, start=2)
        }
        keys["also"] = (also, server.head.place)
    return keys


def _of_checker(found: Checker, server: RealServer, around: Block) -> list[Keys]:
    """Return the keys of each connection that a checker makes: one for each `url`."""
    return [{**found.keys, **_named(each, found)} for each in requests_of(found, server, around) or [{}]]


def _beside(keys: Keys, first: Keys, server: RealServer) -> Keys:
    """Return a further check as it differs from the first, whose address, port and type it has otherwise."""
    usual: Keys = {
        "address": (server.address.host, server.head.place),
        "port": (server.address.port, server.head.place),
    }
    own = {key: keys.get(key, value) for key, value in usual.items() if key in first}
    found = {**keys, **own}
    shared = [key for key in ("type", "address", "port") if key in found and key in first]
    same = [key for key in shared if found[key][0] == first[key][0]]
    return {key: value for key, value in found.items() if key not in same}


def _checkers(server: RealServer) -> list[Checker]:
    """Return the checkers without those that others cover: any checker over TCP connects as well."""
    others = [each for each in server.checkers if each.head.keyword != TCP]
    asked = {each.target for each in others}
    found = []
    for each in server.checkers:
        if each.head.keyword == TCP and each.target in asked:
            reason = "another check of this server connects there as well, and tests more"
            each.ledger.ignore(each.head.place, reason)
            each.ledger.leave_out(each.head.places, f"belongs to `{TCP}`, line {each.head.place.line}")
        else:
            found.append(each)
    return found


def _named(request: Keys, found: Checker) -> Keys:
    """Return the keys of a request, with the name that the TLS handshake sends: `sni_name`, or its host."""
    if "sni" in found.keys:
        return {**request, "sni": found.keys["sni"]}
    host = request.get("host")
    if found.sends_sni is None or host is None:
        return request
    return {**request, "sni": (_name(host), host[1])}


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
