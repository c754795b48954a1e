"""The names of programs: of their control sockets, heartbeats, locks, logs, and in supervisord."""

from typing import Final

RELOAD: Final = "reload"
"""The program that has the others apply a new configuration."""

HEALTH: Final = "health"
"""The program that checks the servers."""

REDIRECT: Final = "redirect"
"""The program that redirects connections for other programs' ports to frontends."""

FORWARD: Final = "forward"
"""The program that has the kernel forward the connections of frontends."""

PROXIES: Final = ("proxy-api", "proxy-ingress")
"""The programs that serve groups of frontends."""

DISCOVER: Final = "discover"
"""The program that watches the cluster's API."""

STATS: Final = "stats"
"""The program that shows what the others do; no traffic depends on it."""

LINGER: Final = "linger"
"""The program that forwards packets of connections to their node when a virtual IP has moved."""

MIGRATE: Final = "migrate"
"""The program that moves sessions to the node that serves their virtual IP."""

ANNOUNCE: Final = "announce"
"""The program that has routers learn the shared addresses that this node serves."""

VRRP: Final = "vrrp"
"""The program that serves the virtual IPs."""

TRACKER: Final = "tracker"
"""The child of `vrrp` that checks the tracks of virtual IPs."""
