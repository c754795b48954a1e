"""Reads keepalived.conf: virtual routers as `virtual_ips`, virtual servers as frontends, an outcome per line.

Numbers without a unit are seconds. Two defaults differ from keepalived 2.2: an active router announces its
addresses again each minute (`announce.refresh`), and a router that shuts down waits for its successor.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.directive_handling import (
    Table,
    Understood,
    apply,
    ignored,
    refused,
    unknown,
)
from appliance.translation.keepalived.meaning.globals import (
    DEFAULTS,
    GROUPS,
    MISPLACED,
    TOP,
    Globals,
    global_defs,
)
from appliance.translation.keepalived.meaning.groups import Group, finish, memberships, sync_group
from appliance.translation.keepalived.meaning.instance_completion import complete
from appliance.translation.keepalived.meaning.instance_directives import INSTANCE, PROTECTING
from appliance.translation.keepalived.meaning.instance_draft import Instance, Membership, Surface, Watched
from appliance.translation.keepalived.meaning.track_definitions import (
    track_file,
    vrrp_script,
    vrrp_track_process,
)
from appliance.translation.keepalived.meaning.values import faults_in, only, own_name
from appliance.translation.keepalived.proposals import proposals
from appliance.translation.keepalived.syntax.directives import Directive, directives
from appliance.translation.keepalived.syntax.located_text import Word
from appliance.translation.keepalived.syntax.statements import Statements, Surroundings
from appliance.translation.keepalived.virtual_servers.reading import VirtualServers
from appliance.translation.translation import Translation
from appliance.translation.tree_builder import TreeBuilder


def translate(
    source: str,
    *,
    read: Callable[[str], bytes],
    matching: Callable[[str], Sequence[str]],
    hostname: str,
    environment: Mapping[str, str],
    programs: Sequence[str],
) -> Translation:
    """Return the translation of the file at `source` and all files that it includes.

    `read` returns a file's bytes, up to a limit, or raises OSError; `matching` is a glob. `hostname` decides
    `@` lines. `programs` are the proxies of this appliance, `proxy-api` and `proxy-ingress`: a check that
    haproxy runs becomes a check of them; without any, HAProxy's own process is checked. Raises OSError if
    `source` itself cannot be read; every other problem is an outcome.
    """
    ledger = Ledger()
    around = Surroundings(
        read=read,
        matching=matching,
        config_id=hostname.partition(".")[0],
        environment=environment,
    )
    found = directives(Statements(around, ledger).of_file(source), ledger)
    start = FilePosition(line=1, column=1, source=source)
    reading = _Reading(ledger=ledger, tree=TreeBuilder(start), read=read)
    for each in found:
        _take(reading, each)
    instances = reading.finish(programs)
    return Translation(
        root=reading.tree.root,
        lines=ledger.outcomes,
        proposals=proposals(instances, forwards=reading.virtual_servers.found),
    )


class _Reading:
    """The blocks of the file, collected until all are read: they may be in any order."""

    def __init__(self, *, ledger: Ledger, tree: TreeBuilder, read: Callable[[str], bytes]) -> None:
        self.ledger = ledger
        self.tree = tree
        self.read = read
        self.globals = Globals(ledger=ledger)
        self.checks: dict[tuple[str, str], Directive] = {}
        self.groups: dict[str, Group] = {}
        self.instances: dict[str, Directive] = {}
        self.virtual_servers = VirtualServers(tree, ledger)

    def finish(self, programs: Sequence[str]) -> tuple[Instance, ...]:
        """Return the instances that are not left out, once everything they refer to is read."""
        surface = Surface(
            ledger=self.ledger,
            watched=self._watched(programs),
            programs=programs,
            script_user=self.globals.script_user,
            default_interface=self.globals.default_interface,
            fifo=self.globals.fifo,
            multicast_groups={GROUPS[keyword]: word for keyword, word in self.globals.groups.items()},
        )
        groups = memberships(self.groups)
        if self.globals.fifo is not None and groups:
            reason = "gets a line for each member of a vrrp_sync_group, and none for the GROUP"
            self.ledger.change(self.globals.fifo.place, reason)
        made: dict[str, Instance] = {}
        for name, given in self.instances.items():
            made[name] = self._instance(name, given, surface, groups.get(name), made)
        for group in self.groups.values():
            finish(group, made)
        sound = tuple(each for each in made.values() if complete(each))
        for each in sound:
            self.tree.graft(("virtual_ips", each.name), each.keys.root, each.head.place)
        self._untracked(made.values())
        self.virtual_servers.finish()
        for word in self.globals.groups.values():
            self.ledger.leave_out([word.place], "no instance uses multicast in this version of IP")
        return sound

    def _watched(self, programs: Sequence[str]) -> dict[tuple[str, str], Watched | None]:
        """Return what can be tracked, None for refused items."""
        found: dict[tuple[str, str], Watched | None] = dict.fromkeys(self.checks)
        for (kind, name), given in self.checks.items():
            with faults_in(self.ledger):
                if kind == "vrrp_script":
                    user = self.globals.script_user
                    found[kind, name] = vrrp_script(
                        given, ledger=self.ledger, read=self.read, default_user=user, programs=programs
                    )
                elif kind == "vrrp_track_process":
                    found[kind, name] = vrrp_track_process(given, ledger=self.ledger, programs=programs)
                else:
                    found[kind, name] = track_file(given, ledger=self.ledger)
        return found

    def _instance(
        self,
        name: str,
        given: Directive,
        surface: Surface,
        membership: Membership | None,
        others: Mapping[str, Instance],
    ) -> Instance:
        own = own_name(name, {each.name for each in others.values()})
        if own != name:
            reason = f"is called `{own}` here: a name has letters, digits, dots, hyphens and underscores"
            self.ledger.change(given.values[0].place, reason)
        instance = Instance(
            surface=surface, name=own, head=given, keys=TreeBuilder(given.place), membership=membership
        )
        if membership is not None:
            instance.put("sync_group", value=membership.group, place=membership.place)
        said = {each.keyword for each in given.within}
        defaults = [each for key, each in self.globals.defaults.items() if key not in said]
        for default in defaults:
            apply(_BY_DEFAULT, instance, default, self.ledger)
        # Addresses and tracks depend on the interface, excluded addresses on the family of the others.
        for each in sorted(given.within, key=lambda each: _ORDER.get(each.keyword, 1)):
            refusals = self.ledger.refusals
            apply(INSTANCE, instance, each, self.ledger)
            protects = each.keyword in PROTECTING or each.keyword not in INSTANCE
            if protects and self.ledger.refusals > refusals:
                instance.unprotected.append(each.keyword)
        return instance

    def _untracked(self, instances: Iterable[Instance]) -> None:
        """Note checks that nothing tracks: keepalived does not run them either."""
        tracked = {key for each in instances for key in each.tracked}
        for (kind, name), given in self.checks.items():
            if (kind, name) not in tracked:
                self.ledger.ignore(given.place, "nothing tracks it, so it is never run, as in keepalived")


def _take(reading: _Reading, given: Directive) -> None:
    """Take a directive of the file, and the content of a block that keepalived does not know.

    keepalived skips such a block's first line and its end, and reads on as if there were no block.
    """
    if given.keyword in _TOP or given.block is None:
        apply(_TOP, reading, given, reading.ledger)
        return
    reading.ledger.change(given.place, unknown(given.keyword, _TOP))
    for each in given.within:
        _take(reading, each)
    reading.ledger.leave_out(given.braces, f"belongs to `{given.keyword}`, line {given.place.line}")


def _check(reading: _Reading, given: Directive) -> None:
    kind = given.keyword.removeprefix("vrrp_") if given.keyword == "vrrp_track_file" else given.keyword
    name = only(given)
    if (kind, name.text) in reading.checks:
        _repeated(reading, kind, name, given)
        return
    reading.checks[kind, name.text] = given


def _group(reading: _Reading, given: Directive) -> None:
    name = only(given)
    if name.text in reading.groups:
        _repeated(reading, given.keyword, name, given)
        return
    taken = {each.name for each in reading.groups.values()}
    reading.groups[name.text] = sync_group(given, ledger=reading.ledger, taken=taken)


def _instance(reading: _Reading, given: Directive) -> None:
    name = only(given)
    if name.text in reading.instances:
        _repeated(reading, given.keyword, name, given)
        return
    reading.instances[name.text] = given


def _repeated(reading: _Reading, kind: str, name: Word, given: Directive) -> None:
    """Leave out a block whose name is taken: keepalived reports it too, and keeps the first one."""
    reason = f"there is already a {kind} {shown(name.text)}, which counts: keepalived ignores this one, too"
    reading.ledger.change(name.place, reason)
    reading.ledger.leave_out(given.places, f"belongs to the second {kind} of this name", head=given.place)


_ORDER: Final = {"interface": 0, "virtual_ipaddress_excluded": 2}

_BY_DEFAULT: Final[Table[Instance]] = {name: INSTANCE[own] for name, own in DEFAULTS.items()}

_HOST: Final = refused(
    "belongs to the host: set it in the host's network configuration, where it survives a restart"
)

_TOP: Final[Table[_Reading]] = {
    **MISPLACED,
    **TOP,
    "global_defs": Understood(act=lambda reading, given: global_defs(reading.globals, given), block=True),
    "vrrp_script": Understood(act=_check, block=True),
    "vrrp_track_process": Understood(act=_check, block=True),
    "track_file": Understood(act=_check, block=True),
    "vrrp_track_file": Understood(act=_check, block=True),
    "vrrp_sync_group": Understood(act=_group, block=True),
    "vrrp_instance": Understood(act=_instance, block=True),
    "garp_group": ignored("announcements are few: 5 for each address, and as many after the delay"),
    "linkbeat_interfaces": ignored("the kernel reports links that change"),
    "interface_up_down_delays": ignored(
        "a link counts as soon as it is up: `preempt_delay` waits where it matters"
    ),
    "bfd_instance": refused(
        "BFD is not supported: `advert: 10ms` in version 3 detects a dead router as fast"
    ),
    "static_ipaddress": _HOST,
    "static_routes": _HOST,
    "static_rules": _HOST,
    "track_group": _HOST,
    "virtual_server": Understood(act=lambda reading, given: reading.virtual_servers.take(given), block=True),
    "virtual_server_group": Understood(
        act=lambda reading, given: reading.virtual_servers.take_group(given), block=True
    ),
    "SSL": refused("checks send no certificate: leave it out; keepalived verifies none with it either"),
}
