"""The objects of one resource, kept up to date by lists and the events of watches (client-go: a store).

A list replaces everything, because there is no event for objects that vanished meanwhile. Between lists each
event changes one object, and the next watch continues from the last one's version, at any server.
"""

from typing import Final, Generic, assert_never

from msgspec import structs

from appliance.wire.kubernetes.answers import (
    GONE,
    AnyObject,
    Bookmark,
    Changed,
    Deleted,
    Page,
    Refusal,
)

MOST_OBJECTS: Final = 5000
"""Most objects of a resource: Kubernetes itself is designed for that many Nodes."""


class TooManyObjectsError(Exception):
    """There are more objects than a cluster has; nothing of the list is used."""


class Reflection(Generic[AnyObject]):
    """A resource's objects, to be listed while `resource_version` is None; `changes` counts their changes."""

    def __init__(self) -> None:
        self.resource_version: str | None = None
        self.changes = 0
        self._objects: dict[str, AnyObject] = {}
        self._listing: dict[str, AnyObject] = {}

    @property
    def objects(self) -> tuple[AnyObject, ...]:
        """Return the objects, sorted by name."""
        return tuple(each for _, each in sorted(self._objects.items()))

    def begin_list(self) -> None:
        """Forget the pages of an incomplete list."""
        self._listing = {}

    def page(self, page: Page[AnyObject]) -> None:
        """Store a page of a list; the last one replaces all objects. Raises TooManyObjectsError."""
        self._listing |= {each.metadata.name: each for each in page.items}
        if len(self._listing) > MOST_OBJECTS:
            raise TooManyObjectsError(f"more than {MOST_OBJECTS} objects")
        if page.more is None:
            self._objects, self._listing = self._listing, {}
            self.resource_version = page.resource_version or None
            self.changes += 1

    def event(self, event: Changed[AnyObject] | Deleted[AnyObject] | Bookmark | Refusal) -> Refusal | None:
        """Store an event of a watch; return why the watch cannot continue. Raises TooManyObjectsError.

        After a version that is too old, the resource must be listed.
        """
        match event:
            case Refusal():
                if event.code == GONE:
                    self.forget_version()
                return event
            case Changed():
                self._put(event.value)
            case Deleted():
                gone = self._objects.pop(event.value.metadata.name, None)
                self.changes += gone is not None
            case Bookmark():
                pass  # only its version counts
            case _:
                assert_never(event)
        if len(self._objects) > MOST_OBJECTS:
            self.forget_version()
            raise TooManyObjectsError(f"more than {MOST_OBJECTS} objects")
        self.resource_version = event.resource_version or None
        return None

    def _put(self, value: AnyObject) -> None:
        """Store an object; if only its version is new, as after a kubelet's heartbeat, that is no change."""
        known = self._objects.get(value.metadata.name)
        self._objects[value.metadata.name] = value
        self.changes += known is None or structs.replace(value, metadata=known.metadata) != known

    def forget_version(self) -> None:
        """Have the resource listed again; the objects stay until then."""
        self.resource_version = None
