"""The kernel's tables for forwarding: taken over from an earlier process, changed, counted, removed.

Each change of a family is one transaction: packets see the rules before it or after it, nothing between.
"""

import contextlib
import errno
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from appliance.core.forwarding import flows, guard_table, ruleset
from appliance.core.forwarding.forwarded import ForwardedFrontend
from appliance.forward.standing import Standing
from appliance.net.netlink.connection_room import connection_times
from appliance.net.nftables.nftables import Nftables, NftablesError, NftablesUser, listed_chain
from appliance.net.nftables.owned_table import OwnedTable
from appliance.wire.nftables.nftables_answer import COUNTERS_LIMIT, NftablesObject
from appliance.wire.nftables.nftables_commands import Family, delete_table, list_counters

_COUNTER: Final = re.compile(r"([fs])([0-9]{1,5})_([a-z]+)")


@dataclass(slots=True)
class _Known:
    """What is known of the table of a family; a failed transaction changes none of it.

    `text` is the table without slots, as last written; empty, without known slots, if another process wrote
    it or another program changed the tables meanwhile: then all is written once more. `flows` is the text of
    the flowtables, "" for none, None for unknown. `frontends` have the fingerprints of their chains.
    """

    text: str = ""
    flows: str | None = None
    frontends: dict[int, str] = field(default_factory=dict)
    counters: frozenset[str] = frozenset()
    slots: dict[int, Sequence[int]] = field(default_factory=dict)
    waits: dict[int, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCount:
    """What the kernel has counted under one name, for example `s3_in`."""

    packets: int
    bytes: int


class KernelTables(NftablesUser):
    """The tables of both families. Functions raise NftablesError if the kernel refuses.

    Each has a guard, for the time when another program has flushed it; the guard goes with this process.
    """

    def __init__(
        self,
        *,
        connect: Callable[[], Nftables] = Nftables,
        standing: Standing | None = None,
        guards: OwnedTable | None = None,
    ) -> None:
        super().__init__(connect)
        self._standing = standing or Standing()
        self._guards = guards or OwnedTable(connect=connect)
        self._guarded: dict[Family, str] = {}
        self._known: dict[Family, _Known] = {}

    def taken_over(self) -> Mapping[int, str]:
        """Read what an earlier process left; return the comments of the numbers that it used."""
        comments: dict[int, str] = {}
        for family in Family:
            counters = self._counters(family)
            if counters is None:
                continue
            known = _Known()
            known.counters = frozenset(str(each.fields["name"]) for each in counters)
            for each in counters:
                kind, number = _parsed(each)
                comments[number] = each.comment
                if kind == "f" and number not in known.frontends:
                    known.frontends[number] = self._fingerprint(family, number)
            self._known[family] = known
        return comments

    def install(self, family: Family, frontends: Sequence[ForwardedFrontend]) -> bool:
        """Make a family's table forward these frontends; return whether there was anything to do."""
        known = self._known.get(family) or _Known()
        if not frontends and family not in self._known:
            return False
        self._guard(family, frontends)
        times = connection_times()
        text = ruleset.table(family, frontends, present={}, times=times)
        settled = [each for each in frontends if not _is_to_be_left(each, known)]
        waits = {each.number: each.waits for each in settled}
        slots: dict[int, Sequence[int]] = {each.number: each.slots for each in settled}
        if (text, waits, slots) == (known.text, known.waits, known.slots):
            return False
        script = ""
        if text != known.text:
            script += ruleset.table(family, frontends, present=known.frontends, times=times)
        for each in settled:
            script += ruleset.slot_changes(
                family, each.number, each.slots, before=known.slots.get(each.number)
            )
            if known.waits.get(each.number) is not each.waits:
                script += ruleset.without_server(family, each)
        counters = _counter_names(frontends)
        fingerprints = {each.number: ruleset.fingerprint(family, each) for each in frontends}
        gone = known.frontends.keys() - fingerprints.keys()
        script += ruleset.forget(family, sorted(gone), sorted(known.counters - counters))
        self._write(family, script)
        if not self._standing.knows(family):
            text = ""
            slots.clear()
            waits.clear()
            fingerprints = {each: self._fingerprint(family, each) for each in fingerprints}
        self._known[family] = _Known(
            text=text,
            flows=known.flows,
            frontends=fingerprints,
            counters=counters,
            slots=slots,
            waits=waits,
        )
        return True

    def offload(self, family: Family, frontends: Sequence[ForwardedFrontend], devices: Sequence[str]) -> None:
        """Have flowtables for these frontends and interfaces only; if refused, rules work without them."""
        known = self._known.get(family)
        if known is None:
            return
        script = flows.with_flows(family, frontends, devices)
        if known.flows is None and not script and self._listed(family, flows.CHAIN) is None:
            known.flows = ""
        if script == known.flows:
            return
        self._write(family, script or flows.without_flows(family))
        known.flows = script
        if not self._standing.knows(family):
            known.text = ""

    def stop_offload(self) -> bool:
        """Make every connection pass the rules again; return whether any might not have."""
        found = [family for family, known in self._known.items() if known.flows]
        for family in found:
            self.offload(family, (), ())
        return bool(found)

    def stand(self) -> bool:
        """Return whether all is still as written: another program may have changed the kernel's tables."""
        return self._standing.unchanged()

    @property
    def unguarded(self) -> str:
        """Return why there is no guard, empty if there is one; kernels before 5.12 have none."""
        return self._guards.refused

    @property
    def unsure(self) -> bool:
        """Whether another program changed the tables during a write, so they must be written once more."""
        return any(not each.text for each in self._known.values())

    def forget(self) -> None:
        """Forget the state of the tables, so that all of it is written again."""
        self._known = {family: _Known() for family in self._known}
        self._standing.forget()

    def counts(self) -> Mapping[str, KernelCount]:
        """Return the counts, summed over both families, by the names of the counters."""
        found: dict[str, KernelCount] = {}
        for family in self._known:
            for each in self._counters(family) or ():
                name, (packets, octets) = str(each.fields["name"]), _figures(each)
                before = found.get(name, KernelCount(packets=0, bytes=0))
                found[name] = KernelCount(packets=before.packets + packets, bytes=before.bytes + octets)
        return found

    def remove(self) -> None:
        """Remove the tables in every family, whoever made them."""
        self._guards.close()
        self._guarded.clear()
        for family in Family:
            with contextlib.suppress(NftablesError):  # it does not exist
                self._open().run(delete_table(family, ruleset.TABLE))
        self._known.clear()
        self._standing.forget()

    def _write(self, family: Family, script: str) -> None:
        with self._standing.writing(family):
            self._open().run(script)

    def _guard(self, family: Family, frontends: Sequence[ForwardedFrontend]) -> None:
        script = guard_table.guard(family, frontends)
        if script != self._guarded.get(family) and self._guards.write(script):
            self._guarded[family] = script

    def _counters(self, family: Family) -> tuple[NftablesObject, ...] | None:
        """Return our counters of a table, None if there is no table."""
        try:
            found = self._open().run(list_counters(family, ruleset.TABLE), limit=COUNTERS_LIMIT)
        except NftablesError as error:
            if error.is_because(errno.ENOENT):
                return None
            raise
        return tuple(
            each
            for each in found
            if each.kind == "counter" and _COUNTER.fullmatch(str(each.fields.get("name")))
        )

    def _fingerprint(self, family: Family, number: int) -> str:
        """Return the fingerprint of a frontend's chain in the kernel, nothing if it has other rules."""
        rules = [each for each in self._listed(family, f"f{number}") or () if each.kind == "rule"]
        comment = rules[0].comment if rules else ""
        return comment if comment.partition(" ")[0] == str(len(rules)) else ""

    def _listed(self, family: Family, chain: str) -> tuple[NftablesObject, ...] | None:
        return listed_chain(self._open(), family, ruleset.TABLE, chain)


def _is_to_be_left(frontend: ForwardedFrontend, known: _Known) -> bool:
    """Return whether the slots of an earlier process are better than ours: we have no verdicts yet."""
    return frontend.waits and frontend.number in known.frontends and frontend.number not in known.slots


def _parsed(counter: NftablesObject) -> tuple[str, int]:
    """Return what a counter of ours counts for: `f` and a frontend's number, or `s` and a server's."""
    name = str(counter.fields["name"])
    return name[0], int(name[1:].partition("_")[0])


def _figures(counter: NftablesObject) -> tuple[int, int]:
    packets, octets = counter.fields.get("packets"), counter.fields.get("bytes")
    return (packets if isinstance(packets, int) else 0), (octets if isinstance(octets, int) else 0)


def _counter_names(frontends: Iterable[ForwardedFrontend]) -> frozenset[str]:
    return frozenset(
        name
        for each in frontends
        for name in (
            *(f"f{each.number}_{what}" for what in ruleset.FRONTEND_COUNTERS),
            *(f"s{server.number}_{what}" for server in each.servers for what in ruleset.SERVER_COUNTERS),
        )
    )
