"""The objects of one resource, kept up to date by lists and the events of watches (client-go: a store).

A list replaces everything, because what vanished meanwhile has no event. Between lists each event changes one
object, and the version of the last one is what the next watch goes on from, at whatever server.
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
"""Most objects of a resource: Kubernetes itself is made for that many Nodes."""


class TooManyObjectsError(Exception):
    """There are more objects than a cluster has; nothing of the list is used."""


class Reflection(Generic[AnyObject]):
    """What is known of a resource. `resource_version` None is that it has to be listed.

    `changes` counts what has changed the objects.
    """

    def __init__(self) -> None:
        self.resource_version: str | None = None
        self.changes = 0
        self._objects: dict[str, AnyObject] = {}
        self._listing: dict[str, AnyObject] = {}

    @property
    def objects(self) -> tuple[AnyObject, ...]:
        """Return the objects in the order of their names."""
        return tuple(each for _, each in sorted(self._objects.items()))

    def begin_list(self) -> None:
        """Forget the pages of a list that did not come to its end."""
        self._listing = {}

    def page(self, page: Page[AnyObject]) -> None:
        """Take a page of a list; the last one replaces what was known. Raises TooManyObjectsError."""
        self._listing |= {each.metadata.name: each for each in page.items}
        if len(self._listing) > MOST_OBJECTS:
            raise TooManyObjectsError(f"more than {MOST_OBJECTS} objects")
        if page.more is None:
            self._objects, self._listing = self._listing, {}
            self.resource_version = page.resource_version or None
            self.changes += 1

    def event(self, event: Changed[AnyObject] | Deleted[AnyObject] | Bookmark | Refusal) -> Refusal | None:
        """Take an event of a watch; return why the watch cannot go on. Raises TooManyObjectsError.

        After a version that is too old, the resource has to be listed.
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
        """Take an object; one in which only the version is new, as of a kubelet's heartbeat, is no change."""
        known = self._objects.get(value.metadata.name)
        self._objects[value.metadata.name] = value
        self.changes += known is None or structs.replace(value, metadata=known.metadata) != known

    def forget_version(self) -> None:
        """Have the resource listed again; what is known stays until then."""
        self.resource_version = None
