"""`appliance check --here` on machines of which the test knows what they lack."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.network.namespaces import INTERFACE, Node, Segment
from support.peers.cluster import cluster
from support.processes.waiting import wait_until
from support.values.snapshots import snapshot, virtual_router

from appliance.console.here.lingering import linger_lacks
from appliance.model.snapshot.linger import Linger
from appliance.model.snapshot.virtual_router import HmacKey
from appliance.net.nftables.nftables import Nftables, NftablesError

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

_POOL = 'pools: { p: { servers: { s: { address: "192.0.2.99:80" } } } }\n'
_VIP = """\
virtual_ips:
  api:
    addresses: [{addresses}]
    interface: {interface}
    router_id: 7
    {more}
"""


@pytest.fixture(scope="module")
def segment() -> Iterator[Segment]:
    """Give a segment that the tests of this module share."""
    with Segment() as made:
        yield made


@pytest.fixture(scope="module")
def node(segment: Segment) -> Node:
    """Give the machine on which the configuration is judged."""
    return segment.node("here")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the place of the configuration."""
    return tmp_path / "appliance.yaml"


class Found:
    """What the command has found."""

    def __init__(self, printed: str) -> None:
        values = json.loads(printed)
        self.errors = [(each["path"], each["message"]) for each in values["errors"]]
        self.warnings = [(each["path"], each["message"]) for each in values["warnings"]]
        self.lines = [each["line"] for each in values["errors"]]


def found(node: Node, file: Path, *before: str) -> Found:
    """Return what is found on a machine."""
    command = [sys.executable, "-m", "appliance.console", "check", "--here", "--json", str(file)]
    runtime = ["env", f"APPLIANCE_RUNTIME_DIR={file.parent}/run"]
    return Found(node.run([*runtime, *before, *command], check=False))


def frontend(bind: str, more: str = "") -> str:
    """Return a configuration with one frontend."""
    return f'api: {{ frontends: {{ k: {{ bind: ["{bind}"], pool: p{more} }} }} }}\n{_POOL}'


def vip(*addresses: str, interface: str = INTERFACE, more: str = "listen: 1s") -> str:
    """Return a configuration with one virtual IP."""
    quoted = ", ".join(f'"{each}"' for each in addresses)
    return _VIP.format(addresses=quoted, interface=interface, more=more)


def test_a_machine_that_has_everything(node: Node, file: Path):
    """A port that is free, an interface that is there, addresses that nobody has."""
    file.write_text(frontend("[::]:9445") + vip("192.0.2.200/24"))
    seen = found(node, file)
    assert (seen.errors, [each for each in seen.warnings if "in use" in each[1]]) == ([], [])


