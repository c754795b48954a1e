"""Sections with servers as our pools."""

from collections.abc import Mapping, Sequence
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.building import common
from appliance.translation.haproxy.building.plan import Plan
from appliance.translation.haproxy.building.server_checks import Check, server_check
from appliance.translation.haproxy.building.values import Build, usual
from appliance.translation.haproxy.directives.global_table import Global
from appliance.translation.haproxy.directives.section import Placed, Section, Server
from appliance.translation.haproxy.values.names import Names
from appliance.translation.haproxy.values.quantities import duration
from appliance.translation.translation import Outcome

_OF_REQUEST: Final = frozenset({"method", "path", "host", "expect", "expect_body"})
_NEVER: Final = False
"""`check: false`."""

_STICKS: Final = (
    "`balance: source`: a client's address determines its server, and no table stores it; the client "
    "gets another one only while its own is down, or as servers are added or removed"
)
_OF_TLS: Final = frozenset({"sni", "verify"})


def put_pools(plan: Plan, found: Global, defaults: common.Defaults, build: Build) -> None:
    """Put each section with servers into `pools`."""
    for name, section in plan.pools.items():
        path = ("pools", name)
        build.put(path, {}, section.header.place)
        _put_settings(path, section, build)
        _put_servers(path, section, plan, found, build)
        common.put_times((*path, "timeouts"), defaults.servers[name], defaults.usual, build)
        common.put_number(
            (*path, "retries"), section.settings.numbers.get("retries"), defaults.retries, build
        )


def _put_settings(path: tuple[str, ...], section: Section, build: Build) -> None:
    settings = section.settings
    balance = _balance(section, build)
    if balance:
        build.put((*path, "balance"), build.take(balance), balance.place)
    redispatch, together = settings.flags.get("redispatch"), settings.flags.get("allbackups")
    if redispatch:
        build.take(redispatch)
    if together and build.take(together):
        build.put((*path, "all_backups"), together.value, together.place)
    retries = settings.numbers.get("retries")
    if retries and retries.value and "redispatch" not in settings.flags:
        reason = "every retry goes to another server if there is one, as with `option redispatch`"
        build.report.add(Outcome.CHANGED, retries.place, reason)
    common.put_keepalive((*path, "keepalive"), section, "srvtcpka", build)


def _balance(section: Section, build: Build) -> Placed[str] | None:
    """Return the algorithm of a section: `stick on src` overrides `balance`."""
    given, sticks = section.settings.texts.get("balance"), section.sticks
    outcome, reason = _sticking(section)
    for each in sticks.values():
        build.report.add(outcome, each.place, reason)
    if not sticks or outcome is not Outcome.CHANGED:
        return given
    verb, stick = next(iter(sticks.items()))
    if given and given.value != stick.value and given.place.line > section.header.number:
        build.take(given)
        reason = (
            f"`{stick.value}`, because of `stick {verb} src` on {build.report.line_name(stick.place.line)}"
        )
        build.report.add(Outcome.CHANGED, given.place, reason)
    return stick


def _sticking(section: Section) -> tuple[Outcome, str]:
    """Return the outcome of the lines `stick`: one half without the other has no effect on clients."""
    if section.table not in {"ip", "ipv6"}:
        reason = "the section needs its own `stick-table type ip`: clients are distinguished by address"
        return Outcome.REFUSED, reason
    if section.sticks.keys() in ({"match"}, {"store-request"}):
        missing = "store-request" if "match" in section.sticks else "match"
        return (
            Outcome.IGNORED,
            f"without `stick {missing} src` no client stays on a server, not in HAProxy either",
        )
    return Outcome.CHANGED, _STICKS


def _put_servers(path: tuple[str, ...], section: Section, plan: Plan, found: Global, build: Build) -> None:
    servers = _served(section, plan, build)
    _put_of_pool(path, [each for _, each, _ in servers], section, build)
    checks = [server_check(each, section, found, build) for _, each, _ in servers]
    shared = _put_pool_check((*path, "check"), checks, build, section.header.place)
    build.put((*path, "servers"), {}, section.header.place)
    for (name, server, endpoint), check in zip(servers, checks, strict=True):
        below = (*path, "servers", name)
        build.put(below, {}, server.line.place)
        build.put((*below, "address"), str(endpoint), server.line.at(2))
        _put_number(below, "weight", server.options.numbers.get("weight"), build)
        _put_number(below, "max_connections", server.options.numbers.get("maxconn"), build)
        given = server.options.flags.get("backup")
        if given and build.take(given):
            build.put((*below, "backup"), given.value, given.place)
        _put_own_check((*below, "check"), check, shared, build, server.line.place)


def _served(section: Section, plan: Plan, build: Build) -> list[tuple[str, Server, Endpoint]]:
    """Return the servers to put, each with its name and address; report a reason for each other one."""
    served: list[tuple[str, Server, Endpoint]] = []
    names = Names("discover")
    for server in _in_order(section, build):
        disabled = server.options.flags.get("disabled")
        if disabled and build.take(disabled):
            reason = "the server is left out: add it again, and use `appliance maint` instead of `disabled`"
            build.report.add(Outcome.CHANGED, disabled.place, reason)
            continue
        port = _port(server, section, plan, build)
        if port is None:
            continue
        name = names.ours(server.name)
        if name != server.name:
            reason = f"the name is {shown(name)} here: names are short and have no colons"
            build.report.add(Outcome.CHANGED, server.line.at(1), reason)
        served.append((name, server, Endpoint(host=server.target.host, port=port)))
    return served


