"""The part of a snapshot for the program `stats`."""

from dataclasses import dataclass

from appliance.model.snapshot.frontends import Bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Where the program `stats` listens, and for which clients.

    `more_binds` are addresses in addition to `bind`. `paths` are further paths of the page, each with all
    paths below it. `respond` is a path that reports whether workers accept, and `needs` the pool that must
    have a server up for that, both None for none. `user` None lets everyone look; otherwise the password is
    in `password` or in `password_file`. `certificate` and `key` are None for plain HTTP. `allow` are
    networks, empty for everyone, and `deny` those that may never connect. `socket` is the path of the unix
    socket for HAProxy's commands, or None. `admin` lets authenticated users change the states of servers over
    HTTP, and move virtual IPs.
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
