"""The keys of `virtual_ips`, as in `model.config.configuration`, with keepalived's names in parentheses."""

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
    NodeNames,
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
from appliance.model.config.values.units import duration, duration_or_off
from appliance.model.config.values.vrrp import DEVICE, advert
from appliance.model.snapshot.virtual_router import AntiReplay, Checksum, HmacMode, OnConflict, TrackKind

MOST_WEIGHT: Final = 253
"""Greatest weight of a track (keepalived's limit)."""


class HmacSection(Section):
    """The trailer that signs advertisements."""

    keys: dict[KeyId, Secret] = Field(min_length=1, examples=[{"1": "00" * 32}])
    """Keys by id, 1 to 255: 32 to 64 bytes, hexadecimal, ASCII or `file:/path`. All are valid."""
    send: int | None = Field(default=None, ge=1, le=255, examples=[1])
    """Id of the key that signs; by default the only one."""
    mode: TrailerMode = Field(default=HmacMode.ENFORCE)
    """enforce, permissive (accepts unsigned too), or receive-only (does not sign either: the first step)."""
    anti_replay: ReplayGuard = Field(default=AntiReplay.TIME)
    """time: clocks must agree; monotonic: values only have to increase, at the cost of freshness."""
    time_window: Duration | None = Field(default=None, examples=["5s"])
    """How far the clocks may differ; by default three adverts, at least 5s."""


class AuthSection(Section):
    """Authentication of advertisements: `pass` or `hmac`."""

    password: Password | None = Field(default=None, alias="pass", examples=["ocp4_api"])
    """Cleartext password (version 2; auth_pass): only its first 8 bytes in UTF-8 count."""
    hmac: HmacSection | None = None
    """Signature with shared keys (auth_hmac of keepalived 2.4)."""


class AnnounceSection(Section):
    """Gratuitous ARP and neighbour advertisements, from which switches learn where the addresses are."""

    repeat: int = Field(default=5, ge=1, le=100)
    """Number per address on becoming active, and again after `delay` (garp_master_repeat)."""
    delay: DurationOrOff = written("5s", duration_or_off)
    """Time before the second series, or `off` (garp_master_delay)."""
    refresh: DurationOrOff = written("1m", duration_or_off)
    """Time between further series while active, or `off` (garp_master_refresh; 60s in OpenShift, too)."""
    refresh_repeat: int = Field(default=1, ge=1, le=100)
    """Number per address in each further series (garp_master_refresh_repeat)."""
    reply: bool = Field(default=False)
    """Whether to send a gratuitous ARP reply after each request, which a few devices expect."""


