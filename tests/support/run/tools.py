"""Programs that tests need from the machine: which Debian package brings each, and what happens without.

A test says what it needs with the marker `needs("nginx", "curl")`, or `needs(root=True)`. Without it the
test is skipped with the reason, except where everything could have been installed: as root with CI=true a
missing tool is a failure, so that a broken set-up cannot pass for a green run.
"""

import os
import shutil
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Final

RSYSLOG_TLS: Final = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}/rsyslog/lmnsd_ossl.so"
"""What rsyslogd loads for TLS by OpenSSL."""

PACKAGES: Final = {
    RSYSLOG_TLS: "rsyslog-openssl",
    "ansible-playbook": "ansible-core",
    "cc": "gcc",  # compiles the data path
    "/usr/share/bash-completion/bash_completion": "bash-completion",
    "bird": "bird2",
    "catatonit": "catatonit",  # a pod is nothing else
    "chromium": "chromium",
    "conntrackd": "conntrackd",
    "curl": "curl",
    "debugfs": "e2fsprogs",
    "exabgp": "exabgp",
    "fish": "fish",
    "genisoimage": "genisoimage",
    "gobgpd": "gobgpd",
    "groff": "groff-base",
    "haproxy": "haproxy",
    "hatop": "hatop",
    "h2load": "nghttp2-client",
    "ip": "iproute2",
    "tc": "iproute2",
    "iptables-nft": "iptables",
    "keepalived": "keepalived",
    "kubectl": "kubernetes-client",
    "man": "man-db",
    "mandoc": "mandoc",
    "mariadbd": "mariadb-server-core",
    "mmdebstrap": "mmdebstrap",
    "nghttp": "nghttp2-client",
    "nft": "nftables",
    "nginx": "nginx-light",
    "/usr/lib/nginx/modules/ngx_stream_module.so": "libnginx-mod-stream",
    "openssl": "openssl",
    "/usr/lib/nagios/plugins/check_haproxy_stats": "monitoring-plugins-contrib",
    "/usr/share/OVMF/OVMF_CODE_4M.fd": "ovmf",
    "/usr/lib/python3/dist-packages/websockets": "python3-websockets",  # a real server and client
    "/usr/lib/podman/netavark": "netavark",  # which podman only recommends
    "podman": "podman",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "prometheus-haproxy-exporter": "prometheus-haproxy-exporter",
    "readelf": "binutils",
    "redis-server": "redis-server",
    "/usr/lib/postgresql/15/bin/postgres": "postgresql-15",
    "rsyslogd": "rsyslog",
    "runc": "runc",
    "setpriv": "util-linux",
    "slapd": "slapd",
    "smtpd": "opensmtpd",
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "strace": "strace",
    "systemd-nspawn": "systemd-container",
    "tcpdump": "tcpdump",
    "unshare": "util-linux",
    "vrrpd": "frr",
    "vtysh": "frr",
    "wrk": "wrk",
    "zebra": "frr",
    "zsh": "zsh",
}
"""Debian package of each tool."""

FOR_IMAGES: Final = frozenset(
    {
        *("mmdebstrap", "podman", "runc", "debugfs", "genisoimage", "qemu-img", "qemu-system-x86_64", "ssh"),
        *("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/lib/podman/netavark", "catatonit", "systemd-nspawn"),
        "ansible-playbook",
    }
)
"""Those that only the tests of the image need."""

_ADMIN_PATHS: Final = "/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/frr:/usr/libexec/podman"


def path(tool: str) -> str | None:
    """Return where the tool is; Debian puts daemons where a user's PATH does not look.

    A file that no program is, such as a firmware, is named by its path.
    """
    if tool.startswith("/"):
        return tool if Path(tool).exists() else None
    return shutil.which(tool) or shutil.which(tool, path=_ADMIN_PATHS)


def missing(tools: Iterable[str]) -> list[str]:
    """Return those of the tools that this machine does not have."""
    return [tool for tool in tools if path(tool) is None]


def is_root() -> bool:
    """Return whether this process may do everything."""
    return os.geteuid() == 0


def must_be_complete() -> bool:
    """Return whether a missing tool is a failure: root could have installed it, and CI wants all."""
    return os.environ.get("CI") == "true" and is_root()


def objection(tools: Iterable[str], *, root: bool) -> str | None:
    """Return why a test with these needs cannot run here, None when it can."""
    absent = missing(tools)
    if absent:
        packages = sorted({PACKAGES.get(tool, tool) for tool in absent})
        return f"needs {', '.join(absent)} (Debian: apt-get install {' '.join(packages)})"
    return "needs root" if root and not is_root() else None
