"""The groups and frontends of a configuration with their paths, and the error for an unknown pool."""

from collections.abc import Iterator

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection, ProxyGroupSection
from appliance.model.config.pools import ServerSection
from appliance.model.messages.problems import Finding, Path, listed, nearest


def groups(config: Config) -> Iterator[tuple[str, ProxyGroupSection]]:
    """Yield the groups of the file, each with its name: `api`, `ingress`."""
    named = (("api", config.api), ("ingress", config.ingress))
    return ((name, group) for name, group in named if group is not None)


def frontends(config: Config) -> Iterator[tuple[Path, FrontendSection]]:
    """Yield the frontends of all groups, each with its path in the file."""
    return (
        ((group_name, "frontends", name), frontend)
        for group_name, group in groups(config)
        for name, frontend in group.frontends.items()
    )


def servers_of(frontend: FrontendSection, config: Config) -> Iterator[tuple[str, str, ServerSection]]:
    """Yield the servers that a frontend's clients may reach: pool, name and server."""
    named = ((name, config.pools[name]) for name in frontend.pools if name in config.pools)
    return ((pool, name, server) for pool, each in named for name, server in each.servers.by_name.items())


def unknown_pool(path: Path, name: str, config: Config) -> Finding:
    """Return the error for a pool that is not in the file; suggests a similar name."""
    meant = nearest(name, config.pools)
    right = f"did you mean `{meant}`?" if meant else f"known are {listed(config.pools) or 'none at all'}"
    return Finding(path=path, message=f"unknown pool `{name}`: {right}", touches=(("pools", name),))
