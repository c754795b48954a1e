"""Scripts of tracks that look for HAProxy by what is in their files, where our own program replaces it."""

from collections.abc import Iterator

from appliance.model.messages.problems import Finding, Path, Severity
from appliance.model.program_names import FORWARD
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import TrackKind
from appliance.net.scripts.haproxy_scripts import names_haproxy, runs_haproxys_script


def haproxys_scripts(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a warning for each; whose words name HAProxy is one of `check` on any machine (track_rules)."""
    program = _replacing(snapshot)
    if program is None:
        return
    owners = (
        *((("virtual_ips", each.name), each.track) for each in snapshot.virtual_routers),
        *((("shared_ips", each.name), each.track) for each in snapshot.shared_ips),
    )
    for owner, tracks in owners:
        for track in tracks:
            words = (track.target, *track.arguments)
            if track.kind is TrackKind.SCRIPT and not names_haproxy(words) and runs_haproxys_script(words):
                path: Path = (*owner, "track", track.name, "script")
                yield Finding(path=path, message=_message(program), severity=Severity.WARNING)


def _message(program: str) -> str:
    return (
        "the script's commands name HAProxy, which this appliance replaces: "
        f"`program: {program}` checks the appliance"
    )


def _replacing(snapshot: Snapshot) -> str | None:
    """Return the program that replaces HAProxy here, None if the appliance serves no frontend."""
    served = [group.program for group in snapshot.proxied]
    return next(iter(served), FORWARD if snapshot.forwarded else None)
