"""A snapshot as a worker uses it: its frontends and pools, changed in place while connections use them."""

from collections.abc import Callable, Iterator
from random import Random

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_state import PoolState
from appliance.model.snapshot.frontends import Frontend
from appliance.model.snapshot.pools import Pool
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.lines.worker_arguments import WorkerArguments
from appliance.worker import health_follower
from appliance.worker.relay import tcp
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.backend import Backend


class LiveSettings:
    """The frontends that a worker serves and the pools that they use, by name.

    What a later snapshot no longer has stays as it was: its sessions continue. `source_failed` is called with
    a virtual IP from which no connect was possible, and the errno.
    """

    def __init__(
        self, arguments: WorkerArguments, traffic: Traffic, *, source_failed: Callable[[str, int], None]
    ) -> None:
        self.frontends: dict[str, FrontendState] = {}
        self.backends: dict[str, Backend] = {}
        self._arguments, self._traffic = arguments, traffic
        self._source_failed = source_failed
        self._random = Random()  # noqa: S311  # spreads load, protects nothing

    def apply_frontends(self, snapshot: Snapshot) -> None:
        """Set limits, times and access lists, from the next connection on."""
        for frontend in self._served(snapshot):
            self._apply_frontend(frontend)

    def apply_pools(self, snapshot: Snapshot) -> bool:
        """Set the pools of the frontends: times, servers, weights and the balance algorithm.

        Return whether a pool is new here, so that the health of its servers is unknown.
        """
        before, pools = len(self.backends), {each.name: each for each in snapshot.pools}
        for name in {name for each in self.frontends.values() for name in _pools(each.config)}:
            self._apply_pool(pools.get(name))
        for each in self.backends.values():
            each.connect_from(snapshot.source_addresses, self._source_failed)
        return len(self.backends) > before

    def refused_options(self, snapshot: Snapshot) -> list[str]:
        """Return the socket options of a snapshot that the kernel refuses, each with its frontend or pool.

        Some depend on the kernel: Linux takes no TCP_KEEPIDLE above 32767 seconds.
        """
        frontends = tuple(self._served(snapshot))
        known = {each.name: each for each in snapshot.pools}
        pools = {name: known.get(name) for each in frontends for name in _pools(each)}
        return [
            f"{kind} {each.name}: socket option {option}: {why}"
            for kind, given in (("frontend", frontends), ("pool", pools.values()))
            for each in given
            if each is not None
            for option, why in tcp.refused(tcp.options(each.keepalive, each.tcp_user_timeout)).items()
        ]

    def _served(self, snapshot: Snapshot) -> Iterator[Frontend]:
        """Yield the frontends of a snapshot for which this worker has listeners."""
        group = snapshot.group(self._arguments.group)
        served = {listener.frontend for listener in self._arguments.listeners}
        return (frontend for frontend in (group.frontends if group else ()) if frontend.name in served)

    def _apply_frontend(self, config: Frontend) -> None:
        known = self.frontends.get(config.name)
        workers, index = self._arguments.workers, self._arguments.index
        if known is None:
            self.frontends[config.name] = FrontendState(config, workers=workers, index=index)
            return
        known.apply(config, workers=workers, index=index)

    def _apply_pool(self, config: Pool | None) -> None:
        if config is None:
            return
        known = self.backends.get(config.name)
        if known is not None:
            if known.pool.config != config:
                health_follower.follow(self._traffic, known, known.apply(config))
            return
        workers, index = self._arguments.workers, self._arguments.index
        state = PoolState(config, workers=workers, index=index, random=self._random)
        self.backends[config.name] = Backend(state)


def _pools(frontend: Frontend) -> list[str]:
    return [name for name in (*frontend.pools, frontend.needs) if name is not None]
