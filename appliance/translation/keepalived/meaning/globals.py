"""`global_defs`: settings for all instances, and settings without a meaning here."""

from dataclasses import dataclass, field
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.directive_handling import (
    Fixed,
    Table,
    Understood,
    apply,
    changed,
    ignored,
    refused,
)
from appliance.translation.keepalived.meaning.values import DirectiveError, address, only
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

DEFAULTS: Final = {
    "vrrp_min_garp": "vrrp_min_garp",
    "vrrp_garp_master_delay": "garp_master_delay",
    "vrrp_garp_master_repeat": "garp_master_repeat",
    "vrrp_garp_master_refresh": "garp_master_refresh",
    "vrrp_garp_master_refresh_repeat": "garp_master_refresh_repeat",
    "vrrp_down_timer_adverts": "down_timer_adverts",
    "vrrp_strict": "strict_mode",
    "vrrp_version": "vrrp_version",
    "vrrp_startup_delay": "vrrp_startup_delay",
}
"""Keywords of `global_defs` that apply to each instance, with the instance's own keyword; in this order."""


GROUPS: Final = {"vrrp_mcast_group4": 4, "vrrp_mcast_group6": 6}
"""Keywords of multicast groups, with the IP version."""

RFC_GROUPS: Final = ("224.0.0.18", "ff02::12")


@dataclass(slots=True, kw_only=True)
class Globals:
    """The content of `global_defs`: defaults of instances by their own keyword, and the user of scripts."""

    ledger: Ledger
    defaults: dict[str, Directive] = field(default_factory=dict)
    script_user: Word | None = None
    default_interface: Word | None = None
    fifo: Word | None = None
    groups: dict[str, Word] = field(default_factory=dict)
    """Multicast groups other than the RFCs', by keyword."""


def global_defs(found: Globals, given: Directive) -> None:
    """Take one block `global_defs`."""
    for each in given.within:
        apply(_GLOBAL, found, each, found.ledger)


def _default(found: Globals, given: Directive) -> None:
    found.defaults[DEFAULTS[given.keyword]] = given


def _script_user(found: Globals, given: Directive) -> None:
    found.script_user = given.values[0] if given.values else only(given)
    for group in given.values[1:2]:
        found.ledger.change(group.place, "the group is the user's own: no other can be set")


def _fifo(found: Globals, given: Directive) -> None:
    if not given.values:
        raise DirectiveError(f"`{given.keyword}` needs a path", given.place)
    word = given.values[0]
    if found.fifo is not None and found.fifo.text != word.text:
        raise DirectiveError(f"all instances share one FIFO, {shown(found.fifo.text)}", word.place)
    found.fifo = word
    for each in given.values[1:]:
        found.ledger.ignore(each.place, "the FIFO belongs to the user that the appliance runs as")


def _group(found: Globals, given: Directive) -> None:
    word = only(given)
    if str(address(word)) not in RFC_GROUPS:
        found.groups[given.keyword] = word


def _default_interface(found: Globals, given: Directive) -> None:
    found.default_interface = only(given)


_MAIL: Final = ignored("no email is sent: the log shows every transition, and `notify` runs a command")
_SNMP: Final = ignored(
    "there is no SNMP and no D-Bus: `appliance status --json` and the metrics show the states"
)
_PROCESSES: Final = ignored(
    "the program vrrp takes real-time priority and locked memory itself, if permitted"
)
_LVS: Final = ignored("is about IPVS, which is not used")
_FIREWALL: Final = ignored("no firewall rules are needed: addresses that are held accept connections")
_NETLINK: Final = ignored("buffers of keepalived's own sockets")
_FILES: Final = ignored("is about keepalived's own files")
_FIFO_SCRIPT: Final = refused(
    "no reader is started: have a systemd unit start it, with the path of the FIFO as its last argument"
)
_LOWER: Final = ignored("a lower advert is answered at once, and the addresses are announced again")
_PACE: Final = ignored("announcements are few: 5 for each address, and as many after the delay")

