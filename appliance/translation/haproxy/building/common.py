"""Values that many sections share go into our `defaults`, and only the differences into each section."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.model.document.tree import Plain
from appliance.translation.haproxy.building.plan import Plan, Role
from appliance.translation.haproxy.building.values import Build, usual
from appliance.translation.haproxy.directives.global_table import Global
from appliance.translation.haproxy.directives.section import Placed, Section
from appliance.translation.haproxy.values.quantities import duration
from appliance.translation.translation import Outcome

CLIENT: Final = ("client", "client_fin")
"""Keys of a frontend's `timeouts`."""

SERVER: Final = ("connect", "queue", "server", "server_fin")
"""Keys of a pool's `timeouts`."""

Times = Mapping[str, Placed[str]]

RETRIES: Final = 3
"""Default number of retries, the same in HAProxy and here."""

_IDLE: Final = ("idle", "interval", "count")
_KEEPALIVE: Final = {"clitcpka": "clitcpka", "srvtcpka": "srvtcpka"}


def client_times(section: Section, pool: Section, build: Build) -> Mapping[str, Placed[str]]:
    """Return the timeouts of a frontend; its pool may have a tunnel's."""
    times = section.settings.times
    client = _silence(section, "client", pool.settings.times.get("tunnel"), build)
    return {"client": client, "client_fin": _given_or(times.get("client-fin"), client, build)}


def server_times(section: Section, build: Build) -> Mapping[str, Placed[str]]:
    """Return the timeouts of a pool.

    An unset timeout is none in HAProxy, except for the queue, which uses that of connecting, and for
    half-closed connections, which keep the timeout in force before (configuration.txt, timeout ...).
    """
    times = section.settings.times
    connect = _given_or(times.get("connect"), _endless(section, "connect", build), build)
    server = _silence(section, "server", times.get("tunnel"), build)
    return {
        "connect": connect,
        "queue": _given_or(times.get("queue"), connect, build),
        "server": server,
        "server_fin": _given_or(times.get("server-fin"), server, build),
    }


def _silence(section: Section, name: str, tunnel: Placed[int] | None, build: Build) -> Placed[str]:
    """Return a timeout of silence, which is a tunnel's from the start.

    HAProxy replaces those of client and server by `timeout tunnel` once both have sent data; we have one
    timeout for both.
    """
    own = section.settings.times.get(name)
    if tunnel is None:
        return _given_or(own, _endless(section, name, build), build)
    if own is not None and build.take(own) != tunnel.value:
        build.report.add(
            Outcome.CHANGED,
            own.place,
            (
                f"{duration(tunnel.value)} from the start: HAProxy applies `timeout tunnel` once both "
                "sides have sent data, and here one timeout covers both"
            ),
        )
    return Placed(value=duration(build.take(tunnel)), place=tunnel.place)


def _given_or(given: Placed[int] | None, otherwise: Placed[str], build: Build) -> Placed[str]:
    if given is None:
        return otherwise
    return Placed(value=duration(build.take(given)), place=given.place)


def _endless(section: Section, name: str, build: Build) -> Placed[str]:
    if name not in section.settings.times:
        build.report.add(
            Outcome.CHANGED,
            section.header.place,
            f"no `timeout {name}`: HAProxy would wait forever, here it is {duration(0)}",
        )
    return Placed(value=duration(0), place=section.header.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The most common values, and the timeouts of each frontend and pool by name."""

    usual: Times
    clients: Mapping[str, Times]
    servers: Mapping[str, Times]
    retries: Placed[int] | None
    limits: Mapping[str, Placed[int] | None]
    limit: Placed[int] | None


def gathered(plan: Plan, found: Global, build: Build) -> Defaults:
    """Return the values that frontends and pools share."""
    clients = {
        each.name: client_times(each.section, each.pool, build)
        for each in plan.fronts
        if each.role is Role.FORWARD and each.pool is not None
    }
    servers = {name: server_times(section, build) for name, section in plan.pools.items()}
    found_usual: dict[str, Placed[str]] = {}
    for keys, every in (
        (SERVER[:2], servers),
        (CLIENT[:1], clients),
        (SERVER[2:3], servers),
        (CLIENT[1:], clients),
        (SERVER[3:], servers),
    ):
        for key in keys:
            most = usual(each[key] for each in every.values())
            if most:
                found_usual[key] = most
    retries = [each for section in plan.pools.values() if (each := section.settings.numbers.get("retries"))]
    limits = {
        each.name: _limit(each.section, found, build) for each in plan.fronts if each.role is not Role.NOTHING
    }
    return Defaults(
        usual=found_usual,
        clients=clients,
        servers=servers,
        retries=usual(retries),
        limits=limits,
        limit=usual(each for each in limits.values() if each),
    )


def put_defaults(defaults: Defaults, found: Global, build: Build) -> None:
    """Put the section `defaults`."""
    if defaults.limit:
        build.put(("defaults", "max_connections"), defaults.limit.value, defaults.limit.place)
    for key, placed in defaults.usual.items():
        build.put(("defaults", "timeouts", key), placed.value, placed.place)
    if defaults.retries:
        build.put(("defaults", "retries"), defaults.retries.value, defaults.retries.place)
    if found.drain and found.drain.value:
        build.put(("defaults", "drain"), duration(found.drain.value), found.drain.place)


def put_times(path: tuple[str, ...], times: Times, usual_times: Times, build: Build) -> None:
    """Put the timeouts that differ from those of `defaults`."""
    for key, placed in times.items():
        if usual_times[key].value != placed.value:
            build.put((*path, key), placed.value, placed.place)


def put_number(
    path: tuple[str, ...], given: Placed[int] | None, usual_number: Placed[int] | None, build: Build
) -> None:
    """Put the number of retries if it differs from that of `defaults`."""
    value = build.take(given) if given else RETRIES
    if usual_number and usual_number.value != value:
        build.put(path, value, given.place if given else usual_number.place)


def put_keepalive(path: tuple[str, ...], section: Section, name: str, build: Build) -> None:
    """Put TCP keepalive towards clients (`clitcpka`) or servers (`srvtcpka`) if a section sets it."""
    settings = section.settings
    given = settings.flags.get(name) or settings.flags.get("tcpka")
    if given is None:
        return
    if not build.take(given):
        build.put(path, "off", given.place)
        return
    found: dict[str, Plain] = {}
    for key, word in zip(_IDLE, ("idle", "intvl"), strict=False):
        time = settings.times.get(f"{name}-{word}")
        if time:
            found[key] = duration(build.take(time))
    count = settings.numbers.get(f"{name}-cnt")
    if count:
        found["count"] = build.take(count)
    if found:
        build.put(path, found, given.place)
    if len(found) < len(_IDLE):
        build.report.add(Outcome.CHANGED, given.place, "unset values are 60s idle and 3 probes, 10s apart")


def _limit(section: Section, found: Global, build: Build) -> Placed[int] | None:
    """Return the limit of a frontend: in HAProxy the lower of its own and the whole process's."""
    own, whole = section.settings.numbers.get("maxconn"), found.max_connections
    if whole and whole.value:
        reason = "it limits each frontend separately, not all of them together"
        build.report.add(Outcome.CHANGED, whole.place, reason)
    if own and build.take(own) and not (whole and whole.value and whole.value < own.value):
        return own
    if own and own.value:
        build.report.add(Outcome.CHANGED, own.place, "the lower limit in `global` applies")
    return whole if whole and whole.value else None
