"""What an instance or a sync group tracks: scripts, interfaces, processes, files."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from appliance.model.config.virtual_ips import MOST_WEIGHT
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.meaning.instance_draft import Instance, Watched
from appliance.translation.keepalived.meaning.values import DirectiveError, faults_in, own_name, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

_REVERSE: Final = (
    "`reverse` is not supported: invert the check, so that it exits with 0 on success, or give the weight "
    "to the other routers"
)
_MOST_ANYWHERE: Final = 254  # of a process or a file; a script's is 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A tracked item, named in a block of an instance or a group; `weight` None means the item's own."""

    word: Word
    weight: int | None = None
    weight_word: Word | None = None


def mention_of(given: Directive) -> Mention:
    """Return the item that a line of a block such as `track_script` names: `NAME [weight N [reverse]]`."""
    name, *words = given.words
    if not words:
        return Mention(word=name)
    if words[0].text != "weight" or len(words) < 2:
        raise DirectiveError("a line has one name, with `weight N`", words[0].place)
    for each in words[2:]:
        if each.text not in ("noreverse", "no_reverse"):
            reason = _REVERSE if each.text == "reverse" else f"{shown(each.text)} is unexpected here"
            raise DirectiveError(reason, each.place)
    number = whole(words[1], least=-_MOST_ANYWHERE, most=_MOST_ANYWHERE)
    return Mention(word=name, weight=number, weight_word=words[1])


def track(kind: str) -> Callable[[Instance, Directive], None]:
    """Return the handler of a block that names scripts, processes or files (`kind`)."""

    def take(instance: Instance, given: Directive) -> None:
        for each in given.within:
            with faults_in(instance.ledger):
                add(instance, kind, mention_of(each), own=True)

    return take


def add(instance: Instance, kind: str, mention: Mention, *, own: bool) -> None:
    """Let an instance track something; `own` is whether the instance names it, not its sync group."""
    key = (kind, mention.word.text)
    if key in instance.tracked:
        instance.ledger.ignore(mention.word.place, f"{shown(mention.word.text)} is tracked already")
        return
    if kind != "interface" and key not in instance.surface.watched:
        reason = (
            f"there is no {kind} {shown(mention.word.text)} in this file: keepalived continues without it"
        )
        instance.ledger.change(mention.word.place, f"{reason}, and so does the appliance")
        return
    instance.tracked.add(key)
    watched = _interface(instance, mention) if kind == "interface" else instance.surface.watched[key]
    if watched is None:
        return
    if mention.weight is not None:
        place = (mention.weight_word or mention.word).place
        watched = replace(watched, weight=mention.weight, weight_place=place)
    watched = _weighed(instance, watched, mention, own=own)
    programs = _proxies(instance, watched) if watched.haproxy else ()
    for each in programs:
        _entry(instance, replace(watched, kind="program", target=each))
    if not programs:
        _entry(instance, watched)


def _interface(instance: Instance, mention: Mention) -> Watched | None:
    """Return the translation of an interface; None for the instance's own, which is always watched."""
    name = mention.word
    if instance.interface is not None and instance.interface.text == name.text:
        if mention.weight:
            reason = (
                "the interface of the virtual IP is always watched, and down is a fault: it takes no weight"
            )
            instance.ledger.change(name.place, reason)
        return None
    return Watched(
        name=name.text, place=name.place, kind="interface", target=name.text, target_place=name.place
    )


def _weighed(instance: Instance, watched: Watched, mention: Mention, *, own: bool) -> Watched:
    """Return it with the weight that keepalived would apply."""
    if abs(watched.weight) > MOST_WEIGHT and watched.kind != "file":
        instance.ledger.change(mention.word.place, f"a weight is at most {MOST_WEIGHT}")
        most = MOST_WEIGHT if watched.weight > 0 else -MOST_WEIGHT
        watched = replace(watched, weight=most)
    if own and watched.weight and instance.membership and not instance.membership.weights_count:
        reason = (
            f"is a fault while it is down, without its weight {watched.weight}: keepalived ignores the "
            "weights of members of a vrrp_sync_group, too"
        )
        instance.ledger.change(mention.word.place, reason)
        watched = replace(watched, weight=0)
    return watched


def _proxies(instance: Instance, watched: Watched) -> tuple[str, ...]:
    """Return our proxies that replace haproxy: those that this virtual IP leads to."""
    running = tuple(instance.surface.programs)
    name = instance.name.lower()
    if len(running) == 1:
        return running
    if any(each in name for each in ("ingress", "apps", "router", "http", "web")):
        return ("proxy-ingress",)
    if any(each in name for each in ("api", "master", "control", "kube")):
        return ("proxy-api",)
    return running[:1] if watched.weight else running


def _entry(instance: Instance, watched: Watched) -> None:
    name = own_name(watched.name, instance.tracks)
    instance.tracks[name] = watched
    instance.put("track", name, watched.kind, value=watched.target, place=watched.target_place)
    for key, value, place in watched.settings:
        instance.put("track", name, key, value=value, place=place)
    if watched.weight:
        place = watched.weight_place or watched.place
        instance.put("track", name, "weight", value=watched.weight, place=place)
