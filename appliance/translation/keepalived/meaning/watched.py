"""A translated item that instances can track: `vrrp_script`, a process, a file, an interface."""

from dataclasses import dataclass

from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An item that becomes an entry of `track`.

    `kind` is its key (`http`, `script` ...) and `target` the value. `haproxy`: it checks that haproxy runs;
    the entry then names a proxy of ours. `settings` are further keys, each with its place. `weight` 0 means
    fault while it is down. `reason` says what changed, None if nothing did.
    """

    name: str
    place: FilePosition
    kind: str
    target: Plain
    target_place: FilePosition
    settings: tuple[tuple[str, Plain, FilePosition], ...] = ()
    weight: int = 0
    weight_place: FilePosition | None = None
    haproxy: bool = False
    reason: str | None = None
