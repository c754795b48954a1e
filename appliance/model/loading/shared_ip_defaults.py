"""Makes the shared addresses of a snapshot, and how they are announced."""

from appliance.model.config.bgp import BgpSection, NeighborSection
from appliance.model.config.configuration import SharedIpSection
from appliance.model.config.values.vrrp import KEY_FILE
from appliance.model.loading.copied import copied
from appliance.model.loading.virtual_router_defaults import track
from appliance.model.snapshot.shared_ip import Bfd, Bgp, Neighbor, SharedIp


def shared_ip(name: str, given: SharedIpSection) -> SharedIp:
    """Return the shared addresses of an entry without errors."""
    tracks = tuple(track(each, section) for each, section in given.track.items())
    return copied(SharedIp, given, name=name, track=tracks)


def bgp(given: BgpSection) -> Bgp:
    """Return how they are announced; the neighbours are those of this node."""
    return copied(
        Bgp,
        given,
        serve=given.tables.serve,
        drain=given.tables.drain,
        graceful_restart=int(given.graceful_restart),
        neighbors=tuple(_neighbor(name, each) for name, each in sorted(given.neighbors.items())),
    )


def _neighbor(name: str, given: NeighborSection) -> Neighbor:
    in_file = (given.password or "").startswith(KEY_FILE)
    return copied(
        Neighbor,
        given,
        name=name,
        password=None if in_file else given.password,
        password_file=given.password.removeprefix(KEY_FILE) if given.password and in_file else None,
        hold=int(given.hold),
        bfd=copied(Bfd, given.bfd) if given.bfd else None,
    )
