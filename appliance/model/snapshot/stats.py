"""The part of a snapshot that the program `stats` obeys."""

from dataclasses import dataclass

from appliance.model.snapshot.frontends import Bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Where the program `stats` listens, and for whom.

    `more_binds` are addresses beside `bind`. `paths` are those of the page beside its own, each with all that
    begins so. `respond` is a path that says whether workers accept, and `needs` the pool that must have a
    server up for that, both None for none.

    `user` is None where everybody may look; otherwise the password is in `password` or in `password_file`.
    `certificate` and `key` are None where it speaks plain HTTP. `allow` are networks, none for everybody, and
    `deny` those that may not connect even so.
    `socket` is the path of the unix socket for HAProxy's commands, None for none. `admin` lets whoever has
    authenticated change the states of servers over HTTP, and move virtual IPs.
    """

    bind: Bind
    more_binds: tuple[Bind, ...] = ()
    paths: tuple[str, ...] = ()
    respond: str | None = None
    needs: str | None = None
    user: str | None = None
    password_file: str | None = None
    password: str | None = None
    certificate: str | None = None
    key: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    socket: str | None = None
    admin: bool = False

    @property
    def binds(self) -> tuple[Bind, ...]:
        """All addresses."""
        return (self.bind, *self.more_binds)
