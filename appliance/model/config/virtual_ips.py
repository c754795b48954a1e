"""The keys of `virtual_ips`, as in `model.config.configuration`: the descriptions are the documentation.

What keepalived calls the same thing stands in brackets.
"""

from typing import Final, Literal

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import (
    AdvertTime,
    ChecksumForm,
    Command,
    ConflictPolicy,
    Duration,
    DurationOrOff,
    ExpectedStatuses,
    FilePath,
    HandOverTime,
    InterfaceName,
    KeyId,
    Label,
    Name,
    Password,
    ReplayGuard,
    RouterAddress,
    RouterAddresses,
    RouterId,
    Secret,
    ServerAddress,
    TrailerMode,
    Url,
    User,
    Verify,
    VirtualAddresses,
    VirtualRoutes,
    VirtualRules,
    written,
)
from appliance.model.config.values.http import statuses
from appliance.model.config.values.units import advert, duration, duration_or_off
from appliance.model.config.values.vrrp import DEVICE
from appliance.model.snapshot.virtual_router import AntiReplay, Checksum, HmacMode, OnConflict, TrackKind

MOST_WEIGHT: Final = 253
"""Greatest weight of a tracked thing (keepalived's limit)."""


class HmacSection(Section):
    """The trailer that signs advertisements."""

    keys: dict[KeyId, Secret] = Field(min_length=1, examples=[{"1": "00" * 32}])
    """Keys by id, 1 to 255: 32 to 64 bytes, hexadecimal, ASCII or `file:/path`. All are accepted."""
    send: int | None = Field(default=None, ge=1, le=255, examples=[1])
    """Id of the key that signs; the only one by default."""
    mode: TrailerMode = Field(default=HmacMode.ENFORCE)
    """enforce, permissive (takes unsigned ones too), or receive-only (and signs nothing: the first step)."""
    anti_replay: ReplayGuard = Field(default=AntiReplay.TIME)
    """time: clocks have to agree; monotonic: what is sent only has to grow, at the cost of freshness."""
    time_window: Duration | None = Field(default=None, examples=["5s"])
    """How far the clocks may differ; three adverts by default, at least 5s."""


class AuthSection(Section):
    """Proof that an advertisement comes from one of us: `pass` or `hmac`."""

    password: Password | None = Field(default=None, alias="pass", examples=["ocp4_api"])
    """Password in clear (version 2; auth_pass): only its first 8 bytes in UTF-8 count."""
    hmac: HmacSection | None = None
    """Signature by keys that all share (auth_hmac of keepalived 2.4)."""


class AnnounceSection(Section):
    """Gratuitous ARP and neighbour advertisements, which tell switches where the addresses are."""

    repeat: int = Field(default=5, ge=1, le=100)
    """How many for each address on becoming active, and again after `delay` (garp_master_repeat)."""
    delay: DurationOrOff = written("5s", duration_or_off)
    """Time to the second series, or `off` (garp_master_delay)."""
    refresh: DurationOrOff = written("1m", duration_or_off)
    """Time between later ones while active, or `off` (garp_master_refresh; 60s in OpenShift, too)."""
    refresh_repeat: int = Field(default=1, ge=1, le=100)
    """How many of those (garp_master_refresh_repeat)."""
    reply: bool = Field(default=False)
    """Whether each ARP request is followed by the reply form, which a few devices want."""


