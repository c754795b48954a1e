"""Nodes with keepalived and HAProxy whose virtual IPs are those of `moving_nodes`, with the same timers."""

import contextlib
import sys
from typing import Final, Self

from support.linger.linger_field import PORT, SERVER_PORT, VIP, VIP6
from support.network import echoer
from support.network.namespaces import Node, Segment
from support.peers.haproxy import HAProxy
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived

_ADVERT: Final = 0.2
_GROUP: Final = "vrrp_sync_group both {\ngroup {\nfour\nsix\n}\n}"
_HAPROXY: Final = f"""
global
  nbthread 1
  stats socket {{control}}
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
frontend in
  bind [::]:{PORT} v4v6 backlog 4096
  default_backend out
backend out
  server own 127.0.0.1:{SERVER_PORT}
"""


class RivalNodes:
    """The nodes by name, the first of them master. Use it as a context manager."""

    def __init__(self, segment: Segment, names: tuple[str, ...]) -> None:
        self._nodes: dict[str, Node] = {name: segment.node(name) for name in names}
        self._running: dict[str, Keepalived] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            for at, (name, node) in enumerate(self._nodes.items()):
                node.start([sys.executable, echoer.__file__, name, str(SERVER_PORT)])
                with node.inside():
                    self._stack.enter_context(HAProxy(_HAPROXY))
                made = Keepalived(node, *_instances(150 - at), head=_GROUP)
                self._running[name] = self._stack.enter_context(made)
            self._wait_for(next(iter(self._nodes)))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *given: object) -> None:
        self._stack.__exit__(*given)  # type: ignore[arg-type]  # as it came

    def stop(self, name: str) -> None:
        """Stop keepalived on a node, which gives its addresses away; HAProxy goes on."""
        self._running[name].stop()
        self._wait_for(next(each for each in self._nodes if each != name))

    def start(self, name: str) -> None:
        """Start keepalived again on the node of highest priority, which preempts."""
        self._running[name].start()
        self._wait_for(name)

    def _wait_for(self, name: str) -> None:
        others = [node for other, node in self._nodes.items() if other != name]
        wait_until(
            lambda: (
                all(self._nodes[name].holds(vip) for vip in (VIP, VIP6))
                and not any(other.holds(vip) for other in others for vip in (VIP, VIP6))
            ),
            what=f"{name} alone has the addresses",
            timeout=30.0,
        )


def _instances(priority: int) -> tuple[Instance, ...]:
    return (
        Instance(name="four", router_id=42, priority=priority, advert=_ADVERT, addresses=(f"{VIP}/24",)),
        Instance(name="six", router_id=43, priority=priority, advert=_ADVERT, addresses=(f"{VIP6}/64",)),
    )
