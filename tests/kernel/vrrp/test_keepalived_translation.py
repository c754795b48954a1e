"""A keepalived.conf obeyed by Debian's keepalived and by us: what each understands, and who is active."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from support.network.namespaces import INTERFACE, Node
from support.openshift.openshift_templates import RELEASES, keepalived_conf
from support.translation.keepalived_files import translated
from support.vrrp.keepalived import Keepalived
from support.vrrp.keepalived_dump import Understood, understood
from support.vrrp.vrrp_field import Field
from support.vrrp.vrrp_node import VrrpNode

from appliance.model.document.document import read
from appliance.model.snapshot.virtual_router import Track, TrackKind, VirtualRouter
from appliance.translation.combined_files import load_together

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "keepalived", root=True)]

CORPUS: Final = Path(__file__).parents[2] / "translation" / "corpus" / "keepalived"

PROXY: Final = """\
api: { frontends: { kube-api: { bind: ["[::]:9445"], pool: masters } } }
pools: { masters: { servers: { master-0: { address: "192.0.2.9:6443" } } } }
"""

EVERY_KEY: Final = """\
global_defs {
    script_user root
    enable_script_security
    vrrp_garp_master_refresh 60
    vrrp_garp_master_delay 3
}
$NUMBER=52
vrrp_script look {
    script '/usr/bin/test -e "/tmp/no such file"'  # a comment
    interval 3
    timeout 2
    rise 2
    fall 4
    weight -20
}
vrrp_script fatal {
    script "/usr/bin/test -d /tmp"
}
vrrp_instance rounded {
    state MASTER
    priority 140
    interface eth0
    virtual_router_id 51
    advert_int 1.5
    nopreempt
    garp_master_repeat 2
    authentication {
        auth_type PASS
        auth_pass "twelve-bytes"
    }
    virtual_ipaddress { 192.0.2.50/24 dev eth0 label eth0:vip
        192.0.2.51
    }
    track_script {
        look weight 7
        fatal
    }
    notify_backup "/usr/bin/test 'b c'" root
}
vrrp_instance unicast
{
    interface eth0
    virtual_router_id ${NUMBER}
    @lb1 priority 99
    @lb2 priority 98
    version 3
    advert_int 0.25
    nopreempt
    down_timer_adverts 4
    garp_master_delay 0
    unicast_src_ip 192.0.2.1
    unicast_peer { 192.0.2.7 min_ttl 255 }
    virtual_ipaddress { 192.0.2.52/24 }
    virtual_ipaddress_excluded { 192.0.2.53/32 }
    track_interface { lo weight 5 }
}
vrrp_instance six {
    interface eth0
    virtual_router_id $NUMBER
    virtual_ipaddress { fd00::52/64 }
}
"""


def routers(text: str) -> tuple[VirtualRouter, ...]:
    """Return the virtual routers that we make of a text, on the host lb1."""
    translation = translated(text, hostname="lb1", programs=("proxy-api",))
    loaded = load_together(read(PROXY), [translation], source="appliance.yaml", number=1)
    assert loaded.snapshot is not None, loaded.errors
    return loaded.snapshot.virtual_routers


def ours(router: VirtualRouter) -> dict[str, str | list[str]]:
    """Return what keepalived's dump says of an instance, as our virtual router has it."""
    peers = [
        f"{each} min_ttl {router.min_ttl if router.min_ttl > 1 else 0} max_ttl 255" for each in router.peers
    ]
    # keepalived leaves out commands that this machine does not have.
    tracks = [
        f"{each.name} weight {each.weight or 0}"
        for each in router.track
        if each.kind is not TrackKind.SCRIPT or Path(each.target).exists()
    ]
    backup = router.notify.backup if Path(*router.notify.backup[:1]).is_file() else ()
    return {
        "VRRP Version": str(router.version),
        "Interface": router.interface,
        "Virtual Router ID": str(router.router_id),
        "Priority": str(router.priority),
        "Advert interval": f"{router.advert:g}",
        "Preempt": "enabled" if router.preempt else "disabled",
        "Password": router.password or "",
        "Gratuitous ARP delay": f"{router.announce.delay:g}",
        "Gratuitous ARP repeat": str(router.announce.repeat),
        "Down timer adverts": str(router.down_timer_adverts),
        "Virtual IP": [_bare(each) for each in router.advertised],
        "Virtual IP Excluded": [_bare(each) for each in router.excluded],
        "Unicast Peer": peers,
        "Tracks": sorted(tracks),
        "Backup": " ".join(f"'{each}'" for each in backup),
    }


