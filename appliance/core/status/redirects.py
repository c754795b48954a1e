"""Redirects as `appliance status` shows them: the configuration, and what `redirect` answers about it."""

from collections.abc import Iterator

from appliance.core.status.status import RedirectedFrontendStatus
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.lines.redirect_status import RedirectStatus


def redirected_frontends(
    snapshot: Snapshot, redirect: RedirectStatus | None
) -> tuple[RedirectedFrontendStatus, ...]:
    """Return every redirect of the configuration; one that `redirect` does not report has no state."""
    return tuple(_redirects(snapshot, redirect))


def _redirects(snapshot: Snapshot, redirect: RedirectStatus | None) -> Iterator[RedirectedFrontendStatus]:
    for group in snapshot.groups:
        for frontend in group.frontends:
            if frontend.redirect is None:
                continue
            name = f"{group.name}/{frontend.name}"
            found = redirect.redirect(name) if redirect else None
            yield RedirectedFrontendStatus(
                name=name,
                sources=tuple(map(str, frontend.redirect.sources)),
                state=found.state if found else None,
                since=(found.since or None) if found else None,
                reason=found.reason if found else None,
            )
