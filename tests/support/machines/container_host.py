"""A machine on which containers of several releases follow each other, by the units that are for it.

They share what image/appliance@.container and image/appliance-pids.container say: the runtime directory, the
state, the configuration, and the process ids of a container that does nothing else.
"""

import contextlib
import os
import socket
from pathlib import Path
from typing import Final, Self

from support.machines.container_site import Site
from support.machines.podman import ROOT, Container, quadlet
from support.processes.waiting import wait_until

_USER: Final = 9445
_SHARED: Final = "container:appliance-pids"


class ContainerHost:
    """The node `one` of a site; `running` is the container that is in charge. Use it as a context manager."""

    def __init__(self, around: Site, config: Path) -> None:
        self.config = config
        self._around = around
        self._places = {name: around.folder / name for name in ("runtime", "state")}
        for each in self._places.values():
            each.mkdir(mode=0o700)
            os.chown(each, _USER, _USER)
        self._started: list[Container] = []
        unit = ROOT / "image" / "appliance-pids.container"
        idle = Container("--network", "none", *quadlet(unit), command=["infinity"])
        self._started.append(idle)
        self._pids = f"container:{idle.id}"
        self._heard: dict[Container, socket.socket] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        for each in reversed(self._started):
            each.__exit__(kind, *rest)
        for heard in self._heard.values():
            heard.close()

    @property
    def running(self) -> Container:
        """The container that was started last and has not ended."""
        return next(each for each in reversed(self._started) if each.is_running())

    def start(self, image: str = "", *, shares_pids: bool = True) -> Container:
        """Start a container beside what runs; it does not wait for anything."""
        unit = quadlet(ROOT / "image" / "appliance@.container")
        at = unit.index(_SHARED)
        unit[at - 1 : at + 1] = ["--pid", self._pids] if shares_pids else []
        place = self._around.folder / f"notify-{len(self._started)}"
        heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        heard.bind(str(place))
        heard.setblocking(False)  # noqa: FBT003  # socket's own signature
        container = Container(
            *("--network", f"ns:/run/netns/{self._around.one.name}", *unit),
            *("--volume", f"{self.config}:/etc/appliance:ro"),
            *("--volume", f"{self._places['runtime']}:/run/appliance"),
            *("--volume", f"{self._places['state']}:/var/lib/appliance"),
            image=image,
            notify=place,
        )
        self._started.append(container)
        self._heard[container] = heard
        self._around.started.append(container)
        return container

    def said_ready(self, container: Container) -> bool:
        """Return whether a container has told systemd that it is ready since this was asked last."""
        said = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                said += self._heard[container].recv(4096)
        return b"READY=1" in said

    def upgrade(self, image: str = "") -> Container:
        """Start another release, and return it when it is in charge and the former one has ended.

        It tells systemd that it is ready when it is in charge, and not before.
        """
        former = self.running
        newer = self.start(image)
        wait_until(
            lambda: self.said_ready(newer) or not newer.is_running(),
            what="it says that it is ready",
            timeout=90.0,
            pause=0.2,
        )
        wait_until(lambda: '"appliance-taken-over"' in newer.log(), what="it has taken over", pause=0.2)
        assert former.exit_code(timeout=90.0) == 0
        return newer
