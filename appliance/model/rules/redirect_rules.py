"""Rules for `redirect` of a frontend: other programs' addresses, and a bind that can take the connections.

An address that a frontend binds needs no redirect, a name has no family, and a loopback address is not
reached from outside: there a redirect would only take the traffic between the node's own programs.
"""

from collections.abc import Iterator

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection, RedirectSection
from appliance.model.config.values.addresses import Endpoint, literal
from appliance.model.messages.problems import Finding, Path, dotted
from appliance.model.rules.findings import error, warning
from appliance.model.rules.references import frontends, servers_of
from appliance.model.snapshot.frontends import Bind, takes

_MOST_SOURCES = 64


def findings(config: Config) -> Iterator[Finding]:
    """Yield the contradictions below `redirect`."""
    taken: dict[Endpoint, Path] = {}
    for path, frontend in frontends(config):
        for index, source in enumerate(frontend.redirect.sources if frontend.redirect else ()):
            where: Path = (*path, "redirect", "from", index)
            flaws = [*_source(where, source, frontend), *_bound(where, source, config)]
            yield from flaws or _unknown(where, source, config)
            first = taken.setdefault(source, where)
            if first != where:
                yield error(where, f"`{source}` is already redirected: {dotted(first)}", first)
            yield from _loop(where, source, frontend, config)
        if frontend.redirect:
            yield from _many((*path, "redirect", "from"), frontend.redirect)


def _source(where: Path, source: Endpoint, frontend: FrontendSection) -> Iterator[Finding]:
    address = literal(source.host)
    if address is None or "%" in source.host:
        yield error(where, f"`{source.host}` must be an address: rules of the kernel take no names")
        return
    if address.is_unspecified or address.is_multicast:
        yield error(where, f"`{source.host}` covers many addresses: list each, as `virtual_ips` does")
        return
    if address.is_loopback:
        yield error(where, f"`{source.host}` is the node's own: it cannot be reached from outside")
        return
    binds = [Bind(host=each.host, port=each.port) for each in frontend.bind]
    if frontend.bind and not any(takes(each, address.version) for each in binds):
        message = (
            f"no bind of the frontend takes IPv{address.version}: it needs `[::]`, or an address that is "
            "not loopback"
        )
        yield error(where, message, (*where[:-3], "bind"))


def _bound(where: Path, source: Endpoint, config: Config) -> Iterator[Finding]:
    for path, frontend in frontends(config):
        for index, bind in enumerate(frontend.bind):
            if bind.port == source.port and _covers(bind.host, source.host):
                at: Path = (*path, "bind", index)
                message = f"`{source}` already reaches `{bind}` of {dotted(at)}, without a redirect"
                yield error(where, message, at)
                return


def _covers(bind: str, source: str) -> bool:
    if bind == "0.0.0.0":  # noqa: S104  # recognised, not bound
        return ":" not in source
    return bind in {"::", source}


def _unknown(where: Path, source: Endpoint, config: Config) -> Iterator[Finding]:
    """Warn of an address that is none of the file's virtual IPs, if it has any: probably a typing error."""
    entries = config.virtual_ips.values()
    known = {each.partition("/")[0] for entry in entries for each in (*entry.addresses, *entry.excluded)}
    if known and source.host not in known:
        yield warning(where, f"`{source.host}` is not an address of `virtual_ips`", ("virtual_ips",))


def _loop(where: Path, source: Endpoint, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    for pool, name, server in servers_of(frontend, config):
        if server.address == source:
            at: Path = ("pools", pool, "servers", name, "address")
            message = f"`{source}` is the server {dotted(at)} too: connections would loop"
            yield error(where, message, at)


def _many(where: Path, given: RedirectSection) -> Iterator[Finding]:
    if len(given.sources) > _MOST_SOURCES:
        yield error(where, f"has {len(given.sources)} addresses: at most {_MOST_SOURCES}")
