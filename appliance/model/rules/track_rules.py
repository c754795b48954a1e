"""Rules for `track` of a virtual IP: one thing is tracked, its keys match it, its weight has an effect."""

from collections.abc import Iterator
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.virtual_ips import TrackSection, VirtualIpSection
from appliance.model.messages.problems import Finding, FindingTarget, Path, nearest
from appliance.model.program_names import ANNOUNCE
from appliance.model.rules.findings import warning
from appliance.model.rules.references import groups, unknown_pool
from appliance.model.snapshot.frontends import Forward
from appliance.model.snapshot.virtual_router import HIGHEST_PRIORITY, OWNER_PRIORITY, TrackKind

_ONLY_FOR: Final = {
    "user": TrackKind.SCRIPT,
    "expect": TrackKind.HTTP,
    "verify": TrackKind.HTTP,
}


def track_findings(path: Path, given: VirtualIpSection, config: Config) -> Iterator[Finding]:
    """Yield the contradictions below `track` of the virtual IP at `path`."""
    for name, track in given.track.items():
        yield from one_track((*path, "track", name), track, config)
        if track.interface == given.interface:
            message = f"`{given.interface}` carries the virtual IP and is always watched"
            yield warning((*path, "track", name, "interface"), message, (*path, "interface"))
    yield from _sum(path, given)


def one_track(path: Path, track: TrackSection, config: Config) -> Iterator[Finding]:
    """Yield the contradictions within one track."""
    kinds = [kind for kind, _ in track.watched]
    if len(kinds) != 1:
        some = f"has {' and '.join(f'`{each}`' for each in kinds)}" if kinds else "names nothing to watch"
        known = ", ".join(f"`{each}`" for each in TrackKind)
        message = f"{some}: exactly one of {known} is needed"
        yield Finding(path=path, message=message, touches=tuple((*path, each) for each in TrackKind))
        return
    yield from _references(path, track, config)
    for key, kind in _ONLY_FOR.items():
        if key in track.model_fields_set and kind not in kinds:
            message = f"has no effect on `{kinds[0]}`: it belongs to `{kind}`"
            yield Finding(path=(*path, key), message=message, spot=FindingTarget.KEY)
    yield from _haproxy(path, track, config)
    if track.interface is not None and track.exists is not None:
        message = "has no effect on `interface`, whose changes the kernel reports: make it a separate track"
        yield Finding(
            path=(*path, "exists"),
            message=message,
            spot=FindingTarget.KEY,
            touches=((*path, "interface"),),
        )
    if track.verify is not None and track.http is not None and track.http.startswith("http:"):
        message = "has no effect on http, which has no certificate: use `https://...`"
        yield Finding(
            path=(*path, "verify"), message=message, spot=FindingTarget.KEY, touches=((*path, "http"),)
        )
    if track.weight == 0:
        message = "0 has no effect: leave it out for a fault while down, or set -253 to 253"
        yield Finding(path=(*path, "weight"), message=message)
    if track.timeout is not None and track.timeout > track.interval:
        message = f"must be at most `interval`, {track.interval:g}s: checks never overlap"
        yield Finding(path=(*path, "timeout"), message=message, touches=((*path, "interval"),))


def _haproxy(path: Path, track: TrackSection, config: Config) -> Iterator[Finding]:
    """Warn of a track that looks for HAProxy though our own proxy replaces it: that fails for ever."""
    program = next(_programs(config), None)
    words = (*(track.script or ()), *((track.process,) if track.process else ()))
    if program is not None and any("haproxy" in each.lower() for each in words):
        key = "script" if track.script else "process"
        message = f"names HAProxy, which this appliance replaces: `program: {program}` checks the appliance"
        yield warning((*path, key), message, ("api",), ("ingress",))


def _references(path: Path, track: TrackSection, config: Config) -> Iterator[Finding]:
    if track.pool is not None and track.pool not in config.pools:
        yield unknown_pool((*path, "pool"), track.pool, config)
    programs = [*_programs(config), *([ANNOUNCE] if config.shared_ips else [])]
    if track.program is not None and track.program not in programs:
        meant = nearest(track.program, programs)
        known = f"did you mean `{meant}`?" if meant else f"known are {', '.join(programs) or 'none at all'}"
        message = f"no such program serves here: {known}"
        yield Finding(
            path=(*path, "program"), message=message, touches=(("api",), ("ingress",), ("shared_ips",))
        )


def _programs(config: Config) -> Iterator[str]:
    """Yield the programs that serve frontends: proxies, and the one that has the kernel forward."""
    ways = {name: {each.forward for each in group.frontends.values()} for name, group in groups(config)}
    yield from (f"proxy-{name}" for name, found in ways.items() if Forward.PROXY in found)
    if any(Forward.KERNEL in found for found in ways.values()):
        yield "forward"


def _sum(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    """Warn of weights that lead out of the priorities 1 to 254, the range that RFC 9568 gives to backups."""
    weights = [track.weight for track in given.track.values() if track.weight and track.file is None]
    most = given.priority + sum(weight for weight in weights if weight > 0)
    least = given.priority + sum(weight for weight in weights if weight < 0)
    if given.priority == OWNER_PRIORITY:
        return
    if most > HIGHEST_PRIORITY:
        top = HIGHEST_PRIORITY
        message = f"with all weights it is {most}, and everything above {top} counts as {top}"
        yield warning((*path, "priority"), message, (*path, "track"))
    if least < 1:
        message = f"with all weights it is {least}, and everything below 1 counts as 1"
        yield warning((*path, "priority"), message, (*path, "track"))
