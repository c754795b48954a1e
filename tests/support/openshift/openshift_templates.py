"""What OpenShift's static pods of each release from 4.6 to 5.2 give to HAProxy and keepalived.

`monitor` and `dynkeepalived` render templates that differ between releases in few settings; these settings
are the table below, and the texts are ours. Where the release of a change is not known for sure, it stands
with the nearest one: no combination that existed is left out by that, as each value occurs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

MASTERS: Final = ("192.0.2.11", "192.0.2.12", "192.0.2.13")
NAME: Final = "prod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What is special to the templates of one release.

    `ready_port` answers /haproxy_ready, `stats_port` the statistics; `monitor` is whether 9454 answers by the
    number of servers. `silence` is the timeout of clients and servers, `tunnel` the one of open sessions.
    `unicast` is whether keepalived talks to listed peers; `scripts` that its checks are files of their own;
    `families` that instances are numbered, one for each family; `config_server` that there is a check of the
    machine config server.
    """

    name: str
    maxconn: int = 20000
    expose_fd: bool = True
    ready_port: int = 9444
    stats_port: int = 29445
    levels: str = " notice alert"
    log_health: bool = False
    log_format: bool = True
    silence: str = "86400s"
    tunnel: str = "86400s"
    fin: bool = False
    monitor: bool = False
    check_timeout: bool = False
    server: str = "weight 1 verify none check check-ssl inter 5s fall 3 rise 1"
    unicast: bool = True
    scripts: bool = True
    families: bool = True
    config_server: bool = True


_OLD: Final = Release(
    name="4.6",
    expose_fd=False,
    ready_port=50936,
    stats_port=50000,
    levels="",
    log_health=True,
    log_format=False,
    server="weight 1 verify none check check-ssl inter 1s fall 2 rise 3",
    unicast=False,
    scripts=False,
    families=False,
    config_server=False,
)
_FROM_4_9: Final = replace(_OLD, expose_fd=True, unicast=True, scripts=True)
_FROM_4_11: Final = replace(_FROM_4_9, ready_port=9444, stats_port=29445)
_FROM_4_12: Final = replace(_FROM_4_11, families=True, log_format=True, levels=" notice alert")
_FROM_4_15: Final = replace(_FROM_4_12, config_server=True, maxconn=40000, log_health=False)
_FROM_4_18: Final = replace(_FROM_4_15, check_timeout=True, server=Release(name="").server)
_FROM_4_19: Final = replace(_FROM_4_18, fin=True, monitor=True)
_FROM_4_22: Final = replace(_FROM_4_19, silence="1m", tunnel="5m")
_NEWEST: Final = replace(
    _FROM_4_22,
    server="weight 256 verify none check check-ssl inter 5s fastinter 2s fall 2 rise 3 slowstart 60s"
    " on-marked-down shutdown-sessions",
)

_STARTS: Final = {
    "4.6": _OLD,
    "4.9": _FROM_4_9,
    "4.11": _FROM_4_11,
    "4.12": _FROM_4_12,
    "4.15": _FROM_4_15,
    "4.18": _FROM_4_18,
    "4.19": _FROM_4_19,
    "4.22": _FROM_4_22,
    "5.2": _NEWEST,
}


def _releases() -> dict[str, Release]:
    found: dict[str, Release] = {}
    current = _OLD
    for name in (*(f"4.{minor}" for minor in range(6, 23)), "5.0", "5.1", "5.2"):
        current = replace(_STARTS.get(name, current), name=name)
        found[name] = current
    return found


RELEASES: Final = _releases()


def haproxy_cfg(release: Release, masters: Sequence[str] = MASTERS) -> str:
    """Return what `monitor` renders for these masters; with none of them there is no frontend."""
    fd = " expose-fd listeners" if release.expose_fd else ""
    lines = [
        "global",
        f"  stats socket /var/lib/haproxy/run/haproxy.sock  mode 600 level admin{fd}",
        "defaults",
        f"  maxconn {release.maxconn}",
        "  mode    tcp",
        f"  log     /var/run/haproxy/haproxy-log.sock local0{release.levels}",
        *(
            ['  log-format "%ci:%cp -> %fi:%fp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts"']
            if release.log_format
            else []
        ),
        "  option  dontlognull",
        "  retries 3",
        "  timeout http-request 30s",
        "  timeout queue        1m",
        "  timeout connect      10s",
        f"  timeout client       {release.silence}",
        f"  timeout server       {release.silence}",
        f"  timeout tunnel       {release.tunnel}",
        *(["  timeout client-fin   1s", "  timeout server-fin   1s"] if release.fin else []),
        *(_listeners(release) if masters else []),
        "listen stats",
        f"  bind localhost:{release.stats_port}",
        "  mode http",
        "  stats enable",
        "  stats hide-version",
        "  stats uri /haproxy_stats",
        "  stats refresh 30s",
        "  stats auth Username:Password",
        "backend masters",
        *(["   timeout check 10s"] if release.check_timeout else []),
        "   option  httpchk GET /readyz HTTP/1.0",
        *(["   option  log-health-checks"] if release.log_health else []),
        "   balance roundrobin",
        *(f"   server master-{at} {each}:6443 {release.server}" for at, each in enumerate(masters)),
    ]
    return "".join(f"{line}\n" for line in lines)


