"""The log of `discover`: each change with its cause, and each kind of failure once until it ends."""

from structlog.typing import FilteringBoundLogger

from appliance.core.discovery.members import MemberChange, Members
from appliance.core.discovery.removal_guard import Hold
from appliance.discovery.watched_source import WatchedResource
from appliance.net.kubernetes.reflector import Failed


class DiscoveryReports:
    """The log of the program; a reload replaces `log`."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self.log = log
        self._failing: dict[str, str] = {}
        self._held: dict[str, tuple[Hold, tuple[str, ...]]] = {}

    def seen(self, resource: WatchedResource) -> None:
        """Log that a resource can be read, initially and after failures."""
        what = resource.reflector.resource.what
        if self._failing.pop(what, None) is not None:
            self.log.info("api-answers-again", resource=what, server=resource.server)

    def failed(self, resource: WatchedResource, message: Failed) -> None:
        """Log a failure, unless the last one of this resource was of the same kind."""
        what = resource.reflector.resource.what
        if self._failing.get(what) == message.reason:
            return
        self._failing[what] = message.reason
        self.log.warning(
            "api-failed",
            resource=what,
            server=message.server or None,
            reason=message.reason,
            detail=message.message,
        )

    def changed(self, members: Members, change: MemberChange) -> None:
        """Log which servers came and went."""
        found = members.found
        self.log.info(
            "servers-found",
            source=str(members.source),
            added=list(change.added),
            removed=list(change.removed),
            moved=list(change.moved),
            held=list(members.held),
            servers={each.name: each.host for each in found.servers},
            proxy=found.proxy,
        )

    def held(self, members: Members) -> None:
        """Log once that servers stay although the API does not show them, and the end of that."""
        name = str(members.source)
        if members.hold is None:
            if self._held.pop(name, None):
                self.log.info("servers-not-held", source=name)
            return
        if self._held.get(name) != (members.hold, members.held):
            self._held[name] = (members.hold, members.held)
            self.log.warning(
                "servers-held", source=name, servers=list(members.held), reason=members.hold.value
            )

    def installed(self) -> None:
        """Log that the bootstrap is complete."""
        self.log.info("bootstrap-complete")

    def not_written(self, path: str, reason: str) -> None:
        """Log that the found servers cannot be written."""
        self.log.error("found-not-written", path=path, reason=reason)

    def not_taken(self, reason: str) -> None:
        """Log that `reload` did not apply the found servers."""
        self.log.error("found-not-taken", reason=reason)
