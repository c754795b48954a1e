"""The part of a snapshot that the program `stats` obeys."""

from dataclasses import dataclass

from appliance.model.snapshot.frontends import Bind


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Where the program `stats` listens, and for whom.

    `user` is None where everybody may look; otherwise the password is in `password` or in `password_file`.
    `certificate` and `key` are None where it speaks plain HTTP. `allow` are networks, none for everybody.
    `socket` is the path of the unix socket for HAProxy's commands, None for none. `admin` lets whoever has
    authenticated change the states of servers over HTTP, and move virtual IPs.
    """

    bind: Bind
    user: str | None = None
    password_file: str | None = None
    password: str | None = None
    certificate: str | None = None
    key: str | None = None
    allow: tuple[str, ...] = ()
    socket: str | None = None
    admin: bool = False
