"""Rules for pools: their servers, the keys of their checks, and whether anything uses them."""

from collections.abc import Iterator
from typing import Final, TypeVar

from appliance.model.config.configuration import Config
from appliance.model.config.pools import CheckSection, FurtherCheckSection, PoolSection
from appliance.model.config.values.addresses import Endpoint, literal
from appliance.model.messages.problems import Finding, FindingTarget, Path
from appliance.model.rules.findings import warning
from appliance.model.rules.references import frontends
from appliance.model.snapshot.pools import REUSE_SECONDS, Balance

_WITH_REQUEST: Final = frozenset({"http", "https"})
_WITH_TLS: Final = frozenset({"tls", "https"})
_USERS: Final[tuple[Path, ...]] = (("api",), ("ingress",), ("virtual_ips",))
_ONLY_FOR: Final = {
    **dict.fromkeys(
        ("method", "path", "host", "expect", "expect_body", "expect_digest", "reuse"), _WITH_REQUEST
    ),
    **dict.fromkeys(("sni", "verify"), _WITH_TLS),
    "steps": frozenset({"tcp", "tls"}),
    **dict.fromkeys(("also", "send_proxy"), frozenset({"tcp", "tls", "http", "https"})),
    "command": frozenset({"command"}),
}


def findings(config: Config) -> Iterator[Finding]:
    """Yield the contradictions in each pool, then unused pools."""
    for name, pool in config.pools.items():
        yield from _pool(name, pool)
    yield from _unused(config)


def _pool(name: str, pool: PoolSection) -> Iterator[Finding]:
    path: Path = ("pools", name)
    pool_type = pool.check.type if pool.check else "tcp"
    yield from _without_address(path, pool)
    if not pool.usable and not pool.servers.discover:
        yield warning(path, "has no servers: every connection is refused", (*path, "servers"))
    elif not pool.servers.discover and not any(server.weight for server in pool.usable.values()):
        message = "all servers have weight 0: none of them takes connections"
        yield warning((*path, "servers"), message)
    if "hash_on" in pool.model_fields_set and pool.balance is not Balance.HASH:
        message = f"has no effect with `balance: {pool.balance}`, only with `hash`"
        yield warning((*path, "hash_on"), message, (*path, "balance"))
    if pool.check:
        yield from _check((*path, "check"), pool.check, kind=pool_type)
        yield from _commandless((*path, "check"), pool.check, pool.check)
        if pool_type in _WITH_REQUEST:
            yield from _bodiless((*path, "check"), pool.check, pool.check)
            yield from _too_rare((*path, "check"), pool.check, pool.check)
    for server_name, server in pool.servers.by_name.items():
        if server.check:
            kind = server.check.type if "type" in server.check.model_fields_set else pool_type
            check_path: Path = (*path, "servers", server_name, "check")
            yield from _check(check_path, server.check, kind=kind)
            yield from _commandless(check_path, server.check, pool.check or server.check)
            if kind in _WITH_REQUEST:
                yield from _bodiless(check_path, server.check, pool.check or server.check)
                yield from _too_rare(check_path, server.check, pool.check or server.check)
    yield from _same_addresses(path, pool)
    if pool.balance is Balance.FIRST:
        yield from _never_full(path, pool)


def _never_full(path: Path, pool: PoolSection) -> Iterator[Finding]:
    """Warn of servers that `balance: first` never reaches, as the one before them has no limit."""
    used = [(name, server) for name, server in pool.usable.items() if server.weight]
    for backup in (False, True) if pool.all_backups else (False,):
        names = [(name, server.max_connections) for name, server in used if server.backup is backup]
        first = next((name for name, limit in names[:-1] if not limit), None)
        if first is not None:
            message = f"no server after `{first}` is used while that is up: it has no `max_connections`"
            yield warning((*path, "balance"), message, (*path, "servers", first))