@pytest.mark.promise("docs/configuring.md", "`check --here` says what the machine lacks")
def test_a_port_that_somebody_has(node: Node, file: Path):
    """Who has it is told by name and number."""
    listener = [
        sys.executable,
        "-c",
        "import socket; s = socket.create_server(('', 9446)); print('up', flush=True); s.accept()",
    ]
    process = node.start(listener, output=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"up\n"
    file.write_text(frontend("[::]:9446"))
    ((path, message),) = found(node, file).errors
    assert path == "api.frontends.k.bind[0]"
    assert message.startswith("[::]:9446: address in use by python")
    assert f"(pid {process.pid})" in message
    process.kill()
    process.wait()


@pytest.mark.slow("looks at a machine once more")
def test_an_address_that_is_not_here(node: Node, file: Path):
    """It can be bound when the kernel is told so, or when it is a virtual IP."""
    file.write_text(frontend("192.0.2.123:9445"))
    ((_, message),) = found(node, file).errors
    assert "net.ipv4.ip_nonlocal_bind" in message
    file.write_text(frontend("192.0.2.123:9445") + vip("192.0.2.123/24"))
    assert found(node, file).errors == []
    node.run(["sysctl", "-qw", "net.ipv4.ip_nonlocal_bind=1"])
    file.write_text(frontend("192.0.2.123:9445"))
    assert found(node, file).errors == []
    node.run(["sysctl", "-qw", "net.ipv4.ip_nonlocal_bind=0"])


@pytest.mark.parametrize(
    "address",
    [
        "192.0.2.201/24",
        pytest.param("fd00::c9/64", marks=pytest.mark.slow("looks at a machine once more")),
    ],
)
def test_a_virtual_ip_that_somebody_has(segment: Segment, node: Node, file: Path, address: str):
    """His hardware address is told, as a warning: he may be the other router."""
    holder = segment.node(f"holder{len(address)}")
    holder.ip("address", "add", address, "dev", INTERFACE, *(["nodad"] if ":" in address else []))
    file.write_text(vip(address, more="version: 3"))
    seen = found(node, file)
    assert seen.errors == []
    (message,) = [each for path, each in seen.warnings if path == "virtual_ips.api.addresses"]
    assert message.startswith(f"{address.partition('/')[0]} is in use by {holder.mac} on {INTERFACE}")
    holder.ip("address", "delete", address, "dev", INTERFACE)
    assert [each for _, each in found(node, file).warnings if "in use" in each] == []


@pytest.mark.slow("looks at a machine once more")
def test_our_own_address_is_nobody_elses(node: Node, file: Path):
    """An address that this machine has is not asked for."""
    file.write_text(vip(f"{node.address}/24"))
    assert [each for _, each in found(node, file).warnings if "in use" in each] == []


@pytest.mark.needs("setpriv")
def test_a_user_without_rights(node: Node, file: Path):
    """What only this user lacks is a warning; a file that he may not read is an error."""
    file.parent.chmod(0o755)
    for folder in [*file.parents][1:-2]:
        folder.chmod(folder.stat().st_mode | 0o055)
    file.write_text(frontend("[::]:443") + vip("192.0.2.200/24"))
    file.chmod(0o644)
    seen = found(node, file, "setpriv", "--bounding-set=-all", "--inh-caps=-all")
    assert seen.errors == []
    paths = [path for path, _ in seen.warnings]
    assert {"api.frontends.k.bind[0]", "virtual_ips"} <= set(paths)
    text = str(seen.warnings)
    assert "CAP_NET_BIND_SERVICE" in text
    assert "CAP_NET_ADMIN and CAP_NET_RAW" in text


@pytest.mark.slow("looks at a machine once more")
def test_few_open_files(node: Node, file: Path):
    """The figure is told, and where the limit is raised."""
    file.write_text(frontend("[::]:9445", ", max_connections: 30000"))
    seen = found(node, file, "prlimit", "--nofile=1024:1024")
    assert [path for path, _ in seen.warnings] == ["api"]
    assert "LimitNOFILE=" in seen.warnings[0][1]


@pytest.mark.slow("looks at a machine once more")
def test_files_that_cannot_be_used(node: Node, file: Path):
    """Each with the key that names it, all at once."""
    there = file.parent
    (there / "empty").touch()
    hmac = f"{{ keys: {{ 1: 'file:{there}/no-key' }}, send: 1 }}"
    bad = f"{{ check: {{ type: https, verify: {there}/empty }}, servers: {{ s: {{ address: 'a:1' }} }} }}"
    file.write_text(
        "stats:\n"
        "  bind: localhost:29446\n"
        f"  auth: {{ user: a, password_file: {there}/empty }}\n"
        f"reload: {{ sockets: [{there}/none/r.sock] }}\n"
        f"log: {{ file: {there}/none/a.log }}\n"
        f"kubernetes: {{ kubeconfig: {there}/no-kubeconfig }}\n"
        "pools:\n"
        f"  p: {{ check: {{ type: https, verify: {there}/no-ca }}, servers: {{ discover: masters }} }}\n"
        "  q: { check: { type: https, verify: none }, servers: { s: { address: 'localhost:1' } } }\n"
        f"  r: {bad}\n" + vip("192.0.2.200/24", more=f"version: 3\n    auth: {{ hmac: {hmac} }}")
    )
    seen = dict(found(node, file).errors)
    assert seen.pop("pools.r.check.verify").startswith(f"CA file {there}/empty: ")
    assert seen == {
        "stats": f"the password file {there}/empty: it is empty",
        "reload.sockets[0]": f"there is no directory `{there}/none` here",
        "log.file": f"there is no directory `{there}/none` here",
        "kubernetes.kubeconfig": f"{there}/no-kubeconfig does not exist here",
        "pools.p.check.verify": f"CA file {there}/no-ca: No such file or directory",
        "virtual_ips.api.auth.hmac": f"the key file {there}/no-key: No such file or directory",
    }


@pytest.mark.slow("looks at a machine once more")
def test_what_runs_here_already_is_no_obstacle(tmp_path: Path):
    """The ports of the appliance that serves by this configuration are not in its way."""
    with cluster(workers=1) as made:
        done = made.appliance.command("check", "--here", "--json")
        assert json.loads(done.stdout)["errors"] == []
        other = tmp_path / "run"
        command = [sys.executable, "-m", "appliance.console", "check", "--here", "--json"]
        environment = {**os.environ, **made.appliance.environment, "APPLIANCE_RUNTIME_DIR": str(other)}
        again = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        ((path, message),) = [(each["path"], each["message"]) for each in json.loads(again.stdout)["errors"]]
        assert path == "api.frontends.kube-api.bind[0]"
        assert "address in use" in message


def test_nftables_is_looked_for_where_it_is_needed(node: Node, file: Path):
    """By a redirect: the kernel lists its tables, or the reason why it does not is told."""
    file.write_text(frontend("[::]:9445", ', redirect: { from: ["192.0.2.1:6443"] }'))
    assert found(node, file).errors == []
    code = (
        "import sys; from appliance.net.nftables import nftables as n; n.LIBRARY = 'lib-none.so.9'\n"
        "n.unusable.__kwdefaults__['library'] = n.LIBRARY\n"
        "from appliance.console.command import main; main(sys.argv[1:])"
    )
    printed = node.run([sys.executable, "-c", code, "check", "--here", "--json", str(file)], check=False)
    ((path, message),) = Found(printed).errors
    assert path == "api.frontends.k.redirect"
    assert message.startswith("nftables cannot be used here: lib-none.so.9")


@pytest.mark.slow("looks at a machine once more")
def test_sessions_that_cannot_move(node: Node, file: Path):
    """The certificate is missing, and the kernel does not know TCP_REPAIR: both are told."""
    sessions = f"{{ certificate: {file.parent}/nodes.pem }}"
    file.write_text(f'linger: {{ key: "{"ab" * 32}", sessions: {sessions} }}\n' + vip("192.0.2.200/24"))
    code = (
        "import sys; from appliance.migrate import tcp_repair; tcp_repair._REPAIR = 9999\n"
        "from appliance.console.command import main; main(sys.argv[1:])"
    )
    printed = node.run([sys.executable, "-c", code, "check", "--here", "--json", str(file)], check=False)
    assert Found(printed).errors == [
        ("linger.sessions", f"the certificate {file.parent}/nodes.pem: No such file or directory"),
        ("linger.sessions", "TCP_REPAIR: Protocol not available"),
    ]


@pytest.mark.slow("looks at a machine once more")
def test_connections_that_the_kernel_does_not_take_on(node: Node, file: Path):
    """`linger` needs conntrack to take a connection on in its middle, which is the kernel's default."""
    key, addresses = "ab" * 32, "192.0.2.200/24"
    file.write_text(
        f'linger: {{ key: "{key}" }}\n' + _VIP.format(addresses=addresses, interface=INTERFACE, more="")
    )
    assert found(node, file).errors == []
    loose = Path("/proc/sys/net/netfilter/nf_conntrack_tcp_loose")
    with node.inside():
        loose.write_text("0")
    ((path, message),) = found(node, file).errors
    with node.inside():
        loose.write_text("1")
    assert path == "linger"
    assert "nf_conntrack_tcp_loose = 1" in message


_FILLED = """\
for each in count max; do
    mount --bind "$1/nf_conntrack_$each" "/proc/sys/net/netfilter/nf_conntrack_$each" || exit 1
done
shift; exec "$@"
"""


@pytest.mark.parametrize("used", [79, 80])
def test_a_table_of_connections_that_fills(node: Node, file: Path, used: int):
    """Where packets are led or forwarded by it, the key says so; its limit is no namespace's own to lower."""
    (file.parent / "nf_conntrack_count").write_text(f"{used}\n")
    (file.parent / "nf_conntrack_max").write_text("100\n")
    file.write_text(
        frontend("192.0.2.200:9445", ", forward: kernel")
        + f'linger: {{ key: "{"ab" * 32}" }}\n'
        + vip("192.0.2.200/24", more="version: 3")
    )
    filled = ("unshare", "--mount", "sh", "-c", _FILLED, "sh", str(file.parent))
    told = [(path, why) for path, why in found(node, file, *filled).errors if "conntrack" in why]
    paths = ["linger", "api.frontends.k.forward"] if used >= 80 else []
    assert sorted(path for path, _ in told) == sorted(paths)
    assert all("80 of 100" in why and "nf_conntrack_max" in why for _, why in told)


@pytest.mark.slow("looks at a machine once more")
def test_peers_of_linger_behind_a_router(node: Node, file: Path):
    """Connections cannot be led to them, which the key says that names them; others are fine."""
    key, more = "ab" * 32, "peers: [192.0.2.2, 198.51.100.2]"
    file.write_text(
        f'linger: {{ key: "{key}" }}\n'
        + _VIP.format(addresses="192.0.2.200/24", interface=INTERFACE, more=more)
    )
    ((path, message),) = found(node, file).errors
    assert path == "virtual_ips.api.peers"
    assert message.startswith(f"198.51.100.2 is not on the segment of {INTERFACE}:")


@pytest.mark.slow("looks at a machine once more")
def test_peers_with_shared_addresses_behind_a_router(node: Node, file: Path):
    """The same of `linger.peers`, and of one without a route; others are fine."""
    node.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.9")
    file.write_text(
        f'linger: {{ key: "{"ab" * 32}", peers: [192.0.2.2, 198.51.100.2, 203.0.113.2] }}\n'
        "shared_ips: { all: { addresses: [198.18.0.1/32] } }\n"
        "bgp: { asn: 64512, engine: table }\n"
    )
    told = {path: message for path, message in found(node, file).errors if path.startswith("linger")}
    assert told["linger.peers[1]"].startswith("198.51.100.2 is behind a router, and ")
    assert told["linger.peers[2]"].startswith("203.0.113.2 has no route to it: ")
    assert set(told) == {"linger.peers[1]", "linger.peers[2]"}


@pytest.mark.slow("looks at a machine once more")
def test_a_vxlan_to_peers_behind_a_router(node: Node, file: Path):
    """A router between is no trouble then; another VXLAN with its port and too small an MTU are."""
    node.ip("route", "replace", "198.51.100.0/24", "via", "192.0.2.9")
    file.write_text(
        f'linger: {{ key: "{"ab" * 32}", peers: [198.51.100.2], vxlan: {{ mtu: 1500 }} }}\n'
        "shared_ips: { all: { addresses: [198.18.0.1/32] } }\n"
        "bgp: { asn: 64512, engine: table }\n"
    )

    def told() -> dict[str, str]:
        return {path: message for path, message in found(node, file).errors if path.startswith("linger")}

    assert told() == {}
    node.batch("link add other type vxlan id 7 dstport 29447")
    node.ip("link", "set", INTERFACE, "mtu", "1400")
    try:
        assert "of the VXLAN other of another program" in told()["linger.vxlan.port"]
        assert told()["linger.vxlan.mtu"].startswith(f"the MTU of {INTERFACE} is only 1400")
        node.ip("link", "set", INTERFACE, "mtu", "1340")
        assert told()["linger.vxlan"] == f"the MTU of {INTERFACE} is 1340, and 1350 is the least"
    finally:
        node.batch("link delete other", f"link set {INTERFACE} mtu 1500")


_ANNOUNCED = """\
linger: {{ key: "{key}", peers: [192.0.2.2] }}
shared_ips:
  all:
    addresses: [198.18.0.1/32, 192.0.2.201/32]
    track: {{ ready: {{ script: /lb/none/ready }} }}
bgp:
  engine: bird
  asn: 64512
  neighbors:
    near: {{ address: 192.0.2.9, asn: 64600, password: "file:/lb/none/password" }}
    far: {{ address: 198.19.0.1, asn: 64600 }}
    hops: {{ address: 198.19.0.2, asn: 64600, multihop: 2 }}
    nowhere: {{ address: 203.0.113.9, asn: 64600 }}
    local: {{ address: "fe80::9%eth0", asn: 64600 }}
"""


@pytest.mark.needs("bird")
def test_what_bgp_lacks(node: Node, file: Path):
    """An address of this segment, a script, a password, ways to neighbours; a table and a port of others."""
    node.ip("route", "replace", "198.19.0.0/24", "via", "192.0.2.9")
    node.ip("route", "replace", "198.20.0.0/24", "dev", "lo", "table", "199")
    node.ip("route", "replace", "198.20.0.1/32", "dev", "lo", "table", "198", "proto", "248")
    file.write_text(_ANNOUNCED.format(key="ab" * 32))
    listener = [sys.executable, "-m", "http.server", "179"]
    other = node.start(listener)
    wait_until(lambda: ":179" in node.run(["ss", "-tln"]), what="another program has the port")
    told = dict(found(node, file).errors)
    other.kill()
    other.wait()
    assert told.pop("bgp.engine").endswith("with `engine: table` that daemon announces")
    assert "/lb/none/ready" in told.pop("shared_ips.all.track.ready.script")
    assert {path: message.split(",")[0] for path, message in told.items()} == {
        "shared_ips.all.addresses[1]": "is in the network 192.0.2.0/24 of this machine",
        "bgp.tables.drain": "table 199 has routes of another program: choose one that is not used",
        "bgp.neighbors.near.password": "/lb/none/password does not exist here",
        "bgp.neighbors.far.address": "198.19.0.1 is behind a router: set `multihop`",
        "bgp.neighbors.nowhere.address": "there is no route to 203.0.113.9",
    }
    assert "bgp.engine" not in dict(found(node, file).errors)


def test_a_kernel_that_leads_no_packets():
    """Its own words are told, and which module it wants."""

    class Refusing(Nftables):
        def try_script(self, script: str) -> None:
            assert "dup to ip daddr" in script
            raise NftablesError("Could not process rule: No such file or directory")

    given = snapshot(groups=[], pools=[], virtual_routers=[virtual_router(interface="lb-none0")])
    lingers = replace(given, linger=Linger(longest=60.0, port=29446, keys=(HmacKey(id=1, secret="ab" * 32),)))
    assert list(linger_lacks(given, connect=Refusing)) == []
    (finding,) = linger_lacks(lingers, connect=Refusing)
    assert finding.path == ("linger",)
    assert "No such file or directory: is its module nft_dup_ipv4 there" in finding.message


_HERE = """\
virtual_ips:
  api:
    addresses: [192.0.2.1/24]
    interface: lb-none0
    router_id: 1
    track: { uplink: { interface: lb-none1 }, quick: { script: /lb/none/check --quick } }
    notify: { active: /lb/none/told }
"""


@pytest.mark.slow("looks at a machine once more")
def test_interfaces_and_commands(node: Node, file: Path):
    """They are another machine's business, unless `--here` says that it is this one."""
    file.write_text(_HERE)
    seen = found(node, file)
    assert [(path, line) for (path, _), line in zip(seen.errors, seen.lines, strict=True)] == [
        ("virtual_ips.api.interface", 4),
        ("virtual_ips.api.track.uplink.interface", 6),
        ("virtual_ips.api.track.quick.script", 6),
        ("virtual_ips.api.notify.active", 7),
    ]


def test_errors_of_the_file_come_before_those_of_the_machine(node: Node, file: Path):
    """A file that cannot be obeyed anywhere is not compared with this machine."""
    file.write_text(_HERE + "    nonsense: 1\n")
    assert [path for path, _ in found(node, file).errors] == ["virtual_ips.api.nonsense"]


def test_a_place_in_a_foreign_file(node: Node, tmp_path: Path):
    """An interface that is not here is told where keepalived.conf names it."""
    keepalived = tmp_path / "keepalived.conf"
    keepalived.write_text(
        "vrrp_instance api {\n  interface nowhere0\n  virtual_router_id 51\n"
        "  virtual_ipaddress { 192.0.2.200/24 }\n}\n"
    )
    command = [sys.executable, "-m", "appliance.console", "check", "--keepalived", str(keepalived), "--here"]
    environment = ["env", f"APPLIANCE_CONFIG={tmp_path}/none.yaml"]
    printed = node.run([*environment, *command], check=False)
    assert f"{keepalived}:2:" in printed
    assert "nowhere0" in printed
