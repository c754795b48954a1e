"""The other routers: source address, unicast peers, authentication."""

from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.meaning.instance import Instance
from appliance.translation.keepalived.meaning.rules import Table, Understood, apply, refused
from appliance.translation.keepalived.meaning.values import DirectiveError, address, faults_in, only, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word


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
