"""Types of the configuration's keys: how a value is read from the file, and its JSON Schema."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, Field, PlainValidator, Strict, WithJsonSchema
from pydantic.config import JsonDict

from appliance.model.config.values import (
    addresses,
    bgp,
    check_steps,
    client_routes,
    http,
    kubernetes,
    names,
    notify_addresses,
    sni_routes,
    units,
    virtual_routes,
    vrrp,
)
from appliance.model.config.values.addresses import Endpoint
from appliance.model.config.values.http import Statuses
from appliance.model.messages import quoting
from appliance.model.operator_events import EventKind, EventSeverity
from appliance.model.snapshot.discovery import RouterPort
from appliance.model.snapshot.frontends import (
    ClientRoute,
    Flowtable,
    Forward,
    Masquerade,
    RedirectWhen,
    SniRoute,
)
from appliance.model.snapshot.pools import (
    Balance,
    CheckInit,
    CheckStep,
    OnDown,
    OnUp,
    SendProxy,
    SourceAddress,
)
from appliance.model.snapshot.shared_ip import Engine, Unhealthy
from appliance.model.snapshot.snapshot import Form
from appliance.model.snapshot.virtual_router import (
    AntiReplay,
    Checksum,
    HmacMode,
    OnConflict,
    VirtualRoute,
    VirtualRule,
)

MOST_WORKERS: Final = 128
MOST_CONNECTIONS: Final = 10_000_000
MOST_PROBES: Final = 127
"""Most probes of TCP keepalive, as the kernel has it (MAX_TCP_KEEPCNT of net/tcp.h)."""

_Value = TypeVar("_Value")


def _pattern(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern})


def _workers(value: object) -> int | None:
    if value == "auto":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_WORKERS:
        return value
    said = quoting.contrast(value, plain=units.INTEGER_PATTERN)
    raise ValueError(f"must be `auto` or 1 to {MOST_WORKERS}{said}")


def _verify(value: object) -> str | None:
    return None if value == "none" else names.file_path(value)


def not_empty(schema: JsonDict) -> None:
    """Change the JSON Schema of a list so that it needs at least one item."""
    schema.pop("default", None)
    schema["minItems"] = 1


def or_false(schema: JsonDict) -> None:
    """Change the JSON Schema of a key so that it accepts `false` in place of the mapping."""
    schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"const": False}]


def or_off(schema: JsonDict) -> None:
    """Change the JSON Schema of a key so that it accepts `off` in place of the mapping."""
    schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"const": "off"}]


def or_masters(schema: JsonDict) -> None:
    """Change the JSON Schema of a key so that it accepts `masters` in place of the mapping."""
    schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"const": "masters"}]


def named(schema: JsonDict) -> None:
    """Change the JSON Schema of a mapping with names beside its own keys, so that they have to be names."""
    schema["patternProperties"] = {names.NAME_PATTERN: schema.pop("additionalProperties")}
    schema["additionalProperties"] = False


def written(text: str, read: Callable[[object], _Value], *, example: str | None = None) -> _Value:
    """Return a field with the default `read(text)`; the JSON Schema shows the text itself."""
    return Field(
        default_factory=partial(read, text), examples=[example or text], json_schema_extra={"default": text}
    )


_Listed: Final = Strict(strict=False)  # a list of the file becomes a tuple
_Word: Final = Strict(strict=False)  # a text of the file becomes a member of its enum

Duration = Annotated[float, PlainValidator(units.duration), _pattern(units.DURATION_PATTERN)]
DurationOrOff = Annotated[
    float, PlainValidator(units.duration_or_off), _pattern(units.DURATION_OR_OFF_PATTERN)
]
LifetimeOrOff = Annotated[
    float, PlainValidator(units.lifetime_or_off), _pattern(units.DURATION_OR_OFF_PATTERN)
]
KeepAliveTime = Annotated[float, PlainValidator(units.keepalive_time), _pattern(units.DURATION_PATTERN)]
UserTimeoutOrOff = Annotated[
    float, PlainValidator(units.user_timeout_or_off), _pattern(units.DURATION_OR_OFF_PATTERN)
]
HoldTime = Annotated[float, PlainValidator(bgp.hold_time), _pattern(units.DURATION_PATTERN)]
RestartTimeOrOff = Annotated[
    float, PlainValidator(bgp.restart_time_or_off), _pattern(units.DURATION_OR_OFF_PATTERN)
]
BfdInterval = Annotated[float, PlainValidator(bgp.bfd_interval), _pattern(units.DURATION_PATTERN)]
WatchdogTime = Annotated[float, PlainValidator(units.watchdog), _pattern(units.DURATION_PATTERN)]
Percentage = Annotated[float, PlainValidator(units.percentage), _pattern(units.PERCENTAGE_PATTERN)]
Name = Annotated[str, AfterValidator(names.name), _pattern(names.NAME_PATTERN)]
Names = Annotated[tuple[Name, ...], _Listed]
NodeNames = Annotated[tuple[Name, ...], _Listed, AfterValidator(names.nodes)]
Address = Annotated[Endpoint, PlainValidator(addresses.endpoint), _pattern(addresses.ENDPOINT_PATTERN)]
ServerAddress = Annotated[
    Endpoint, PlainValidator(addresses.server_endpoint), _pattern(addresses.ENDPOINT_PATTERN)
]
ServerAddressToCome = Annotated[
    Endpoint, PlainValidator(addresses.server_endpoint_to_come), _pattern(addresses.ENDPOINT_PATTERN)
]
ServerHost = Annotated[str, PlainValidator(addresses.server_host), WithJsonSchema({"type": "string"})]
DnsName = Annotated[str, PlainValidator(addresses.dns_name), WithJsonSchema({"type": "string"})]
GroupName = Annotated[str, PlainValidator(names.group_name), _pattern(names.GROUP_PATTERN)]
FilePath = Annotated[str, PlainValidator(names.file_path), _pattern("^/")]
Networks = Annotated[
    tuple[Annotated[str, PlainValidator(addresses.network), WithJsonSchema({"type": "string"})], ...],
    _Listed,
]
HttpPath = Annotated[str, PlainValidator(http.path), _pattern("^/[!-~]*$")]
HttpPaths = Annotated[tuple[HttpPath, ...], _Listed]
HashPart = Literal["source", "source-port", "destination", "destination-port"]
HashParts = Annotated[tuple[HashPart, ...], _Listed]
HttpMethod = Annotated[str, PlainValidator(http.method), _pattern("^[A-Z]+$")]
BodyText = Annotated[
    str,
    PlainValidator(http.body_text),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": http.LONGEST_BODY_TEXT}),
]
BodyDigest = Annotated[
    str, PlainValidator(http.body_digest), WithJsonSchema({"type": "string", "pattern": "^[0-9A-Fa-f]{32}$"})
]
CheckSteps = Annotated[
    tuple[CheckStep, ...], PlainValidator(check_steps.check_steps), WithJsonSchema(check_steps.SCHEMA)
]
HostHeader = Annotated[str, PlainValidator(http.host_header), WithJsonSchema({"type": "string"})]
Addresses = Annotated[tuple[Address, ...], _Listed]
RedirectCondition = Annotated[RedirectWhen, _Word]
Forwarding = Annotated[Forward, _Word]
ClientRoutes = Annotated[
    tuple[ClientRoute, ...], PlainValidator(client_routes.client_routes), WithJsonSchema(client_routes.SCHEMA)
]
SniRoutes = Annotated[
    tuple[SniRoute, ...], PlainValidator(sni_routes.sni_routes), WithJsonSchema(sni_routes.SCHEMA)
]
Masquerading = Annotated[Masquerade, _Word]
Flowtables = Annotated[Flowtable, _Word]
ServerAddresses = Annotated[tuple[ServerAddress, ...], _Listed]
WebhookUrl = Annotated[
    str, PlainValidator(notify_addresses.webhook_url), _pattern(notify_addresses.WEBHOOK_PATTERN)
]
SyslogAddress = Annotated[
    str, PlainValidator(notify_addresses.syslog_address), _pattern(notify_addresses.SYSLOG_PATTERN)
]
WebhookForm = Annotated[Form, _Word]
WorstFirst = Annotated[EventSeverity, _Word]
EventKinds = Annotated[tuple[Annotated[EventKind, _Word], ...], _Listed]
SocketPath = Annotated[str, PlainValidator(names.socket_path), _pattern("^/")]
SocketPaths = Annotated[tuple[SocketPath, ...], _Listed]
Init = Annotated[CheckInit, _Word]
ProxyHeader = Annotated[SendProxy, _Word]
Algorithm = Annotated[Balance, _Word]
ConnectFrom = Annotated[SourceAddress, _Word]
PortRange = Annotated[
    tuple[int, int], PlainValidator(addresses.port_range), _pattern(addresses.PORT_RANGE_PATTERN)
]
WhenDown = Annotated[OnDown, _Word]
WhenUp = Annotated[OnUp, _Word]
Workers = Annotated[
    int | None,
    PlainValidator(_workers),
    WithJsonSchema(
        {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MOST_WORKERS}]}
    ),
]
ExpectedStatuses = Annotated[
    Statuses,
    PlainValidator(http.statuses),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": http.STATUSES_PATTERN},
                {"type": "integer", "minimum": 100, "maximum": 599},
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": ["string", "integer"], "pattern": http.STATUSES_PATTERN},
                },
            ]
        }
    ),
]
LabelSelector = Annotated[
    str, PlainValidator(kubernetes.label_selector), WithJsonSchema({"type": "string", "minLength": 1})
]
DiscoveredPort = Annotated[
    int | RouterPort,
    PlainValidator(kubernetes.discovered_port),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 65535},
                {"enum": [each.value for each in RouterPort]},
            ]
        }
    ),
]
Verify = Annotated[
    str | None,
    PlainValidator(_verify),
    WithJsonSchema({"anyOf": [{"const": "none"}, {"type": "string", "pattern": "^/"}]}),
]

AdvertTime = Annotated[float, PlainValidator(vrrp.advert), _pattern(units.DURATION_PATTERN)]
HandOverTime = Annotated[float, PlainValidator(vrrp.hand_over), _pattern(units.DURATION_PATTERN)]
VirtualAddresses = Annotated[
    tuple[
        Annotated[str, PlainValidator(vrrp.virtual_address), _pattern(vrrp.VIRTUAL_ADDRESS_PATTERN)],
        ...,
    ],
    _Listed,
]
VirtualRoutes = Annotated[
    tuple[VirtualRoute, ...],
    PlainValidator(virtual_routes.routes),
    WithJsonSchema(virtual_routes.ROUTES_SCHEMA),
]
VirtualRules = Annotated[
    tuple[VirtualRule, ...],
    PlainValidator(virtual_routes.rules),
    WithJsonSchema(virtual_routes.RULES_SCHEMA),
]
RouterAddress = Annotated[str, PlainValidator(vrrp.router_address), _pattern("^[0-9A-Fa-f:.]+$")]
RouterAddresses = Annotated[tuple[RouterAddress, ...], _Listed]
InterfaceName = Annotated[str, PlainValidator(vrrp.interface), _pattern(vrrp.INTERFACE_PATTERN)]
Label = Annotated[str, PlainValidator(vrrp.label), _pattern(vrrp.INTERFACE_PATTERN)]
RouterId = Annotated[
    int | None,
    PlainValidator(vrrp.router_id),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "auto"},
                {"type": "integer", "minimum": 1, "maximum": vrrp.MOST_ROUTER_ID},
            ]
        }
    ),
]
KeyId = Annotated[str, AfterValidator(vrrp.key_id), _pattern(vrrp.KEY_ID_PATTERN)]
Secret = Annotated[str, PlainValidator(vrrp.secret), _pattern(vrrp.SECRET_PATTERN)]
Password = Annotated[str, PlainValidator(vrrp.password), _pattern(vrrp.PASSWORD_PATTERN)]
StatsUser = Annotated[str, PlainValidator(names.stats_user), _pattern("^[^:]+$")]
StatsPassword = Annotated[str, PlainValidator(names.stats_password), WithJsonSchema({"type": "string"})]
User = Annotated[str, PlainValidator(vrrp.user), _pattern(vrrp.USER_PATTERN)]
Url = Annotated[str, PlainValidator(http.url), _pattern("^https?://")]
Command = Annotated[
    tuple[str, ...],
    PlainValidator(vrrp.words),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": {"type": "string"}},
            ]
        }
    ),
]
ConflictPolicy = Annotated[OnConflict, _Word]
ChecksumForm = Annotated[Checksum, _Word]
TrailerMode = Annotated[HmacMode, _Word]
ReplayGuard = Annotated[AntiReplay, _Word]

SharedAddresses = Annotated[
    tuple[Annotated[str, PlainValidator(bgp.shared_address), _pattern(bgp.SHARED_ADDRESS_PATTERN)], ...],
    _Listed,
]
WhenUnhealthy = Annotated[Unhealthy, _Word]
Communities = Annotated[
    tuple[Annotated[str, PlainValidator(bgp.community), _pattern(bgp.COMMUNITY_PATTERN)], ...], _Listed
]
BgpEngine = Annotated[Engine, _Word]
Asn = Annotated[
    int,
    PlainValidator(bgp.asn),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": bgp.MOST_ASN - 1}),
]
BgpRouterId = Annotated[str | None, PlainValidator(bgp.router_id), _pattern(r"^(auto|[0-9.]+)$")]
BgpPassword = Annotated[str, PlainValidator(bgp.password), _pattern(bgp.PASSWORD_PATTERN)]
NeighborAddress = Annotated[str, PlainValidator(bgp.neighbor_address), _pattern(bgp.NEIGHBOR_PATTERN)]
RoutingTable = Annotated[
    int,
    PlainValidator(bgp.table),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": bgp.MOST_ASN}),
]
