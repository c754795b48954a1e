"""Our program `vrrp` alone in a node: its own runtime directory and accepted snapshot, no supervisord."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from support.network.namespaces import INTERFACE, Node
from support.processes.processes import end, kill, with_environment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values, ask
from support.values import snapshots

from appliance.model.paths import Paths
from appliance.model.snapshot import snapshot as model
from appliance.model.snapshot.virtual_router import Notify, Track, TrackKind, VirtualRouter

_ROUTER: Final = snapshots.virtual_router(
    interface=INTERFACE,
    addresses=("192.0.2.100/24",),
    version=3,
    router_id=42,
    advert=0.1,
    listen=0.0,
    hand_over=2.0,
    notify=Notify(active=(), backup=(), fault=(), stop=(), any=(), user=None, timeout=5.0),
)
_TRACK: Final = snapshots.track("file", interval=0.05, timeout=0.05, expect=())


def router(name: str = "api", **changes: object) -> VirtualRouter:
    """Return a virtual router: version 3, priority 100, id 42, adverts each 100 ms, 192.0.2.100/24 on eth0.

    With IPv6 `addresses` the family follows; `listen` is the down interval unless given.
    """
    addresses = changes.get("addresses", _ROUTER.addresses)
    assert isinstance(addresses, tuple)
    changes.setdefault("family", 6 if any(":" in each for each in addresses) else 4)
    made = replace(_ROUTER, name=name, **changes)
    if "listen" in changes:
        return made
    advert = made.advert
    return replace(made, listen=made.down_timer_adverts * advert + (256 - made.priority) / 256 * advert)


def track(kind: str, target: str, **changes: object) -> Track:
    """Return a track that looks each 50 ms; without `weight` its fall is a fault."""
    return replace(_TRACK, kind=TrackKind(kind), target=target, **changes)


class VrrpNode:
    """Our `vrrp` in a node. At the end of its context everything it started is killed."""

    def __init__(self, node: Node, *routers: VirtualRouter, through: Sequence[str] = ()) -> None:
        """Accept these virtual routers and start the program, `through` a command that takes a command."""
        self.node = node
        self._directory = tempfile.TemporaryDirectory(prefix="lb-vrrp-")
        root = Path(self._directory.name)
        self.paths = Paths(config=root / "appliance.yaml", runtime=root, state=root)
        self.paths.snapshot(0).parent.mkdir()
        self.log_file = root / "log"
        self._number = 0
        self._through = tuple(through)
        self._process: subprocess.Popen[bytes] | None = None
        self.paths.accepted.write_bytes(model.encode(self._propose(routers)))
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for pid in with_environment(f"APPLIANCE_RUNTIME_DIR={self.paths.runtime}"):
            kill(pid)
        if self._process is not None:
            self._process.wait()
        if kind is not None:
            sys.stderr.write(f"--- log of vrrp in {self.node.name}\n{self.log()[-8000:]}\n")
        self._directory.cleanup()

    @property
    def pid(self) -> int:
        """Process id of the program that was started last."""
        assert self._process is not None
        return self._process.pid

    def start(self, *, through: Sequence[str] = ()) -> None:
        """Start it, for the first time or again, `through` a further command, and do not wait."""
        with self.log_file.open("ab") as log:
            self._process = self.node.start(
                [*self._through, *through, sys.executable, "-m", "appliance.programs.vrrp"],
                output=log,
                environment={**os.environ, **self.paths.environment()},
            )

    def log(self) -> str:
        """Return what it has logged."""
        return self.log_file.read_text() if self.log_file.exists() else ""

    def ask(self, command: str, **values: object) -> Values:
        """Ask the program."""
        return ask(self.paths.control("vrrp"), command, **values)

    def status(self, name: str = "api") -> Values:
        """Return the status of one virtual router, empty while there is none."""
        with contextlib.suppress(OSError, ValueError):
            routers = self.ask("status").get("routers", [])
            assert isinstance(routers, list)
            return next((each for each in routers if each["name"] == name), {})
        return {}

    def state(self, name: str = "api") -> str:
        """Return the state of a virtual router, "" while the program does not answer."""
        return str(self.status(name).get("state", ""))

    def wait_for(self, state: str, name: str = "api") -> None:
        """Wait for a state: active, backup, fault, initialize."""
        what = f"{self.node.name}'s {name} is {state}"
        wait_until(lambda: self.state(name) == state, what=what, timeout=20.0)

    def transitions(self, name: str = "api") -> list[str]:
        """Return the states entered since the start, oldest first."""
        entered = self.status(name).get("transitions", [])
        assert isinstance(entered, list)
        return [str(each["state"]) for each in entered]

    def reload(self, *routers: VirtualRouter) -> None:
        """Prepare and commit other virtual routers as `reload` does."""
        snapshot = self._propose(routers)
        prepared = self.ask("prepare", snapshot=snapshot.number)
        assert prepared["ok"], prepared
        self.paths.accepted.write_bytes(model.encode(snapshot))
        committed = self.ask("commit", snapshot=snapshot.number)
        assert committed["ok"], committed

    def propose_and_commit(self, *routers: VirtualRouter) -> Values:
        """Commit other virtual routers without having them prepared, and return the answer."""
        return self.ask("commit", snapshot=self._propose(routers).number)

    def prepare(self, *routers: VirtualRouter, **more: object) -> Values:
        """Have other virtual routers prepared, and return the answer."""
        return self.ask("prepare", snapshot=self._propose(routers).number, **more)

    def move(self, name: str = "api") -> Values:
        """Hand the addresses over, and return the answer once it has ended."""
        return self.ask("move", name=name)

    def stop(self) -> int:
        """TERM it, and return its exit status when it has left."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(20)

    def exit_status(self) -> int:
        """Return its exit status when it has ended by itself."""
        assert self._process is not None
        return self._process.wait(20)

    def terminate(self) -> None:
        """TERM it and do not wait."""
        assert self._process is not None
        self._process.terminate()

    def kill(self) -> None:
        """KILL it; what it put on the interface stays there."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stop the program where it stands; its tracker goes on."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """End `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it within patience."""
        assert self._process is not None
        end(self._process)

    def _propose(self, routers: tuple[VirtualRouter, ...]) -> model.Snapshot:
        self._number += 1
        made = snapshots.snapshot(number=self._number, groups=(), pools=(), virtual_routers=routers)
        self.paths.snapshot(made.number).write_bytes(model.encode(made))
        return made