def theirs(told: Understood) -> dict[str, str | list[str]]:
    """Return the same of keepalived's dump."""
    values, lists = told.values, told.lists
    interval = values["Advert interval"].split()
    seconds = float(interval[0]) / (1000 if interval[1] == "milli-sec" else 1)
    tracks = [*lists["Tracked scripts"], *lists["Tracked interfaces"], *lists["Tracked processes"]]
    tracks += lists["Tracked files"]
    return {
        **{
            key: values.get(key, "")
            for key in ("VRRP Version", "Virtual Router ID", "Priority", "Preempt", "Password")
        },
        "Interface": re.sub(r".*, vmac on ([^,]+),.*", r"\1", values["Interface"]),
        "Advert interval": f"{seconds:g}",
        "Gratuitous ARP delay": values["Gratuitous ARP delay"],
        "Gratuitous ARP repeat": values["Gratuitous ARP repeat"],
        "Down timer adverts": values["Down timer adverts"],
        "Virtual IP": [each.split()[0] for each in lists["Virtual IP"]],
        "Virtual IP Excluded": [each.split()[0] for each in lists["Virtual IP Excluded"]],
        "Unicast Peer": lists["Unicast Peer"],
        "Tracks": sorted(each.replace(",", "") for each in tracks),
        "Backup": values.get("Backup state transition script", "").partition(", uid")[0],
    }


def _bare(address: str) -> str:
    """Leave out the prefix length of a host, as the dump does."""
    return address.removesuffix("/128" if ":" in address else "/32")


@pytest.mark.slow("real timers of several routers")
def test_every_key(ground: Field):
    """Every value that keepalived's dump tells of an instance or a script is ours, too."""
    (told,) = understood(ground.one, EVERY_KEY)
    made = {router.name: router for router in routers(EVERY_KEY)}
    assert {name for kind, name in told if kind == "Instance"} == set(made)
    for name, router in made.items():
        assert ours(router) == theirs(told["Instance", name])
    _same_scripts(told, made["rounded"].track)


def _same_scripts(told: Mapping[tuple[str, str], Understood], tracks: tuple[Track, ...]) -> None:
    scripts = [each for each in tracks if each.kind is TrackKind.SCRIPT]
    assert scripts
    for each in scripts:
        values = told["Script", each.name].values
        words = (each.target, *each.arguments)
        assert values["Command"] == " ".join(f"'{word}'" for word in words)
        assert values["Interval"] == f"{each.interval:g} sec"
        assert values["Timeout"] in (f"{each.timeout:g} sec", "0 sec")  # 0 is the interval
        assert (values["Rise"], values["Fall"]) == (str(each.rise), str(each.fall))


def _files() -> dict[str, str]:
    """Return the files of the corpus that are obeyed to the last line, and OpenShift's of each release."""
    # keepalived leaves out its checks, whose files are not on this machine; we take them at their names.
    absent = {"own-haproxy-checks"}
    files = (path for path in sorted(CORPUS.glob("*.conf")) if path.stem not in absent)
    corpus = {path.stem: path.read_text() for path in files}
    whole = {name: text for name, text in corpus.items() if not translated(text, hostname="lb1").refused}
    return {**whole, **{f"openshift-{name}": keepalived_conf(each) for name, each in RELEASES.items()}}


@pytest.mark.slow("real timers of several routers")
def test_corpus(ground: Field):
    """Every instance of every file of the corpus is the same to keepalived and to us."""
    files = _files()
    made = {name: routers(text) for name, text in files.items()}
    _add_interfaces(ground.one, {name for found in made.values() for each in found for name in _used(each)})
    compared = 0
    for name, told in zip(files, understood(ground.one, *files.values()), strict=True):
        for router in made[name]:
            assert ours(router) == theirs(told["Instance", router.name]), name
            compared += 1
    assert compared >= 40


