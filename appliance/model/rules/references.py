"""Who uses whom in a configuration, and what is said of a name that nobody has."""

from collections.abc import Iterator

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection, ProxyGroupSection
from appliance.model.messages.problems import Finding, Path, Severity, listed, nearest


def groups(config: Config) -> Iterator[tuple[str, ProxyGroupSection]]:
    """Yield the groups that are there, by name."""
    named = (("api", config.api), ("ingress", config.ingress))
    return ((name, group) for name, group in named if group is not None)


def frontends(config: Config) -> Iterator[tuple[Path, FrontendSection]]:
    """Yield the frontends of all groups, by path."""
    return (
        ((group_name, "frontends", name), frontend)
        for group_name, group in groups(config)
        for name, frontend in group.frontends.items()
    )


def unknown_pool(path: Path, name: str, config: Config) -> Finding:
    """Return what is said where a pool is named that is not there."""
    meant = nearest(name, config.pools)
    right = f"did you mean `{meant}`?" if meant else f"known are {listed(config.pools) or 'none at all'}"
    return Finding(path=path, message=f"unknown pool `{name}`: {right}", touches=(("pools", name),))


def warning(path: Path, message: str, *touches: Path) -> Finding:
    """Return a finding that is only told."""
    return Finding(path=path, message=message, severity=Severity.WARNING, touches=touches)