class TrackSection(Section):
    """What is watched: one of http, tcp, script, process, interface, file, pool, program, exists."""

    http: Url | None = Field(default=None, examples=["https://localhost:6443/readyz"])
    """URL that must answer, http or https."""
    tcp: ServerAddress | None = Field(default=None, examples=["localhost:6443"])
    """Address or DNS name, and port, that must take a connection."""
    script: Command | None = Field(default=None, examples=["/usr/local/bin/check-router --quick"])
    """Command that must end with 0 (track_script): text, split as a shell would, or a list of words."""
    process: str | None = Field(default=None, min_length=1, max_length=255, examples=["kube-apiserver"])
    """Name of a process that must run (track_process)."""
    interface: InterfaceName | None = Field(default=None, examples=["ens224"])
    """Interface that must be up with carrier (track_interface); the virtual IP's own always must."""
    file: FilePath | None = Field(default=None, examples=["/run/maintenance"])
    """File with a number (track_file), times the weight; without a weight, other than 0 is fault."""
    pool: str | None = Field(default=None, examples=["masters"])
    """Pool of this configuration that must have a server up."""
    program: str | None = Field(default=None, examples=["proxy-api"])
    """Proxy of this appliance that must accept connections: proxy-api or proxy-ingress."""
    exists: FilePath | None = Field(default=None, examples=["/var/run/keepalived/iptables-rule-exists"])
    """Path that must exist (`[ -e PATH ]` of a check script); beside another kind: both must hold."""
    interval: Duration = written("1s", duration)
    """Time from one check to the next."""
    timeout: Duration | None = Field(default=None, examples=["900ms"])
    """Time that a check may take, at most `interval`, which is the default: checks never overlap."""
    rise: int = Field(default=1, ge=1, le=1000)
    """Good checks in a row that bring it up."""
    fall: int = Field(default=1, ge=1, le=1000)
    """Bad checks in a row that take it down."""
    weight: int | None = Field(default=None, ge=-MOST_WEIGHT, le=MOST_WEIGHT, examples=[50])
    """Added to the priority, a positive one while up, a negative one while down. Without: down is fault."""
    user: User | None = Field(default=None, examples=["nobody"])
    """User that a script runs as; that of the appliance by default. Only root has another."""
    verify: Verify = Field(default=None, json_schema_extra={"default": "none"})
    """File of CA certificates (https), or none: any certificate will do."""
    expect: ExpectedStatuses = written("200-399", statuses)
    """Statuses of a good answer (http and https): one, a range or a list."""

    @property
    def watched(self) -> tuple[tuple[TrackKind, tuple[str, ...]], ...]:
        """The keys that say what is watched, each with its value; a section without errors has one.

        `exists` is one of them where it stands alone, else a condition of the other one.
        """
        given = ((kind, getattr(self, kind.value)) for kind in TrackKind)
        watched = tuple(
            (kind, target if isinstance(target, tuple) else (str(target),))
            for kind, target in given
            if target is not None
        )
        return tuple(each for each in watched if len(watched) == 1 or each[0] is not TrackKind.EXISTS)


class NotifySection(Section):
    """Commands that are run on transitions."""

    active: Command | None = Field(default=None, examples=["/usr/local/bin/tell active"])
    """Run on becoming active (notify_master)."""
    backup: Command | None = Field(default=None, examples=["/usr/local/bin/tell backup"])
    """Run on becoming backup (notify_backup)."""
    fault: Command | None = Field(default=None, examples=["/usr/local/bin/tell fault"])
    """Run on entering fault (notify_fault)."""
    stop: Command | None = Field(default=None, examples=["/usr/local/bin/tell stop"])
    """Run when the virtual IP stops (notify_stop)."""
    any: Command | None = Field(default=None, examples=[["/usr/local/bin/tell", "any"]])
    """Run on every transition with the words INSTANCE NAME STATE PRIORITY behind its own (notify)."""
    fifo: FilePath | None = Field(default=None, examples=["/run/keepalived/notify"])
    """FIFO that gets the line INSTANCE "NAME" STATE PRIORITY of each (notify_fifo); made if missing."""
    user: User | None = Field(default=None, examples=["nobody"])
    """User that the commands run as; that of the appliance by default. Only root has another."""
    timeout: Duration = written("30s", duration)
    """Time that a command may take; then it is killed."""


