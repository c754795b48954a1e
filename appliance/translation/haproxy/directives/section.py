"""The content of one proxy section of haproxy.cfg: `defaults`, `frontend`, `backend` or `listen`.

It is filled line by line. Settings that `defaults` pass on are in `Settings`, which is copied into each later
section.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

from appliance.model.config.values.addresses import Endpoint
from appliance.model.config.values.http import Statuses
from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.haproxy.text.lines import Line
from appliance.translation.haproxy.values.endpoints import ServerTarget

_Value = TypeVar("_Value")


class Kind(StrEnum):
    """A kind of section; a `listen` is a frontend and a backend in one."""

    DEFAULTS = "defaults"
    FRONTEND = "frontend"
    BACKEND = "backend"
    LISTEN = "listen"

    @property
    def takes_clients(self) -> bool:
        """Whether a frontend's directives apply to it."""
        return self is not Kind.BACKEND

    @property
    def has_servers(self) -> bool:
        """Whether a backend's directives apply to it."""
        return self is not Kind.FRONTEND


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed(Generic[_Value]):
    """A value, and the place of its word."""

    value: _Value
    place: FilePosition


class CheckKind(StrEnum):
    """The check selected by the last `option ...chk` of a section; PLAIN without one, PROTOCOL for steps."""

    PLAIN = "plain"
    HTTP = "httpchk"
    TLS_HELLO = "ssl-hello-chk"
    TCP_RULES = "tcp-check"
    PROTOCOL = "protocol"
    COMMAND = "external-check"


CheckStep = Mapping[str, Plain]
"""A step of a dialogue check, with our keys (`model.config.values.check_steps`)."""


@dataclass(slots=True, kw_only=True)
class CheckSettings:
    """How the servers of a section are checked, as far as the section sets it and not each server.

    `inherited` holds until the section sets its first rule. `steps` are those of `tcp-check`, `protocol`
    those of an option such as `redis-check`, and `comment` belongs to the next step. `further` are the
    connections of `tcp-check` after the first, with their steps; `as_server` is the word `default` of one.
    """

    kind: Placed[CheckKind] | None = None
    method: Placed[str] | None = None
    path: Placed[str] | None = None
    host: Placed[str] | None = None
    statuses: Placed[Statuses] | None = None
    body: Placed[str] | None = None
    port: Placed[int] | None = None
    address: Placed[str] | None = None
    tls: Placed[bool] | None = None
    sni: Placed[str] | None = None
    send_proxy: Placed[bool] | None = None
    connect: Placed[bool] | None = None
    further: "tuple[CheckSettings, ...]" = ()
    as_server: bool = False
    steps: tuple[Placed[CheckStep], ...] = ()
    protocol: tuple[CheckStep, ...] = ()
    comment: str = ""
    inherited: bool = False


@dataclass(slots=True, kw_only=True)
class ServerOptions:
    """The keywords of `server` and `default-server`, by their own names."""

    flags: dict[str, Placed[bool]] = field(default_factory=dict)
    numbers: dict[str, Placed[int]] = field(default_factory=dict)
    times: dict[str, Placed[int]] = field(default_factory=dict)
    texts: dict[str, Placed[str]] = field(default_factory=dict)

    def copy(self) -> "ServerOptions":
        """Return a copy that can be changed independently."""
        return ServerOptions(
            flags=dict(self.flags), numbers=dict(self.numbers), times=dict(self.times), texts=dict(self.texts)
        )

    def flag(self, name: str) -> bool:
        """Return whether a flag is set."""
        given = self.flags.get(name)
        return given is not None and given.value


@dataclass(slots=True, kw_only=True)
class StatsSettings:
    """The directives `stats` of a section."""

    on: Placed[bool] | None = None
    uri: Placed[str] | None = None
    auth: Placed[tuple[str, str]] | None = None
    scope: Placed[str] | None = None
    admin: Placed[bool] | None = None


class Level(StrEnum):
    """Levels of rules: each is evaluated separately, and a client must pass them all."""

    CONNECTION = "tcp-request connection"
    SESSION = "tcp-request session"
    CONTENT = "tcp-request content"
    REQUEST = "http-request"
    STATS = "stats http-request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A line that may have a condition; `verb` is its action, for `use_backend` the backend."""

    line: Line
    verb: str
    condition: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Settings:
    """The settings that a `defaults` section passes on. Times are milliseconds, 0 for none.

    `unguarded` is the first refused line that may have kept clients out: the section that it protects is not
    served.
    """

    times: dict[str, Placed[int]] = field(default_factory=dict)
    numbers: dict[str, Placed[int]] = field(default_factory=dict)
    flags: dict[str, Placed[bool]] = field(default_factory=dict)
    texts: dict[str, Placed[str]] = field(default_factory=dict)
    check: CheckSettings = field(default_factory=CheckSettings)
    server: ServerOptions = field(default_factory=ServerOptions)
    stats: StatsSettings = field(default_factory=StatsSettings)
    unguarded: int | None = None

    @property
    def backend(self) -> Placed[str] | None:
        """The backend of all connections: the first unconditional `use_backend`, else `default_backend`."""
        return self.texts.get("use_backend") or self.texts.get("default_backend")

    def handed_on(self) -> "Settings":
        """Return the initial settings of a later section, which it can change independently."""
        return Settings(
            times=dict(self.times),
            numbers=dict(self.numbers),
            flags=dict(self.flags),
            texts=dict(self.texts),
            check=replace(self.check, inherited=True),
            server=self.server.copy(),
            stats=replace(self.stats),
            unguarded=self.unguarded,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """The addresses of one `bind` line."""

    place: FilePosition
    endpoints: tuple[Endpoint, ...]
    ipv6_only: bool = False
    user_timeout: Placed[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One `server` line."""

    name: str
    line: Line
    target: ServerTarget
    options: ServerOptions


@dataclass(slots=True, kw_only=True)
class Section:
    """A section as read so far; `defaults` is the section whose settings it began with.

    `table` is the key of its `stick-table`. `sticks` are the lines that make clients stick by address: `stick
    on src`, or `stick match src` and `stick store-request src`, each with our algorithm.
    """

    kind: Kind
    name: str
    header: Line
    settings: Settings
    lines: list[Line] = field(default_factory=list)
    binds: list[Bind] = field(default_factory=list)
    servers: dict[str, Server] = field(default_factory=dict)
    acls: dict[str, list[Line]] = field(default_factory=dict)
    rules: dict[Level, list[Rule]] = field(default_factory=dict)
    failures: list[Rule] = field(default_factory=list)
    routes: list[Rule] = field(default_factory=list)
    template: bool = False
    table: str | None = None
    sticks: dict[str, Placed[str]] = field(default_factory=dict)
    defaults: "Section | None" = None

    @property
    def is_disabled(self) -> bool:
        """Whether HAProxy does not serve it."""
        given = self.settings.flags.get("disabled")
        return given is not None and given.value

    @property
    def reads_http(self) -> bool:
        """Whether it runs in `mode http`."""
        given = self.settings.texts.get("mode")
        return given is not None and given.value == "http"
