"""Rules for the section `stats`: who may change something has said who it is, and passwords are not shown."""

from collections.abc import Iterator

from appliance.model.config.configuration import Config
from appliance.model.config.values.addresses import literal
from appliance.model.messages.problems import Finding
from appliance.model.rules.findings import error, warning


def findings(config: Config) -> Iterator[Finding]:
    """Yield what is dangerous about `stats`."""
    stats = config.stats
    if stats is None:
        return
    if stats.auth is not None and stats.auth.password is None and stats.auth.password_file is None:
        yield error(("stats", "auth"), "needs `password_file` or `password`")
    if stats.admin == "on" and stats.auth is None:
        yield error(("stats", "admin"), "needs `auth`: anybody could put servers out of service")
    if _is_of_this_machine(stats.bind.host):
        return
    if stats.auth is None and not stats.allow:
        yield warning(
            ("stats", "bind"),
            f"everybody who reaches `{stats.bind}` sees servers and addresses: say `auth` or `allow`",
        )
    if stats.auth is not None and stats.tls is None:
        yield warning(("stats", "auth"), "the password crosses the network in the clear: say `tls`")


def _is_of_this_machine(host: str) -> bool:
    address = literal(host)
    return host == "localhost" if address is None else address.is_loopback
