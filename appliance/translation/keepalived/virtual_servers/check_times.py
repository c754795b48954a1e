"""How often, how long and how patiently a server is checked: keepalived's times and retries as ours.

A block without such a directive inherits it from the block around it.
"""

from decimal import Decimal
from typing import Final, TypeVar

from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.directive_handling import Table, Understood, ignored
from appliance.translation.keepalived.meaning.track_definitions import MOST_CHECKS
from appliance.translation.keepalived.meaning.values import DirectiveError, duration, only, seconds, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.virtual_servers.blocks import ALPHA, Block, take_virtualhost

Keys = dict[str, tuple[Plain, FilePosition]]
"""Keys of our check, each with its place."""

MISC: Final = "MISC_CHECK"
HTTP: Final = "HTTP_GET"
TLS: Final = "SSL_GET"
WEB_KINDS: Final = frozenset((HTTP, TLS))

MOST_NUMBER: Final = 2**32 - 1
"""keepalived's largest count."""

_DELAY: Final = Decimal(60)
_LONGEST_CONNECT: Final = Decimal(10)
_WARMUP: Final = ignored("the first checks run at once, and later ones are spread")
_SLIP: Final = "ignores it"

SomeBlock = TypeVar("SomeBlock", bound=Block)


def times(kind: type[SomeBlock]) -> Table[SomeBlock]:
    """Return the rules for checks that all these blocks share; keepalived ignores values out of range."""
    del kind
    return {
        "delay_loop": Understood(act=_time, slip=_SLIP),
        "connect_timeout": Understood(act=_time, slip=_SLIP),
        "delay_before_retry": Understood(act=_time_or_none, slip=_SLIP),
        "retry": Understood(act=_retry, slip=_SLIP),
        "virtualhost": Understood(act=take_virtualhost),
        "warmup": _WARMUP,
        "alpha": ALPHA,
    }


def times_of(found: Block, server: Block, around: Block) -> Keys:
    """Return interval, timeout, rise and fall; the innermost block that sets one counts."""
    place = found.head.place
    outer = {**around.numbers, **server.numbers}
    if found.head.keyword == MISC:
        outer.pop("connect_timeout", None)
    said = {**outer, **found.numbers}
    interval, interval_place = said.get("delay_loop", (_DELAY, place))
    rest = {key: (number, place) for key, number in _usual(found.head.keyword, interval).items()}
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


def _usual(kind: str, delay: Decimal) -> dict[str, Decimal]:
    """Return keepalived's default for a kind of checker if no block sets a value."""
    retries, again = (Decimal(0) if kind == MISC else Decimal(1)), Decimal(3 if kind in WEB_KINDS else 1)
    timeout = delay if kind == MISC else Decimal(5)
    return {"retry": retries, "delay_before_retry": again, "connect_timeout": timeout}


def _time(block: Block, given: Directive) -> None:
    word = only(given)
    found = seconds(word)
    if not found:
        raise DirectiveError("must be more than 0", word.place)
    block.numbers[given.keyword] = (found, word.place)


def _time_or_none(block: Block, given: Directive) -> None:
    word = only(given)
    block.numbers[given.keyword] = (seconds(word), word.place)


def _retry(block: Block, given: Directive) -> None:
    word = only(given)
    block.numbers["retry"] = (Decimal(whole(word, least=1, most=MOST_NUMBER)), word.place)
