"""An appliance whose reloads bring new workers, with sessions that move to them."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.load.streams import Streams
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance


@dataclass(slots=True, kw_only=True)
class Site:
    """Two frontends: `kube-api` leads to a master with lines, `streams` to a server of streams."""

    master: Backend
    streams: Streams
    sessions: str = "move"
    port: int = field(default_factory=free_port)
    streams_port: int = field(default_factory=free_port)
    appliance: Appliance = field(init=False)

    def config(self, *, workers: int, **frontends: object) -> dict[str, object]:
        """Return the operator's file; another number of workers needs a new generation."""
        return {
            "api": {
                "workers": workers,
                "frontends": {
                    "kube-api": {"bind": [f"127.0.0.1:{self.port}"], "pool": "masters"},
                    "streams": {"bind": [f"127.0.0.1:{self.streams_port}"], "pool": "streams"},
                    **frontends,
                },
            },
            "pools": {
                "masters": {"servers": {"master-0": {"address": f"127.0.0.1:{self.master.port}"}}},
                "streams": {"servers": {"stream-0": {"address": f"127.0.0.1:{self.streams.port}"}}},
            },
            "defaults": {"drain": "120s"},
            "reload": {"sessions": self.sessions},
        }

    def reload(self, config: dict[str, object]) -> None:
        """Reload with a file that needs a generation, and wait until it accepts."""
        before = self.appliance.generation()
        assert self.appliance.reload(config)["ok"] is True
        wait_until(lambda: self.appliance.generation() > before, what="the new generation accepts")

    def listed(self, *options: str) -> list[dict[str, object]]:
        """Return what `appliance sessions` lists."""
        told: list[dict[str, object]] = json.loads(
            self.appliance.command("sessions", *options, "--json").stdout
        )
        return told

    def wait_for_one_generation(self) -> None:
        """Wait until no worker of an older generation is left; the drain time is far longer."""
        wait_until(
            lambda: {each.generation for each in self.appliance.workers()} == {self.appliance.generation()},
            what="the old generation is gone",
            timeout=60.0,
        )


@contextlib.contextmanager
def site(*, workers: int = 1) -> Iterator[Site]:
    """Run a site with all servers up."""
    with Backend("master-0") as master, Streams() as streams:
        made = Site(master=master, streams=streams)
        made.appliance = Appliance(made.config(workers=workers))
        with made.appliance:
            yield made
            # What is still open would hold the stop up until the drain ends.
            made.appliance.command("sessions", "kill", "--source", "127.0.0.1", check=False)