def _in_order(section: Section, build: Build) -> list[Server]:
    """Return the servers in the order in which they are tried: `balance first` sorts by `id`.

    HAProxy gives a server without one its position as number, or the next free one.
    """
    servers = list(section.servers.values())
    balance = section.settings.texts.get("balance")
    if balance is None or balance.value != "first":
        return servers
    given = [each.options.numbers.get("id") for each in servers]
    taken = {each.value for each in given if each}
    ids: list[int] = []
    position = 0
    for each in given:
        position += 1
        while each is None and position in taken:
            position += 1
        ids.append(each.value if each else position)
    ordered = [server for _, server in sorted(zip(ids, servers, strict=True), key=lambda each: each[0])]
    if ordered != servers:
        reason = "HAProxy fills servers in the order of their `id`: ours are listed in that order"
        build.report.add(Outcome.CHANGED, balance.place, reason)
    return ordered


def _port(server: Server, section: Section, plan: Plan, build: Build) -> int | None:
    """Return a server's port; one that follows the client's is known if all clients use one port."""
    if server.target.port is not None:
        return server.target.port
    ports = {port for front in plan.fronts_of(section) for port in front.ports}
    port = next(iter(ports)) + server.target.offset if len(ports) == 1 else 0
    if 1 <= port <= 65535:
        reason = f"the port is {port}: it does not follow the port that the client used"
        build.report.add(Outcome.CHANGED, server.line.at(2), reason)
        return port
    reason = "a server has one port, whichever port the client used: write `ADDRESS:PORT`"
    build.report.add(Outcome.REFUSED, server.line.at(2), reason)
    return None


def _put_of_pool(path: tuple[str, ...], servers: Sequence[Server], section: Section, build: Build) -> None:
    """Put the settings that are a server's in HAProxy and the pool's here."""
    if not servers:
        return
    _put_time_of_pool((*path, "slow_start"), "slowstart", servers, build)
    _put_time_of_pool((*path, "tcp_user_timeout"), "tcp-ut", servers, build)
    closing = [given for each in servers if (given := each.options.texts.get("on-marked-down"))]
    place = closing[0].place if closing else section.header.place
    build.put((*path, "on_down"), "close-sessions" if closing else "keep", place)
    _report_partial(closing, servers, "on-marked-down", build)
    _put_on_up(path, servers, build)
    headers = [each.options.texts.get("send-proxy") for each in servers]
    given = next((each for each in headers if each and each.value != "none"), None)
    if given:
        build.put((*path, "send_proxy"), build.take(given), given.place)
        for server, other in zip(servers, headers, strict=True):
            if other is None or other.value != given.value:
                reason = "all servers of a pool get the same PROXY header or none: write it for all of them"
                build.report.add(Outcome.REFUSED, server.line.place, reason)
    queues = [each.options.numbers.get("maxqueue") for each in servers]
    bounded = [each for each in queues if each and build.take(each)]
    if len(bounded) == len(servers):
        build.put((*path, "max_queue"), sum(each.value for each in bounded), bounded[0].place)
    for each in bounded:
        reason = "servers share one queue; its limit is the sum of theirs, if all have one"
        build.report.add(Outcome.CHANGED, each.place, reason)


def _put_on_up(path: tuple[str, ...], servers: Sequence[Server], build: Build) -> None:
    """Put `on-marked-up` of the servers that are no backups: HAProxy does not heed it on others."""
    first = [each for each in servers if not each.options.flag("backup")]
    relieving = [given for each in first if (given := each.options.texts.get("on-marked-up"))]
    if relieving:
        build.put((*path, "on_up"), "close-backup-sessions", relieving[0].place)
    _report_partial(relieving, first, "on-marked-up", build)


def _put_time_of_pool(path: tuple[str, ...], name: str, servers: Sequence[Server], build: Build) -> None:
    given = [each for server in servers if (each := server.options.times.get(name)) and build.take(each)]
    most = usual(given)
    if most is None:
        return
    build.put(path, duration(most.value), most.place)
    _report_partial([each for each in given if each.value == most.value], servers, name, build)
    for each in given:
        if each.value != most.value:
            reason = f"{duration(most.value)}: all servers of a pool share one value"
            build.report.add(Outcome.CHANGED, each.place, reason)


def _report_partial(
    given: Sequence[Placed[int]] | Sequence[Placed[str]], servers: Sequence[Server], name: str, build: Build
) -> None:
    if given and len(given) < len(servers):
        reason = f"{name} applies to all servers of a pool, including those that do not set it"
        build.report.add(Outcome.CHANGED, given[0].place, reason)


def _put_pool_check(
    path: tuple[str, ...], checks: Sequence[Check | None], build: Build, place: FilePosition
) -> Mapping[str, Placed[Plain]] | None:
    """Put the check settings that all checked servers share; return them, None if none is checked."""
    checked = [each for each in checks if each is not None]
    if not checked:
        build.put(path, _NEVER, place)
        return None
    first = checked[0]
    shared = {
        key: placed
        for key, placed in first.items()
        if all(key in each and each[key].value == placed.value for each in checked)
    }
    if "type" not in shared:
        shared = {key: each for key, each in shared.items() if key not in _OF_REQUEST | _OF_TLS}
    build.put(path, {}, next(iter(first.values())).place)
    for key, placed in shared.items():
        build.put((*path, key), placed.value, placed.place)
    return shared


def _put_own_check(
    path: tuple[str, ...],
    check: Check | None,
    shared: Mapping[str, Placed[Plain]] | None,
    build: Build,
    place: FilePosition,
) -> None:
    if shared is None:
        return
    if check is None:
        build.put(path, _NEVER, place)
        return
    for key, placed in check.items():
        if key not in shared:
            build.put((*path, key), placed.value, placed.place)


def _put_number(path: tuple[str, ...], key: str, given: Placed[int] | None, build: Build) -> None:
    if given:
        build.put((*path, key), build.take(given), given.place)
