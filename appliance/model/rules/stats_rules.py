"""Rules for the section `stats`: changes require authentication, and passwords are not exposed."""

from collections.abc import Iterator

from appliance.model.config.configuration import Config
from appliance.model.config.stats import StatsSection
from appliance.model.config.values.addresses import Endpoint, is_loopback
from appliance.model.messages.problems import Finding, FindingTarget, Path
from appliance.model.rules.findings import error, warning
from appliance.model.rules.references import unknown_pool


def findings(config: Config) -> Iterator[Finding]:
    """Yield the dangers of `stats`."""
    stats = config.stats
    if stats is None:
        return
    if stats.auth is not None and stats.auth.password is None and stats.auth.password_file is None:
        yield error(("stats", "auth"), "needs `password_file` or `password`")
    if stats.admin == "on" and stats.auth is None:
        yield error(("stats", "admin"), "needs `auth`: anybody could put servers out of service")
    yield from _monitor(stats, config)
    seen = [(path, each) for path, each in _binds(stats) if not is_loopback(each.host)]
    for path, bind in seen if stats.auth is None and not stats.allow else ():
        yield warning(
            path, f"every client that reaches `{bind}` sees servers and addresses: set `auth` or `allow`"
        )
    if seen and stats.auth is not None and stats.tls is None:
        yield warning(("stats", "auth"), "the password crosses the network in clear text: set `tls`")


def _binds(stats: StatsSection) -> Iterator[tuple[Path, Endpoint]]:
    yield ("stats", "bind"), stats.bind
    for index, each in enumerate(stats.also_bind):
        yield ("stats", "also_bind", index), each


def _monitor(stats: StatsSection, config: Config) -> Iterator[Finding]:
    if stats.needs is None:
        return
    if stats.respond is None:
        message = "`needs` belongs to `respond`: without it there is no response to withhold"
        yield Finding(
            path=("stats", "needs"), message=message, spot=FindingTarget.KEY, touches=(("stats", "respond"),)
        )
    if stats.needs not in config.pools:
        yield unknown_pool(("stats", "needs"), stats.needs, config)
