"""Commands that keepalived runs when a virtual router changes state."""

from collections.abc import Callable
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.meaning.instance_draft import Instance
from appliance.translation.keepalived.meaning.values import DirectiveError
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word
from appliance.translation.keepalived.syntax.words import CommandError, command_words

_ENV: Final = "/usr/bin/env"

KEYS: Final = {
    "notify_master": "active",
    "notify_backup": "backup",
    "notify_fault": "fault",
    "notify_stop": "stop",
    "notify": "any",
}
"""keepalived's keywords, and our keys below `notify`."""


def command(word: Word) -> list[str]:
    """Return the words of a command; env(1) searches one without a directory, as keepalived does."""
    try:
        found = list(command_words(word.text))
    except CommandError as fault:
        raise DirectiveError(f"{shown(word.text)} cannot be split into words: {fault}", word.place) from None
    if not found or not all(found) or "\0" in word.text:
        raise DirectiveError("must be a command such as `/usr/local/bin/tell active`", word.place)
    return found if found[0].startswith("/") else [_ENV, *found]


def notify(key: str) -> Callable[[Instance, Directive], None]:
    """Return the handler of one of the keywords of KEYS."""

    def take(instance: Instance, given: Directive) -> None:
        if not given.values:
            raise DirectiveError(f"`{given.keyword}` needs a command", given.place)
        word, *run_as = given.values
        if instance.has("notify", key):
            reason = (
                f"`{given.keyword}` is listed twice: keepalived runs the first one, and so does the appliance"
            )
            instance.ledger.change(given.place, reason)
            return
        instance.put("notify", key, value=[*command(word)], place=word.place)
        if not command_is_found(word):
            reason = f"`{_ENV}` searches for it: commands need an absolute path here"
            instance.ledger.change(word.place, reason)
        _run_as(instance, run_as)

    return take


def command_is_found(word: Word) -> bool:
    """Return whether a command includes its directory."""
    return word.text.lstrip(" \t\"'").startswith("/")


def _run_as(instance: Instance, words: list[Word]) -> None:
    """Take the user and the group that run a command."""
    instance.users += words[:1]
    if len(words) > 1:
        instance.ledger.change(words[1].place, "the group is the user's own: no other can be set")