_GLOBAL: Final[Table[Globals]] = {
    **{keyword: Understood(act=_default) for keyword in DEFAULTS},
    "script_user": Understood(act=_script_user),
    "default_interface": Understood(act=_default_interface),
    "enable_script_security": changed(
        "commands run as the configured user, and `check --here` inspects them"
    ),
    "script_security": changed("commands run as the configured user, and `check --here` inspects them"),
    "router_id": ignored("is a name for email and logs: the log has the host's name"),
    "lvs_id": ignored("is a name for email and logs: the log has the host's name"),
    **{keyword: Understood(act=_group) for keyword in GROUPS},
    "vrrp_iptables": _FIREWALL,
    "vrrp_ipsets": _FIREWALL,
    "nftables": _FIREWALL,
    "nftables_priority": _FIREWALL,
    "nftables_counters": _FIREWALL,
    "nftables_ifindex": _FIREWALL,
    "disable_local_igmp": _FIREWALL,
    "vrrp_check_unicast_src": ignored("adverts of routers that are not peers are always dropped"),
    "vrrp_skip_check_adv_addr": ignored(
        "an advert that shares an address is accepted, and a difference is reported"
    ),
    "vrrp_lower_prio_no_advert": _LOWER,
    "vrrp_higher_prio_send_advert": ignored("the router that remains active announces the addresses again"),
    "vrrp_garp_lower_prio_delay": _LOWER,
    "vrrp_garp_lower_prio_repeat": _LOWER,
    "vrrp_garp_interval": _PACE,
    "vrrp_gna_interval": _PACE,
    "vrrp_garp_extra_if": ignored("all addresses of a virtual IP are on its interface, and announced there"),
    "vrrp_notify_priority_changes": ignored("`appliance status` and the log show the priority"),
    "dynamic_interfaces": ignored("an interface may always appear later: until then it is a fault"),
    "log_unknown_vrids": ignored("`appliance vip status` shows other routers with the same router id"),
    "vmac_prefix": ignored("the appliance names the interfaces of virtual MACs itself"),
    "vmac_addr_prefix": ignored("the appliance names the interfaces of virtual MACs itself"),
    "linkbeat_use_polling": ignored("the kernel reports links that change"),
    "max_auto_priority": _PROCESSES,
    "min_auto_priority_delay": _PROCESSES,
    "fifo_write_vrrp_states_on_reload": ignored("a reload that changes no state writes nothing"),
    "vrrp_notify_fifo": Understood(act=_fifo),
    "vrrp_notify_fifo_script": _FIFO_SCRIPT,
    "notify_fifo": Understood(act=_fifo),
    "notify_fifo_script": _FIFO_SCRIPT,
    "startup_script": refused("no command is run at the start: have systemd, or the pod, run it before"),
    "shutdown_script": refused("no command is run at the end: have systemd, or the pod, run it afterwards"),
    "startup_script_timeout": ignored("belongs to `startup_script`"),
    "shutdown_script_timeout": ignored("belongs to `shutdown_script`"),
    "net_namespace": refused("run the appliance in the namespace, with ip-netns(8) or a container"),
    "child_wait_time": _PROCESSES,
    "random_seed": ignored("`_RANDOM` is refused"),
    "include_check": ignored("a file that cannot be read is always refused"),
    "reload_check_config": ignored("always on: a file with an error changes nothing"),
    "reload_repeat": _FILES,
    "reload_time_file": refused("a reload runs only on request: have a systemd timer request it"),
    "reload_file": _FILES,
    "umask": _FILES,
    "process_names": _PROCESSES,
    "checker_log_all_failures": _LVS,
    "rs_init_notifies": _LVS,
    **dict.fromkeys(
        (
            *("notification_email", "notification_email_from", "smtp_server", "smtp_helo_name"),
            *("smtp_connect_timeout", "smtp_alert", "smtp_alert_vrrp", "smtp_alert_checker"),
            *("no_email_faults", "no_checker_emails", "email_faults"),
        ),
        _MAIL,
    ),
    **dict.fromkeys(
        (
            *("snmp_socket", "enable_traps", "enable_snmp_keepalived", "enable_snmp_vrrp"),
            *("enable_snmp_checker", "enable_snmp_rfc", "enable_snmp_rfcv2", "enable_snmp_rfcv3"),
            *("snmp_vs_stats_update_interval", "snmp_rs_stats_update_interval"),
            *("enable_dbus", "dbus_service_name", "dbus_no_interface_name"),
        ),
        _SNMP,
    ),
    **{
        f"{program}_{what}": _PROCESSES
        for program in ("vrrp", "checker", "bfd")
        for what in (
            *("priority", "no_swap", "rt_priority", "rlimit_rttime", "rlimit_rtime", "cpu_affinity"),
            "process_name",
        )
    },
    "process_name": _PROCESSES,
    "lvs_process_name": _PROCESSES,
    **dict.fromkeys(
        (
            *("lvs_sync_daemon", "lvs_timeouts", "lvs_flush", "lvs_flush_on_stop", "lvs_flush_onstop"),
            *("lvs_notify_fifo", "lvs_notify_fifo_script", "net_namespace_ipvs", "nftables_ipvs"),
            *("nftables_ipvs_priority", "nftables_ipvs_start_fwmark", "namespace_with_ipsets"),
        ),
        _LVS,
    ),
    **{
        f"{program}_netlink_{socket}_rcv_bufs{force}": _NETLINK
        for program in ("vrrp", "lvs")
        for socket in ("cmd", "monitor")
        for force in ("", "_force")
    },
    "process_monitor_rcv_bufs": _NETLINK,
    "process_monitor_rcv_bufs_force": _NETLINK,
    "vrrp_rx_bufs_policy": _NETLINK,
    "vrrp_rx_bufs_multiplier": _NETLINK,
    **dict.fromkeys(
        ("tmp_config_directory", "config_save_dir", "instance", "use_pid_dir", "data_use_instance"), _FILES
    ),
}

TOP: Final = {
    keyword: rule
    for keyword, rule in _GLOBAL.items()
    if keyword in ("net_namespace", "net_namespace_ipvs", "namespace_with_ipsets", "instance", "use_pid_dir")
    or keyword in ("child_wait_time", "linkbeat_use_polling")
    if isinstance(rule, Fixed)
}
"""Keywords that are valid outside of `global_defs`, too."""

MISPLACED: Final = dict.fromkeys(
    ("enable_script_security", "script_user", "router_id"),
    changed("belongs in `global_defs`: keepalived ignores it here"),
)
"""Keywords that people write outside of `global_defs` by mistake."""
