"""The take-overs of a supervisord without one: its socket is real, its programs and its service are not."""

import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, cast

from structlog.typing import FilteringBoundLogger
from support.vrrp.simulated_vrrp import SimulatedLog

from appliance.model.paths import Paths
from appliance.net.files.lock_files import KeptLock, hold
from appliance.supervisor.succession.line_connection import LineConnection, SocketMap
from appliance.supervisor.succession.listener import SuccessionListener
from appliance.supervisor.succession.reports import SuccessionReports
from appliance.supervisor.succession.succession import Succession


class Programs:
    """Programs that do nothing but count; `orders` is what they were told."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    def refusal(self) -> str:
        """Return "": they can be left at any time."""
        return ""

    def programs(self) -> Mapping[str, int]:
        """Return none."""
        return {}

    def given_up(self) -> str:
        """Return "": none fails."""
        return ""

    def drain(self) -> float:
        """Return no time."""
        return 0.0

    def stand_by(self) -> None:
        """Note it."""
        self.orders.append("stand by")

    def resume(self, *, former: str) -> None:
        """Note it."""
        self.orders.append(f"resume after {former}")


class Service:
    """A service in which a release cannot be started; `started` is which ones were to be."""

    def __init__(self, *, privileged: bool) -> None:
        self.started: list[tuple[str, ...]] = []
        self._privileged = privileged

    def start(self, command: Sequence[str], *, refusals: int, ended: Callable[[str], None]) -> int:
        """Refuse."""
        del refusals, ended
        self.started.append(tuple(command))
        raise FileNotFoundError(2, "No such file or directory")

    def main_process(self, pid: int) -> None:
        """Nobody is told."""

    def is_privileged(self) -> bool:
        """Return whether what is started would have rights."""
        return self._privileged


class LoneSuccession:
    """One in a directory, going round in a thread of its own; `bugs` is what was raised in there."""

    def __init__(self, root: Path, *, privileged: bool = False) -> None:
        self.paths = Paths(runtime=root)
        self.programs, self.service = Programs(), Service(privileged=privileged)
        self.bugs: list[BaseException] = []
        self._map: SocketMap = {}
        self._lock = KeptLock(self.paths.lock, hold(self.paths.lock))
        log = cast("FilteringBoundLogger", SimulatedLog())
        self.succession = Succession(
            self.paths,
            reports=SuccessionReports(self.paths, log, lambda _: None),
            lock=self._lock,
            supervised=self.programs,
            socket_map=self._map,
            starter=self.service,
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_round)

    def __enter__(self) -> Self:
        self.succession.begin(time.monotonic())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.succession.close()
        self._lock.leave()
        assert self.bugs == []

    @property
    def standing_by(self) -> bool:
        """Return whether the programs were left to another one, and are not supervised again."""
        left = self.programs.orders.count("stand by")
        return left > len(self.programs.orders) - left

    def _go_round(self) -> None:
        while not self._over.is_set():
            ready, _, _ = select.select(list(self._map), [], [], 0.01)
            try:
                for descriptor in ready:
                    reader = self._map.get(descriptor)
                    if isinstance(reader, LineConnection | SuccessionListener):
                        reader.handle_read_event()
                self.succession.tick(time.monotonic())
            except Exception as error:  # noqa: BLE001  # the test says what it was
                self.bugs.append(error)
                return
