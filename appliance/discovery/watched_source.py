"""One source of servers: the resources watched for it, and their result."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.discovery import finding
from appliance.core.discovery.finding import AddressChoice
from appliance.core.discovery.members import Members
from appliance.model.snapshot.discovery import ApiAddress, Source, SourceKind
from appliance.model.snapshot.found_servers import FoundSource
from appliance.net.kubernetes.reflector import Failed, Reflector, Seen
from appliance.wire.kubernetes import requests
from appliance.wire.kubernetes.answers import AnyObject
from appliance.wire.kubernetes.objects import ApiObject, ConfigMap, EndpointSlice, IngressController, Node
from appliance.wire.kubernetes.requests import Resource
from appliance.wire.lines.discovery_status import ResourceStatus

OVERDUE: Final = 30.0
"""Seconds without an answer that count as a problem: a server that is gone is skipped earlier."""

_PERMANENT: Final = frozenset(
    {"forbidden", "unauthorized", "missing", "refused", "certificate", "access", "internal"}
)


@dataclass(slots=True, kw_only=True, eq=False)
class WatchedResource:
    """One resource: objects, None before the first list, and requests. Times are Unix seconds."""

    reflector: Reflector
    since: float
    objects: tuple[ApiObject, ...] | None = None
    server: str | None = None
    seen_at: float | None = None
    failure: Failed | None = None
    failed_at: float | None = None

    def problem(self, wall: float) -> str | None:
        """Return why the data may be outdated, None if it is not."""
        overdue = wall - (self.seen_at or self.since) > OVERDUE
        if self.failure is None or not (overdue or self.failure.reason in _PERMANENT):
            return None
        server = f" at {self.failure.server}" if self.failure.server else ""
        return f"{self.reflector.resource.what}{server}: {self.failure.reason}: {self.failure.message}"

    def status(self) -> ResourceStatus:
        """Return the source's part of `status`."""
        error = f"{self.failure.reason}: {self.failure.message}" if self.failure else None
        return ResourceStatus(
            what=self.reflector.resource.what,
            server=self.server,
            seen_at=self.seen_at,
            error=error,
            failed_at=self.failed_at,
        )


class WatchedSource:
    """A source with its resources; `reflect` creates and starts the reflector of one."""

    def __init__(
        self,
        source: Source,
        known: FoundSource | None,
        *,
        bootstrap: bool,
        reflect: Callable[[Resource], Reflector],
    ) -> None:
        self.members = Members(source, known)
        self.bootstrap = bootstrap
        now = time.time()
        self.resources: Mapping[Reflector, WatchedResource] = {
            reflector: WatchedResource(reflector=reflector, since=now)
            for reflector in map(reflect, _resources(source, bootstrap=bootstrap))
        }

    @property
    def key(self) -> tuple[Source, bool]:
        """Return its identity: the source, and whether the bootstrap is watched."""
        return self.source, self.bootstrap

    @property
    def source(self) -> Source:
        """Return which source it is."""
        return self.members.source

    @property
    def seen_at(self) -> float | None:
        """Return when the resource that names the servers answered last, Unix seconds; None for never."""
        return next(iter(self.resources.values())).seen_at

    def seen(self, message: Seen) -> WatchedResource:
        """Take the objects from the API."""
        resource = self.resources[message.reflector]
        resource.server, resource.seen_at = message.server, time.time()
        resource.failure = None
        if message.objects is not None:
            resource.objects = message.objects
        return resource

    def failed(self, message: Failed) -> WatchedResource:
        """Take the failure of a request."""
        resource = self.resources[message.reflector]
        resource.failure, resource.failed_at = message, time.time()
        return resource

    def observe(self, choice: AddressChoice, now: float) -> None:
        """Update the servers from the objects, once there is a list of them."""
        if self.source.kind is SourceKind.NODES:
            found = self._known(Node)
            if found is not None:
                self.members.observe(finding.nodes(found, choice), proxy=None, now=now)
            return
        slices, controllers = self._known(EndpointSlice), self._known(IngressController) or ()
        if slices is not None:
            servers = finding.routers(slices, controllers, choice)
            self.members.observe(servers, proxy=finding.expects_proxy(controllers), now=now)

    @property
    def api_servers(self) -> tuple[ApiAddress, ...]:
        """Return the API servers that report that they serve; none if that is unknown."""
        return finding.api_servers(self._known(EndpointSlice) or ()) if self.source.is_masters else ()

    @property
    def is_installed(self) -> bool:
        """Return whether the API reports the bootstrap as complete."""
        return finding.is_installed(self._known(ConfigMap) or ())

    def problems(self, wall: float) -> list[str]:
        """Return the problems, for the operator."""
        found = [why for each in self.resources.values() if (why := each.problem(wall))]
        if self.members.hold:
            found.append(f"{self.members.hold} ({', '.join(self.members.held)} stay)")
        if not self.members.found.servers:
            found.append("no server has been found yet")
        return [f"discover {self.source}: {each}" for each in found]

    def close(self) -> None:
        """Stop watching."""
        for each in self.resources:
            each.stop()

    def _known(self, kind: type[AnyObject]) -> tuple[AnyObject, ...] | None:
        """Return the objects of a kind, None before the first list of them."""
        for each in self.resources.values():
            if each.reflector.resource.kind is kind and each.objects is not None:
                return tuple(one for one in each.objects if isinstance(one, kind))
        return None


def _resources(source: Source, *, bootstrap: bool) -> tuple[Resource, ...]:
    """Return the resources watched for a source; the one that names the servers is first."""
    if source.kind is SourceKind.ROUTERS:
        return (requests.router_endpoints(source.what), requests.ingress_controller(source.what))
    if not source.is_masters:
        return (requests.nodes(source.what),)
    optional = (requests.BOOTSTRAP,) if bootstrap else ()
    return (requests.nodes(source.what), requests.API_ENDPOINTS, *optional)
