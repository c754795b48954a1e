"""Changes of the nodes that serve shared addresses, under streams whose every byte is checked."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from support.linger.linger_field import PORT
from support.linger.shared_field import SHARED, SHARED6, SharedField
from support.network.checked_streams import CheckedStreams
from support.processes.waiting import wait_until

_FULL: Final = os.environ.get("E2E_FULL") == "1"
COUNT: Final = 1000 if _FULL else 40
"""Streams of each version of IP."""

PERIOD: Final = 1.0 if _FULL else 0.1
"""Seconds between two pieces of a stream."""


class NodeChanges:
    """Changes of a field, each until all streams have gone on; planned ones end none."""

    def __init__(self, field: SharedField, streams: CheckedStreams) -> None:
        self.streams = streams
        self._field = field
        self._count = 0

    def leave_and_return(self, name: str) -> None:
        """Have a node leave, and take part again; each stream stays where it is."""
        by = self.streams.report().by
        self._field.nodes[name].appliance.command("leave")
        self._wait_for_others(name)
        self._return(name)
        assert self.streams.report().by == by

    def restart(self, name: str) -> None:
        """Have a node leave and its own streams finish, stop it, start it, and open as many new ones."""
        node = self._field.nodes[name]
        node.appliance.command("leave")
        self._wait_for_others(name)
        finished = self.streams.finish(name)
        node.appliance.stop(patience=60.0)
        self.streams.go_on()
        with node.node.inside():
            node.appliance.start()
        self._return(name)
        for address in (SHARED, SHARED6):
            self.streams.connect(address, -(-finished // 2))

    def die(self, name: str) -> None:
        """Cut a node off: exactly its own streams end; have it come back."""
        report = self.streams.report()
        own, before = report.by[name], sum(report.ended.values())
        begun = time.monotonic()
        self._field.machines[name].isolate()
        self._wait_for_others(name, go_on=False)
        found = time.monotonic() - begun
        wait_until(
            lambda: sum(self.streams.report().ended.values()) >= before + own,
            what="its streams have ended",
            timeout=60.0,
        )
        self._note(
            f"dead for {found:.2f} s when found, its {own} had ended {time.monotonic() - begun:.2f} s after"
        )
        self.streams.go_on()
        assert sum(self.streams.report().ended.values()) == before + own
        self._field.machines[name].rejoin()
        self._wait_for_all()

    def _return(self, name: str) -> None:
        assert self._field.nodes[name].appliance.reload(self._field.config(name))["ok"]
        self._wait_for_all()
        self.streams.go_on()

    def _wait_for_others(self, name: str, *, go_on: bool = True) -> None:
        self._field.wait_for(*(each for each in self._field.machines if each != name))
        self._note(f"without {name}")
        if go_on:
            self.streams.go_on()

    def _wait_for_all(self) -> None:
        self._field.wait_for(*self._field.machines)
        self._field.wait_until_ready()
        self._note("with all")

    def _note(self, what: str) -> None:
        self._count += 1
        report = self.streams.report()
        sys.stderr.write(f"change {self._count}: {what}; {report.open} streams, ended {report.ended}\n")


@contextmanager
def changes_of(field: SharedField) -> Iterator[NodeChanges]:
    """Open streams to both addresses, at all nodes."""
    with CheckedStreams(field.client, port=PORT, period=PERIOD) as streams:
        streams.connect(SHARED, COUNT)
        streams.connect(SHARED6, COUNT)
        assert set(streams.report().by) == set(field.machines)
        yield NodeChanges(field, streams)