class VirtualIpSection(Section):
    """Addresses of one family on one interface that move together: RFC 9568's virtual router."""

    addresses: VirtualAddresses = Field(examples=[["10.0.0.200/24"]])
    """With prefix length, of one family, the same on every router; `10.1.0.5/24 dev ens224` is held there."""
    excluded: VirtualAddresses = Field(default=(), examples=[["10.0.0.202/24"]])
    """Held with the others and not advertised (virtual_ipaddress_excluded)."""
    interface: InterfaceName = Field(examples=["ens192"])
    """Interface that carries the addresses and the advertisements."""
    router_id: RouterId = Field(examples=["auto"])
    """1 to 255, the same on every router (virtual_router_id); auto: OpenShift's, for `api`, `ingress`."""
    version: int | None = Field(default=None, ge=2, le=3, examples=[2])
    """Version of VRRP: 2 for IPv4, as keepalived, and 3 for IPv6 by default. 3 has adverts below 1s."""
    priority: int = Field(default=100, ge=1, le=255, examples=[40])
    """Who has the highest becomes active, 1 to 254; 255 is for whoever owns the addresses."""
    advert: AdvertTime = written("1s", advert)
    """Time between advertisements (advert_int): 1s to 255s in version 2, 10ms to 40.95s in version 3."""
    peers: RouterAddresses = Field(default=(), examples=[["10.0.0.34", "10.0.0.99"]])
    """The other routers, told one by one (unicast_peer); by multicast if none are given."""
    source: RouterAddress | None = Field(default=None, examples=["10.0.0.90"])
    """Own address that adverts come from (unicast_src_ip, mcast_src_ip); else the interface's first."""
    min_ttl: int = Field(default=1, ge=1, le=255)
    """Least TTL of what peers send, 255 is the same segment (min_ttl). Multicast always has 255."""
    auth: AuthSection | None = None
    """Proof that an advertisement comes from one of us. None protects from nobody who sees the segment."""
    checksum: ChecksumForm = Field(default=Checksum.PSEUDO_HEADER)
    """Version 3 over IPv4 sends pseudo-header or message (RFC 9568; not to keepalived 2.2); it takes both."""
    preempt: bool = Field(default=True)
    """Whether to take over from an active router of lower priority (nopreempt)."""
    preempt_delay: DurationOrOff = written("off", duration_or_off, example="30s")
    """Time after a start or a fault before that (preempt_delay), or `off`."""
    down_timer_adverts: int = Field(default=3, ge=1, le=100)
    """Advertisements that may be missing before the active router counts as dead (down_timer_adverts)."""
    listen: DurationOrOff | None = Field(default=None, examples=["3s"])
    """Time to listen for others before the first claim; as long as a death takes to be seen by default."""
    hand_over: HandOverTime | None = Field(default=None, examples=["3s"])
    """Longest wait for a successor when leaving, to 1m; two adverts and a second by default, at most 30s."""
    on_conflict: ConflictPolicy = Field(default=OnConflict.WARN)
    """While others use the router id or an address otherwise: warn, wait for its end, or refuse to serve."""
    sync_group: Name | None = Field(default=None, examples=["api"])
    """Name of a group whose virtual IPs are all active on one router (vrrp_sync_group)."""
    virtual_mac: bool = Field(default=False)
    """RFC's own MAC address (use_vmac), by a macvlan interface. VMware and many switches drop it."""
    label: Label | None = Field(default=None, examples=["ens192:vip"])
    """Label of the addresses in the kernel (IPv4), at most 15 characters."""
    announce: AnnounceSection = Field(default_factory=AnnounceSection)
    """Gratuitous ARP and neighbour advertisements, which tell switches where the addresses are."""
    track: dict[Name, TrackSection] = Field(default_factory=dict)
    """What is watched, by name: decides the priority, or that this router cannot serve at all."""
    notify: NotifySection = Field(default_factory=NotifySection)
    """Commands that are run on transitions."""
    routes: VirtualRoutes = Field(
        default=(), examples=[[{"to": "default", "via": "10.0.0.1", "source": "10.0.0.200", "table": 1}]]
    )
    """Routes that come and go with the addresses (virtual_routes)."""
    rules: VirtualRules = Field(default=(), examples=[[{"from": "10.0.0.200", "table": 1, "priority": 100}]])
    """Which packets look in another routing table, while active (virtual_rules)."""

    @property
    def families(self) -> tuple[Literal[4, 6], ...]:
        """IP versions of the addresses, 4 and 6; a section without errors has one of them.

        Without addresses it is that of the routers, and 4 where none are named.
        """
        routers = (*((self.source,) if self.source else ()), *self.peers, "")[:1]
        texts = (*self.addresses, *self.excluded) or routers
        wide = (":" in each.partition(DEVICE)[0] for each in texts)
        return tuple(dict.fromkeys(6 if each else 4 for each in wide))

    @property
    def elsewhere(self) -> tuple[tuple[str, str], ...]:
        """The addresses that are held on another interface than `interface`, each with that one."""
        parts = (each.partition(DEVICE) for each in (*self.addresses, *self.excluded))
        return tuple((address, device) for address, _, device in parts if device not in {"", self.interface})

    @property
    def vrrp_version(self) -> Literal[2, 3]:
        """Version of VRRP that is sent; without `version` keepalived's default, 2 for IPv4 and 3 for IPv6."""
        if self.version is None:
            return 3 if 6 in self.families else 2
        return 2 if self.version == 2 else 3

    @property
    def skew_base(self) -> float:
        """Seconds of which Skew_Time is a fraction: 1 in version 2 (RFC 3768), the interval in version 3."""
        return 1.0 if self.vrrp_version == 2 else self.advert
