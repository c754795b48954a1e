"""The timeouts of frontends and pools, as HAProxy would apply them.

`timeout tunnel` replaces those of client and server once both have sent data; we have one timeout for both,
so it is the tunnel's from the start. An unset timeout is none in HAProxy, except for the queue, which uses
that of connecting, and for half-closed connections, which keep the timeout in force before
(configuration.txt, timeout ...).
"""

from collections.abc import Mapping
from typing import Final

from appliance.translation.haproxy.building.values import Build, Placed
from appliance.translation.haproxy.directives.section import Said, Section
from appliance.translation.haproxy.values.quantities import duration
from appliance.translation.translation import Outcome

CLIENT: Final = ("client", "client_fin")
"""Keys of a frontend's `timeouts`."""

SERVER: Final = ("connect", "queue", "server", "server_fin")
"""Keys of a pool's `timeouts`."""


def client_times(section: Section, pool: Section, build: Build) -> Mapping[str, Placed[str]]:
    """Return the timeouts of a frontend; its pool may have a tunnel's."""
    times = section.settings.times
    client = _silence(section, "client", pool.settings.times.get("tunnel"), build)
    return {"client": client, "client_fin": _said(times.get("client-fin"), client, build)}


def server_times(section: Section, build: Build) -> Mapping[str, Placed[str]]:
    """Return the timeouts of a pool."""
    times = section.settings.times
    connect = _said(times.get("connect"), _endless(section, "connect", build), build)
    server = _silence(section, "server", times.get("tunnel"), build)
    return {
        "connect": connect,
        "queue": _said(times.get("queue"), connect, build),
        "server": server,
        "server_fin": _said(times.get("server-fin"), server, build),
    }


def _silence(section: Section, name: str, tunnel: Said[int] | None, build: Build) -> Placed[str]:
    own = section.settings.times.get(name)
    if tunnel is None:
        return _said(own, _endless(section, name, build), build)
    if own is not None and build.take(own) != tunnel.value:
        build.report.say(
            Outcome.CHANGED,
            own.place,
            (
                f"{duration(tunnel.value)} from the start: HAProxy applies `timeout tunnel` once both "
                "sides have sent data, and here one timeout covers both"
            ),
        )
    return Placed(value=duration(build.take(tunnel)), place=tunnel.place)


def _said(said: Said[int] | None, otherwise: Placed[str], build: Build) -> Placed[str]:
    if said is None:
        return otherwise
    return Placed(value=duration(build.take(said)), place=said.place)


def _endless(section: Section, name: str, build: Build) -> Placed[str]:
    if name not in section.settings.times:
        build.report.say(
            Outcome.CHANGED,
            section.header.place,
            f"no `timeout {name}`: HAProxy would wait forever, here it is {duration(0)}",
        )
    return Placed(value=duration(0), place=section.header.place)