def _check(path: Path, check: CheckSection, *, kind: str) -> Iterator[Finding]:
    """Judge the keys at one place, for the type that holds there."""
    touches = ((*path, "type"), (*path[:2], "check", "type"))
    if kind == "none" and check.model_fields_set - {"type"}:
        message = "nothing is checked here: set `type`, or only `check: false`"
        yield Finding(path=path, message=message, touches=touches)
        return
    yield from _without_effect(path, check, kind=kind, touches=touches)
    for name, each in check.also.items():
        below: Path = (*path, "also", name)
        own = each.type or kind
        yield from _without_effect(below, each, kind=own, touches=((*below, "type"), *touches))
        if own in _WITH_REQUEST:
            yield from _bodiless(below, each, each)


def _without_effect(
    path: Path, check: CheckSection | FurtherCheckSection, *, kind: str, touches: tuple[Path, ...]
) -> Iterator[Finding]:
    for key in sorted(check.model_fields_set - {"type"}):
        kinds = _ONLY_FOR.get(key)
        if kinds and kind not in kinds:
            right = " or ".join(f"`type: {each}`" for each in sorted(kinds))
            message = f"has no effect with `type: {kind}`: set {right}, or leave it out"
            yield Finding(path=(*path, key), message=message, spot=FindingTarget.KEY, touches=touches)


def _commandless(path: Path, check: CheckSection, below: CheckSection) -> Iterator[Finding]:
    """Judge a type that runs a command, of which there is none."""
    if check.type == "command" and check.command is None and below.command is None:
        message = "needs a `command`, which is run with the server's address and port"
        yield Finding(path=(*path, "type"), message=message)


_SomeCheck = TypeVar("_SomeCheck", CheckSection, FurtherCheckSection)


def _bodiless(path: Path, check: _SomeCheck, below: _SomeCheck) -> Iterator[Finding]:
    """Judge what is to be in the body of answers that have none: to HEAD (RFC 9110 section 9.3.2)."""
    given = {"method", "expect_body", "expect_digest"} & check.model_fields_set
    method = (check if "method" in given else below).method
    wanted = [
        key
        for key in ("expect_body", "expect_digest")
        if getattr(check if key in given else below, key) is not None
    ]
    if given and method == "HEAD" and wanted:
        key = next((each for each in wanted if each in given), "method")
        message = "a response to HEAD has no body, so every check fails: set `method: GET`"
        yield Finding(path=(*path, key), message=message, touches=((*path, "method"),))


def _too_rare(path: Path, check: CheckSection, below: CheckSection) -> Iterator[Finding]:
    """Judge a connection that is always too old for the next check."""
    given = {"reuse", "interval"} & check.model_fields_set
    reuse = (check if "reuse" in given else below).reuse
    interval = (check if "interval" in given else below).interval
    if given and reuse and interval >= REUSE_SECONDS:
        key = "reuse" if "reuse" in given else "interval"
        message = (
            f"no connection is reused, because one is kept for only {REUSE_SECONDS:g}s: set a shorter"
            " `interval`, or leave `reuse` out"
        )
        yield warning((*path, key), message, (*path, "interval"))


def _without_address(path: Path, pool: PoolSection) -> Iterator[Finding]:
    for name, server in pool.servers.by_name.items():
        if not server.address.host:
            message = "has no address, only a port: this server is left out until it has one"
            yield warning((*path, "servers", name, "address"), message)


def _same_addresses(path: Path, pool: PoolSection) -> Iterator[Finding]:
    seen: dict[Endpoint, str] = {}
    for name, server in pool.usable.items():
        first = seen.setdefault(server.address, name)
        # Servers with the same name have different addresses of it.
        if first != name and literal(server.address.host):
            message = f"`{server.address}` is also the address of `{first}`: it gets a double share"
            yield warning((*path, "servers", name, "address"), message)


def _unused(config: Config) -> Iterator[Finding]:
    given = [frontend for _, frontend in frontends(config)]
    used = {name for each in given for name in (*each.pools, each.needs)}
    used.add(config.stats.needs if config.stats else None)
    used |= {track.pool for each in config.virtual_ips.values() for track in each.track.values()}
    unused = (name for name in config.pools if name not in used)
    return (warning(("pools", name), "no frontend uses this pool", *_USERS) for name in unused)
