"""`vrrp_sync_group`: instances that change state together, and share tracks and notify commands."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.directive_handling import (
    Table,
    Understood,
    apply,
    ignored,
    refused,
)
from appliance.translation.keepalived.meaning.instance_draft import Instance, Membership
from appliance.translation.keepalived.meaning.notify import KEYS, notify
from appliance.translation.keepalived.meaning.tracking import add, mention_of
from appliance.translation.keepalived.meaning.values import faults_in, only, own_name
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word


@dataclass(slots=True, kw_only=True)
class Group:
    """One group; `head` is its directive. Its tracks and commands wait until all instances are read."""

    head: Directive
    name: str
    ledger: Ledger
    members: list[Word] = field(default_factory=list)
    weights_count: bool = False
    tracks: list[tuple[str, Directive]] = field(default_factory=list)
    commands: list[Directive] = field(default_factory=list)


def sync_group(given: Directive, *, ledger: Ledger, taken: Container[str]) -> Group:
    """Read a group."""
    word = only(given)
    group = Group(head=given, name=own_name(word.text, taken), ledger=ledger)
    if group.name != word.text:
        ledger.change(word.place, f"is called `{group.name}` here: a name allows no other characters")
    for each in given.within:
        apply(_GROUP, group, each, ledger)
    if not group.members:
        reason = "names no instance (`group { VI_1 VI_2 }`): keepalived removes it, and so does the appliance"
        ledger.change(given.place, reason)
        ledger.leave_out(
            given.places, f"belongs to `{group.name}`, which names no instance", head=given.place
        )
    return group


def memberships(groups: Mapping[str, Group]) -> dict[str, Membership]:
    """Return the group of each instance, by the instance's name in the file."""
    found: dict[str, Membership] = {}
    for group in groups.values():
        for word in group.members:
            if word.text in found:
                group.ledger.refuse(
                    word.place, f"{shown(word.text)} is already in the group `{found[word.text].group}`"
                )
                continue
            found[word.text] = Membership(
                group=group.name, place=word.place, weights_count=group.weights_count
            )
    return found


def finish(group: Group, instances: Mapping[str, Instance]) -> None:
    """Pass the group's tracks on to its members, and its commands to the first of them."""
    if not group.members:
        return
    members = [instances[word.text] for word in group.members if word.text in instances]
    for word in group.members:
        if word.text not in instances:
            group.ledger.refuse(word.place, f"there is no vrrp_instance {shown(word.text)}")
    for kind, given in group.tracks:
        for each in given.within:
            with faults_in(group.ledger):
                mention = mention_of(each)
                for member in members:
                    add(member, kind, mention, own=False)
    for given in group.commands:
        _command(group, given, members)


def _command(group: Group, given: Directive, members: list[Instance]) -> None:
    """Let the first member without a command run that of the group: its members change together."""
    key = KEYS[given.keyword]
    member = next((each for each in members if not each.has("notify", key)), None)
    if member is None:
        reason = f"each member has its own `{given.keyword}`: have one command do both"
        group.ledger.refuse(given.place, reason)
        return
    with faults_in(group.ledger):
        notify(key)(member, given)
        reason = f"is run for `{member.name}`, which changes with the whole group"
        if key == "any":
            reason += f", with the arguments INSTANCE {member.name} instead of GROUP {group.name}"
        group.ledger.change(given.place, reason)


def _members(group: Group, given: Directive) -> None:
    for each in given.within:
        group.members += each.words


def _track(kind: str) -> Callable[[Group, Directive], None]:
    def take(group: Group, given: Directive) -> None:
        group.tracks.append((kind, given))

    return take


def _weights_count(group: Group, given: Directive) -> None:
    del given
    group.weights_count = True


_GROUP: Final[Table[Group]] = {
    "group": Understood(act=_members, block=True),
    "track_interface": Understood(act=_track("interface"), block=True),
    "track_script": Understood(act=_track("vrrp_script"), block=True),
    "track_process": Understood(act=_track("vrrp_track_process"), block=True),
    "track_file": Understood(act=_track("track_file"), block=True),
    "track_bfd": refused("BFD is not supported: `track` an interface, a URL or a script instead"),
    **{keyword: Understood(act=lambda group, given: group.commands.append(given)) for keyword in KEYS},
    "sync_group_tracking_weight": Understood(act=_weights_count),
    "global_tracking": Understood(act=_weights_count),
    "notify_deleted": ignored("a virtual IP that a reload removes runs `notify_stop`"),
    "notify_priority_changes": ignored("`appliance status` and the log show the priority"),
    "smtp_alert": ignored("no email is sent: the log shows every transition, and `notify` runs a command"),
}