class TrackSection(Section):
    """What to watch: one of http, tcp, script, process, interface, file, pool, program, exists."""

    http: Url | None = Field(default=None, examples=["https://localhost:6443/readyz"])
    """URL that must answer, http or https."""
    tcp: ServerAddress | None = Field(default=None, examples=["localhost:6443"])
    """Address or DNS name, and port, that must accept a connection."""
    script: Command | None = Field(default=None, examples=["/usr/local/bin/check-router --quick"])
    """Command that must exit with 0 (track_script): text, split as in a shell, or a list of words."""
    process: str | None = Field(default=None, min_length=1, max_length=255, examples=["kube-apiserver"])
    """Name of a process that must run (track_process)."""
    interface: InterfaceName | None = Field(default=None, examples=["ens224"])
    """Interface that must be up with carrier (track_interface); the virtual IP's own must always be."""
    file: FilePath | None = Field(default=None, examples=["/run/maintenance"])
    """File with a number (track_file), multiplied by the weight; without a weight, not 0 is fault."""
    pool: str | None = Field(default=None, examples=["masters"])
    """Pool of this configuration that must have a server up."""
    program: str | None = Field(default=None, examples=["proxy-api"])
    """Proxy of this appliance that must accept connections, proxy-api or proxy-ingress; or announce, which
    must serve all `shared_ips`: for virtual IPs to which routers send their packets."""
    exists: FilePath | None = Field(default=None, examples=["/var/run/keepalived/iptables-rule-exists"])
    """Path that must exist (`[ -e PATH ]` of a check script); with another kind, both must hold."""
    interval: Duration = written("1s", duration)
    """Time between checks."""
    timeout: Duration | None = Field(default=None, examples=["900ms"])
    """Time that a check may take, at most `interval`, the default: checks never overlap."""
    rise: int = Field(default=1, ge=1, le=1000)
    """Good checks in a row that bring the track up."""
    fall: int = Field(default=1, ge=1, le=1000)
    """Bad checks in a row that take the track down."""
    weight: int | None = Field(default=None, ge=-MOST_WEIGHT, le=MOST_WEIGHT, examples=[50])
    """Added to the priority: while up if positive, while down if negative. Without it, down is fault."""
    user: User | None = Field(default=None, examples=["nobody"])
    """User that a script runs as, by default the appliance's. Another one needs root."""
    verify: Verify = Field(default=None, json_schema_extra={"default": "none"})
    """File of CA certificates (https), or none to accept any certificate."""
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
    """Commands to run on transitions."""

    active: Command | None = Field(default=None, examples=["/usr/local/bin/tell active"])
    """Run on becoming active (notify_master)."""
    backup: Command | None = Field(default=None, examples=["/usr/local/bin/tell backup"])
    """Run on becoming backup (notify_backup)."""
    fault: Command | None = Field(default=None, examples=["/usr/local/bin/tell fault"])
    """Run on entering fault (notify_fault)."""
    stop: Command | None = Field(default=None, examples=["/usr/local/bin/tell stop"])
    """Run when the virtual IP stops (notify_stop)."""
    any: Command | None = Field(default=None, examples=[["/usr/local/bin/tell", "any"]])
    """Run on every transition with the arguments INSTANCE NAME STATE PRIORITY appended (notify)."""
    fifo: FilePath | None = Field(default=None, examples=["/run/keepalived/notify"])
    """FIFO for a line INSTANCE "NAME" STATE PRIORITY of each (notify_fifo); created if missing."""
    user: User | None = Field(default=None, examples=["nobody"])
    """User that the commands run as, by default the appliance's. Another one needs root."""
    timeout: Duration = written("30s", duration)
    """Time that a command may take before it is killed."""


class SpreadSection(Section):
    """Priorities that are computed, so that virtual IPs spread over all nodes, by one file for all."""

    nodes: NodeNames | None = Field(default=None, examples=[["lb-0", "lb-1", "lb-2"]])
    """2 to 16 nodes by host name or APPLIANCE_NODE; by default all of `nodes`."""
    first: Name | None = Field(default=None, examples=["lb-1"])
    """The node that serves as long as it is well; by default the nodes take turns."""


