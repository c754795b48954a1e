"""The same move with HAProxy and keepalived, to compare: every session ends."""

import contextlib
import sys

import pytest
from support.linger.linger_field import PORT, SERVER_PORT, VIP
from support.network import echoer
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import Segment
from support.peers.haproxy import HAProxy
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "haproxy", "keepalived", root=True),
    pytest.mark.slow("only to compare"),
]

_COUNT = 50
_HAPROXY = f"""
global
  stats socket {{control}}
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen api
  bind :{PORT}
  server it %s:{SERVER_PORT}
"""


@pytest.mark.promise("docs/taking-a-node-away.md", "with HAProxy and keepalived all sessions end")
def test_haproxy_and_keepalived_end_all():
    """A planned move of the virtual IP ends every stream, though the former HAProxy still runs."""
    with Segment() as segment, contextlib.ExitStack() as stack:
        client, server = segment.node("client"), segment.node("server")
        server.start([sys.executable, echoer.__file__, "server", str(SERVER_PORT)])
        pair = [segment.node(name) for name in ("one", "two")]
        for node in pair:
            stack.enter_context(
                HAProxy(_HAPROXY % server.address, through=("ip", "netns", "exec", node.name))
            )
        one, two = (
            stack.enter_context(Keepalived(node, Instance(priority=priority)))
            for node, priority in zip(pair, (150, 100), strict=True)
        )
        one.wait_for("MASTER")
        two.wait_for("BACKUP")
        streams = stack.enter_context(CheckedStreams(client, port=PORT, period=0.1))
        streams.connect(VIP, _COUNT)
        one.stop()
        two.wait_for("MASTER")
        wait_until(lambda: not streams.report().open, what="all streams have ended", timeout=60.0)
        assert sum(streams.report().ended.values()) == _COUNT