def _listeners(release: Release) -> list[str]:
    monitor = [
        "listen monitor_check_http_url",
        "  bind :::9454 v4v6",
        "  mode http",
        "  monitor-uri /haproxy_monitor",
        "  monitor fail if { nbsrv(masters) lt 1 }",
        "  option dontlognull",
    ]
    return [
        "frontend  main",
        "  bind :::9445 v4v6",
        "  default_backend masters",
        "listen health_check_http_url",
        f"  bind :::{release.ready_port} v4v6",
        "  mode http",
        "  monitor-uri /haproxy_ready",
        "  option dontlognull",
        *(monitor if release.monitor else []),
    ]


def keepalived_conf(release: Release, *, own: str = MASTERS[0], peers: Sequence[str] = MASTERS) -> str:
    """Return what `dynkeepalived` renders on the node with the address `own`."""
    number = "_0" if release.families else ""
    settings = ["    max_auto_priority -1", "    vrrp_garp_master_refresh 60"] if release.scripts else []
    tracks = ["chk_ocp_lb", "chk_ocp_both", *(["chk_mcs"] if release.config_server else [])]
    others = [each for each in peers if each != own]
    api = _instance(
        release, f"{NAME}_API{number}", 40, 117, "api_vip", "192.0.2.5", tracks, own=own, others=others
    )
    ingress_tracks = ["chk_ingress", "chk_ingress_ready", "chk_default_ingress"]
    if not release.families:
        ingress_tracks = ["chk_ingress"]
    ingress = _instance(
        release,
        f"{NAME}_INGRESS{number}",
        20,
        93,
        "ingress_vip",
        "192.0.2.7",
        ingress_tracks,
        own=own,
        others=others,
    )
    start = ["global_defs {", "    enable_script_security", "    script_user root", *settings, "}", ""]
    return "".join(f"{line}\n" for line in [*start, *_scripts(release), *api, "", *ingress])


def _scripts(release: Release) -> list[str]:
    curl = "/usr/bin/timeout 1.9 /usr/bin/curl -o /dev/null"
    balanced = f"{curl} -kLfs https://localhost:9445/readyz"
    local = f"{curl} -kLfs https://localhost:6443/readyz"
    lb, both = balanced, f"{balanced} || {local}"
    if release.scripts:
        lb = "/usr/bin/timeout 1.9 /etc/keepalived/chk_ocp_script.sh"
        both = "/usr/bin/timeout 1.9 /etc/keepalived/chk_ocp_script_both.sh"
    router = "/usr/bin/timeout 0.9 /usr/bin/curl -o /dev/null -Lfs http://localhost:1936/healthz"
    found = [
        *_script("chk_ocp_lb", lb, interval=2, weight=20, rise=3, fall=3),
        *_script("chk_ocp_both", both, interval=2, weight=5, rise=3, fall=3),
    ]
    if release.config_server:
        server = "/usr/bin/timeout 2.9 /etc/keepalived/chk_mcs.sh"
        found += _script("chk_mcs", server, interval=3, weight=3, rise=3, fall=2)
    if not release.families:
        return [*found, *_script("chk_ingress", f"{router}/ready", interval=1, weight=50)]
    default = "/usr/bin/timeout 4.9 /etc/keepalived/chk_default_ingress.sh"
    return [
        *found,
        *_script("chk_ingress", router, interval=1, rise=3, fall=2),
        *_script("chk_ingress_ready", f"{router}/ready", interval=1, weight=10, rise=3, fall=2),
        *_script("chk_default_ingress", default, interval=5, weight=50, rise=3, fall=2),
    ]


def _script(name: str, command: str, **settings: int) -> list[str]:
    lines = [f'    script "{command}"', *(f"    {key} {value}" for key, value in settings.items())]
    return [f"vrrp_script {name} {{", *lines, "}", ""]


def _instance(
    release: Release,
    name: str,
    priority: int,
    router_id: int,
    password: str,
    address: str,
    tracks: Sequence[str],
    *,
    own: str,
    others: Sequence[str],
) -> list[str]:
    unicast = [
        f"    unicast_src_ip {own}",
        "    unicast_peer {",
        *(f"        {each}" for each in others),
        "    }",
    ]
    label = " label vip" if release.families else ""
    return [
        f"vrrp_instance {name} {{",
        "    state BACKUP",
        "    interface br-ex",
        f"    virtual_router_id {router_id}",
        f"    priority {priority}",
        "    advert_int 1",
        *(unicast if release.unicast else []),
        "    authentication {",
        "        auth_type PASS",
        f"        auth_pass {NAME}_{password}",
        "    }",
        "    virtual_ipaddress {",
        f"        {address}/32{label}",
        "    }",
        "    track_script {",
        *(f"        {each}" for each in tracks),
        "    }",
        "}",
    ]