class VirtualIpSection(Section):
    """Addresses of one family on one interface that move together: RFC 9568's virtual router."""

    addresses: VirtualAddresses = Field(examples=[["10.0.0.200/24"]])
    """With prefix length, of one family, the same on all routers; `10.1.0.5/24 dev ens224` is on ens224."""
    excluded: VirtualAddresses = Field(default=(), examples=[["10.0.0.202/24"]])
    """Held with them and not advertised, of either family (virtual_ipaddress_excluded)."""
    interface: InterfaceName = Field(examples=["ens192"])
    """Interface that carries the addresses and the advertisements."""
    router_id: RouterId = Field(examples=["auto"])
    """1 to 255, the same on all routers (virtual_router_id); auto: OpenShift's, for `api` and `ingress`."""
    version: int | None = Field(default=None, ge=2, le=3, examples=[2])
    """Version of VRRP: by default 2 for IPv4, as in keepalived, and 3 for IPv6. 3 allows adverts below 1s."""
    priority: int = Field(default=100, ge=1, le=255, examples=[40])
    """The router with the highest becomes active, 1 to 254; 255 is for the owner of the addresses."""
    spread: SpreadSection | None = None
    """Instead of a priority: the virtual IPs of all nodes, and later those of a lost one, go to all nodes."""
    prefer: Name | None = Field(default=None, examples=["lb-0"])
    """Instead of a priority: the node that serves while it is well, as with `spread: { first: ... }`."""
    advert: AdvertTime = written("1s", advert)
    """Time between advertisements (advert_int): 1s to 255s in version 2, 10ms to 40.95s in version 3."""
    peers: RouterAddresses = Field(default=(), examples=[["10.0.0.34", "10.0.0.99"]])
    """The other routers, which get unicast advertisements (unicast_peer); with [], multicast. By default the
    other `nodes` if all have an address of this family, else multicast."""
    source: RouterAddress | None = Field(default=None, examples=["10.0.0.90"])
    """Source address (unicast_src_ip, mcast_src_ip): by default that in `nodes`, or the interface's first."""
    min_ttl: int = Field(default=1, ge=1, le=255)
    """Lowest TTL accepted from peers; 255 is the same segment (min_ttl). Multicast always needs 255."""
    auth: AuthSection | None = None
    """Authentication of advertisements. Without it, any host on the segment can forge them."""
    checksum: ChecksumForm = Field(default=Checksum.PSEUDO_HEADER)
    """Version 3 over IPv4 sends pseudo-header or message (RFC 9568; not for keepalived 2.2), accepts both."""
    preempt: bool = Field(default=True)
    """Whether to take over from an active router with a lower priority (nopreempt)."""
    preempt_delay: DurationOrOff = written("off", duration_or_off, example="30s")
    """Time to wait before preempting after a start or a fault (preempt_delay), or `off`."""
    down_timer_adverts: int = Field(default=3, ge=1, le=100)
    """Missing advertisements after which the active router counts as dead (down_timer_adverts)."""
    listen: DurationOrOff | None = Field(default=None, examples=["3s"])
    """Time to listen before the first claim; by default as long as it takes to detect a dead router."""
    hand_over: HandOverTime | None = Field(default=None, examples=["3s"])
    """Maximum wait for a successor on leaving, up to 1m; by default two adverts plus 1s, at most 30s."""
    on_conflict: ConflictPolicy = Field(default=OnConflict.WARN)
    """If others use the router id or an address differently: warn, wait for its end, or refuse to serve."""
    sync_group: Name | None = Field(default=None, examples=["api"])
    """Name of a group of virtual IPs that are all active on the same router (vrrp_sync_group)."""
    virtual_mac: bool = Field(default=False)
    """Use the RFC's MAC address (use_vmac), on a macvlan interface. VMware and many switches drop it."""
    label: Label | None = Field(default=None, examples=["ens192:vip"])
    """Label of the addresses in the kernel (IPv4), at most 15 characters."""
    announce: AnnounceSection = Field(default_factory=AnnounceSection)
    """Gratuitous ARP and neighbour advertisements, from which switches learn where the addresses are."""
    track: dict[Name, TrackSection] = Field(default_factory=dict)
    """Tracks by name: they change the priority, or put this router into fault."""
    notify: NotifySection = Field(default_factory=NotifySection)
    """Commands to run on transitions."""
    routes: VirtualRoutes = Field(
        default=(), examples=[[{"to": "default", "via": "10.0.0.1", "source": "10.0.0.200", "table": 1}]]
    )
    """Routes that are added and removed with the addresses (virtual_routes)."""
    rules: VirtualRules = Field(default=(), examples=[[{"from": "10.0.0.200", "table": 1, "priority": 100}]])
    """Rules that send packets to another routing table while active (virtual_rules)."""

    @property
    def spreading(self) -> SpreadSection | None:
        """How priorities are computed, by `spread` or `prefer`; None if they are given."""
        if self.prefer is not None and self.spread is None:
            return SpreadSection(first=self.prefer)
        return self.spread

    @property
    def families(self) -> tuple[Literal[4, 6], ...]:
        """IP versions of the advertised addresses, 4 and 6; a section without errors has one of them.

        Without addresses it is that of the first excluded one, else of the routers, and 4 where none are
        named.
        """
        routers = (*((self.source,) if self.source else ()), *self.peers, "")[:1]
        texts = self.addresses or self.excluded[:1] or routers
        return tuple(dict.fromkeys(_family(each) for each in texts))

    @property
    def elsewhere(self) -> tuple[tuple[str, str], ...]:
        """The addresses that are held beside the virtual router's own, each with its interface.

        They are on another interface than `interface`, or of the other family: excluded addresses may be.
        """
        parts = (each.partition(DEVICE) for each in (*self.addresses, *self.excluded))
        placed = ((address, device or self.interface) for address, _, device in parts)
        own = self.interface, self.families[0]
        return tuple(each for each in placed if (each[1], _family(each[0])) != own)

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


def _family(address: str) -> Literal[4, 6]:
    return 6 if ":" in address.partition(DEVICE)[0] else 4
