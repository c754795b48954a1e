"""An appliance with load on it, which is upgraded: what ends, or is refused, is counted."""

import contextlib
import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

from support.load.load import Load
from support.load.streams import Streams
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.supervisor.release import NotOurChild, Release

_MIB: Final = 1 << 20
SESSIONS: Final = 40
"""Sessions that exchange lines."""

STREAMS: Final = 2
"""Connections that carry checksummed bytes both ways without a pause."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Site:
    """An appliance with load on it: sessions with lines, streams that never pause, new connections."""

    appliance: Appliance
    load: Load
    streams: Streams

    def start(self, release: Release, *options: str) -> "subprocess.Popen[bytes]":
        """Start another release beside the one that runs."""
        return release.run(self.appliance.paths, self.appliance.log_file, *options)

    def upgrade(self, release: Release) -> None:
        """Start another release, and wait until it is in charge and the former one has ended."""
        former, seen = self.appliance.process, len(self.appliance.events("appliance-taken-over"))
        self.appliance.process = self.start(release)
        wait_until(
            lambda: len(self.appliance.events("appliance-taken-over")) > seen,
            what=f"{release.version} has taken over",
            timeout=60.0,
        )
        assert former.wait(60) == 0

    def upgraded_to(self, pid: int) -> None:
        """Go on with the supervisord that the former one has started, when that one has ended."""
        former = self.appliance.process
        self.appliance.process = NotOurChild(pid)
        assert former.wait(60) == 0

    def wait_for_traffic(self) -> None:
        """Wait until everything that was open has gone on, and assert that nothing was lost."""
        self.streams.wait_for_more(_MIB)
        lines = self.load.report().lines
        wait_until(lambda: self.load.report().lines > lines + SESSIONS, what="all sessions go on")
        report = self.load.report()
        assert (report.failures, report.ended) == ({}, [])
        told = self.streams.report()
        assert (told.open, told.ended) == (STREAMS, {})

    def wait_for_one_generation(self) -> None:
        """Wait until the workers of former generations are gone; the drain time is far longer."""
        wait_until(
            lambda: {each.generation for each in self.appliance.workers()} == {self.appliance.generation()},
            what="the old generation is gone",
            timeout=60.0,
        )

    def wait_for_own_programs(self) -> None:
        """Wait until supervisord's own children answer, for all programs."""
        wait_until(self.appliance.is_whole, what="the one in charge has its programs", timeout=60.0)

    def programs(self) -> dict[str, int | None]:
        """Return the process ids of the programs."""
        return {each: self.appliance.program_pid(each) for each in ("reload", "health", "proxy-api")}


def _config(port: int, streams_port: int, master: Backend, streams: Streams) -> dict[str, object]:
    return {
        "api": {
            "workers": 2,
            "frontends": {
                "kube-api": {"bind": [f"127.0.0.1:{port}"], "pool": "masters"},
                "streams": {"bind": [f"127.0.0.1:{streams_port}"], "pool": "streams"},
            },
        },
        "pools": {
            "masters": {
                "servers": {
                    "master-0": {"address": f"127.0.0.1:{master.port}"},
                    "master-1": {"address": f"127.0.0.1:{master.port}"},
                }
            },
            "streams": {"servers": {"stream-0": {"address": f"127.0.0.1:{streams.port}"}}},
        },
        "defaults": {"drain": "120s"},
    }


@contextlib.contextmanager
def loaded_site() -> Iterator[Site]:
    """Run the appliance with its load."""
    port, streams_port = free_port(), free_port()
    with contextlib.ExitStack() as stack:
        master, streams = stack.enter_context(Backend("master-0")), stack.enter_context(Streams())
        made = stack.enter_context(Appliance(_config(port, streams_port, master, streams)))
        stack.callback(made.command, "sessions", "kill", "--source", "127.0.0.1", check=False)
        load = stack.enter_context(Load(port=port, sessions=SESSIONS, rate=50.0))
        load.wait_for_sessions()
        streams.connect(streams_port, STREAMS)
        yield Site(appliance=made, load=load, streams=streams)
        sys.stderr.write(made.log())  # pytest shows it where the test has failed