def _used(router: VirtualRouter) -> set[str]:
    tracked = {each.target for each in router.track if each.kind is TrackKind.INTERFACE}
    return {router.interface, *router.other_interfaces, *tracked}


def _add_interfaces(node: Node, names: set[str]) -> None:
    for number, name in enumerate(sorted(names - {INTERFACE}), 1):
        node.batch(
            f"link add {name} type veth peer name other{number}",
            f"address add 198.51.100.{number}/32 dev {name}",
            f"link set {name} up",
        )


def shared(own: Node, other: Node, *, priority: int, drained: Path) -> str:
    """Return the file of one router of a pair; while the file `drained` is there it is worth 60 less."""
    return f"""
$OWN={own.address}
vrrp_script serving
{{
    script "/usr/bin/test ! -e '{drained}'" # as long as it is not drained
    interval 1
    weight -60
}}
$SETTINGS= \\
    interface eth0 \\
    priority {priority} # of this router \\
    state BACKUP \\
    track_script {{ \\
        serving \\
    }}
vrrp_instance old {{
    $SETTINGS
    virtual_router_id 42
    advert_int 1
    authentication {{ auth_type PASS
        auth_pass longer-than-8
    }}
    virtual_ipaddress {{ 192.0.2.100/24 dev eth0 }}
}}
vrrp_instance new {{
    $SETTINGS
    virtual_router_id 43
    version 3
    advert_int 0.2
    unicast_src_ip ${{OWN}}
    unicast_peer {{ {other.address} }}
    virtual_ipaddress {{ 192.0.2.101/24
        192.0.2.102/24 }}
}}
vrrp_instance six {{
    $SETTINGS
    virtual_router_id 43
    advert_int 0.2
    virtual_ipaddress {{ fd00::100/64 }}
}}
"""


VIPS: Final = {"old": "192.0.2.100", "new": "192.0.2.101", "six": "fd00::100"}


@pytest.mark.promise("docs/foreign-files.md", "the same keepalived.conf: keepalived and we elect the same")
def test_one_pair_of_two_programs(ground: Field, tmp_path: Path):
    """Each obeys its own file: who has the higher priority is active, with the weights of scripts counted."""
    drained = {node.name: tmp_path / node.name for node in (ground.one, ground.two)}
    high = shared(ground.two, ground.one, priority=150, drained=drained[ground.two.name])
    low = shared(ground.one, ground.two, priority=100, drained=drained[ground.one.name])
    with Keepalived(ground.two, head=high) as peer:
        for name in VIPS:
            peer.wait_for("MASTER", name)
        with VrrpNode(ground.one, *routers(low)) as node:
            for name in VIPS:
                node.wait_for("backup", name)
            _held_by(ground, ground.two)
            drained[ground.two.name].touch()
            _held_by(ground, ground.one)
            for name in VIPS:
                peer.wait_for("BACKUP", name)
            drained[ground.one.name].touch()
            _held_by(ground, ground.two)
            drained[ground.two.name].unlink()
            peer.stop()
            _held_by(ground, ground.one)
            drained[ground.one.name].unlink()
            peer.start()
            _held_by(ground, ground.two)
    _same_on_the_wire(ground)


def _held_by(ground: Field, node: Node) -> None:
    for address in VIPS.values():
        ground.wait_for_holder(node, address)


def _same_on_the_wire(ground: Field) -> None:
    """Compare what both said of each virtual router, but for who they are and how good."""
    said: list[set[tuple[object, ...]]] = []
    for node in (ground.one, ground.two):
        adverts = [each for each in ground.capture.adverts() if each.mac == node.mac]
        said.append(
            {
                (each.version, each.router_id, each.interval, each.addresses, each.auth_type, each.password)
                for each in adverts
            }
        )
    assert said[0] == said[1]
    assert len(said[0]) == len(VIPS)
