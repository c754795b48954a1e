"""The pods of `image/` as files: their mounts and rights, and what their templates say."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.openshift.openshift_templates import MASTERS, RELEASES, Release, haproxy_cfg
from support.openshift.peers_file import peers_file
from support.openshift.pod_templates import (
    IMAGE,
    KeepalivedNode,
    haproxy_place,
    openshifts_haproxy_template,
)

from appliance.model.document.document import read
from appliance.model.loading.loading import load
from appliance.model.paths import Paths
from appliance.model.snapshot.shared_ip import Engine
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import TrackKind, VirtualRouter
from appliance.translation.bgp_peers import translate
from appliance.translation.combined_files import load_together
from appliance.wire.bird.bird_config import PROTOCOL

pytestmark = pytest.mark.pure

_MASTERS: Final = {"master-0": "10.0.0.34", "master-1": "10.0.0.99"}
_RAW: Final = ["NET_ADMIN", "NET_RAW", "SYS_NICE", "IPC_LOCK", "SETUID", "SETGID"]
_RIGHTS: Final = {
    "haproxy": [],
    "keepalived": _RAW,
    "appliance": ["NET_BIND_SERVICE", *_RAW],
    "kube-vip": ["DAC_READ_SEARCH", "NET_BIND_SERVICE", "NET_ADMIN", "NET_RAW", "SETUID", "SETGID"],
}
_PLACES: Final = ("haproxy", "keepalived")


def accepted(text: str) -> Snapshot:
    """Return the snapshot of a configuration without an error."""
    loaded = load(text, source="appliance.yaml", number=1)
    assert loaded.snapshot is not None, loaded.errors
    return loaded.snapshot


def pod(name: str) -> Mapping[str, dict[str, object]]:
    """Return a manifest."""
    manifest: Mapping[str, dict[str, object]] = yaml.safe_load((IMAGE / f"{name}-pod.yaml").read_text())
    return manifest


def boxes(name: str) -> Mapping[str, dict[str, object]]:
    """Return the containers of a pod by name, those that run first too."""
    spec = pod(name)["spec"]
    listed = [*spec["initContainers"], *spec["containers"]]  # type: ignore[misc]  # lists in a manifest
    return {each["name"]: each for each in listed}


def mounts(box: Mapping[str, object]) -> dict[str, str]:
    """Return where a container sees each volume."""
    listed = box["volumeMounts"]
    assert isinstance(listed, list)
    return {each["name"]: each["mountPath"] for each in listed}


def routers(node: KeepalivedNode) -> dict[str, VirtualRouter]:
    """Return the virtual IPs that a node has by our template."""
    return {each.name: each for each in accepted(node.render()).virtual_routers}


@pytest.mark.parametrize("name", _RIGHTS)
def test_our_container_has_what_it_needs(name: str):
    """Its rights, its probe, folders that outlive it, and 65 s to end as OpenShift's pods have."""
    manifest, ours, first = pod(name), boxes(name)[name], boxes(name)["folders"]
    security = ours["securityContext"]
    assert isinstance(security, dict)
    assert security["capabilities"] == {"drop": ["ALL"], **({"add": _RIGHTS[name]} if _RIGHTS[name] else {})}
    assert security["runAsUser"] == (0 if _RIGHTS[name] else 9445)
    assert (security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"]) == (False, True)
    probe = ours["livenessProbe"]
    assert isinstance(probe, dict)
    assert probe["exec"] == {"command": ["appliance", "alive"]}
    assert {"appliance-run": "/run/appliance", "appliance-state": "/var/lib/appliance"}.items() <= (
        mounts(ours).items() & mounts(first).items()
    )
    grace = manifest["spec"]["terminationGracePeriodSeconds"]
    assert (grace, manifest["metadata"]["deletionGracePeriodSeconds"]) == (65, 65)
    volumes = manifest["spec"]["volumes"]
    assert isinstance(volumes, list)
    assert {each for box in boxes(name).values() for each in mounts(box)} == {
        each["name"] for each in volumes
    }


@pytest.mark.parametrize(
    ("name", "program", "socket"),
    [("haproxy", "monitor", "haproxy-master.sock"), ("keepalived", "dynkeepalived", "keepalived.sock")],
)
def test_the_pod_is_openshifts_but_for_one_container(name: str, program: str, socket: str):
    """Mounts are where the other one looks; it renders our template into the file that we read."""
    ours, other = boxes(name)[name], boxes(name)[f"{name}-monitor"]
    for box in (ours, other):
        assert {"run-dir": f"/var/run/{name}", "conf-dir": f"/etc/{name}"}.items() <= mounts(box).items()
    command = other["command"]
    assert isinstance(command, list)
    own = f"/etc/{name}/appliance.yaml"
    assert command[:4] == [program, "/var/lib/kubelet/kubeconfig", "/config/appliance.yaml.tmpl", own]
    assert ours["env"] == [
        {"name": "APPLIANCE_CONFIG", "value": own},
        {"name": "APPLIANCE_RELOAD_SOCKETS", "value": f"/var/run/{name}/{socket}"},
    ]


@pytest.mark.parametrize(("name", "file"), [("haproxy", "haproxy.cfg"), ("keepalived", "keepalived.conf")])
def test_openshifts_own_template_needs_two_changes(name: str, file: str):
    """What the comment in the manifest says makes our container read the file that the other one writes."""
    text = (IMAGE / f"{name}-pod.yaml").read_text()
    variable = f"APPLIANCE_{name.upper()}"
    changed = text.replace(f"# - name: {variable}", f"- name: {variable}")
    changed = changed.replace(f"#   value: /etc/{name}/{file}", f"  value: /etc/{name}/{file}")
    containers = yaml.safe_load(changed)["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in containers[0]["env"]}
    foreign = Path(f"/etc/{name}/{file}")
    assert Paths.from_environment(environment) == Paths(
        config=Path(f"/etc/{name}/appliance.yaml"),
        reload_sockets=(Path(environment["APPLIANCE_RELOAD_SOCKETS"]),),
        haproxy=(foreign,) if name == "haproxy" else (),
        keepalived=foreign if name == "keepalived" else None,
    )


@pytest.mark.parametrize("name", _PLACES)
def test_the_pods_say_where_their_files_belong(name: str):
    """The template names the place on the node at which the manifest mounts it."""
    volumes = pod(name)["spec"]["volumes"]
    assert isinstance(volumes, list)
    folder = next(each["hostPath"]["path"] for each in volumes if each["name"] == "resource-dir")
    words = " ".join((IMAGE / f"{name}-pod.appliance.yaml.tmpl").read_text().replace("\n#", "").split())
    assert f"{folder}/appliance.yaml.tmpl" in words


@pytest.mark.parametrize(
    ("masters", "frontend", "servers"),
    [
        (_MASTERS, "", ["10.0.0.34:6443", "10.0.0.99:6443"]),
        ({"a": "fd00::1", "b.example.com": "fd00::2"}, "::", ["[fd00::1]:6443", "[fd00::2]:6443"]),
        ({**_MASTERS, "master-2": ""}, "", ["10.0.0.34:6443", "10.0.0.99:6443"]),
        ({}, "", []),
    ],
)
def test_haproxys_place_is_rendered(masters: dict[str, str], frontend: str, servers: list[str]):
    """Both families, a node that has no address yet, and no node at all: each is accepted."""
    made = accepted(haproxy_place(masters, frontend=frontend))
    assert [f"{_host(each.host)}:{each.port}" for each in made.pools[0].servers] == servers
    assert [each.port for front in made.groups[0].frontends for each in front.binds] == [9445, 9444, 9454]
    assert made.drain < 65


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
@pytest.mark.parametrize("masters", [MASTERS, ()])
def test_openshifts_template_is_the_text_of_the_release(release: Release, masters: tuple[str, ...]):
    """The template that a stand-in renders in other tests is that of the corpus."""
    nodes = {f"master-{at}": each for at, each in enumerate(masters)}
    assert haproxy_place(nodes, template=openshifts_haproxy_template(release)) == haproxy_cfg(
        release, masters
    )


def test_configuration_of_each_release():
    """Each line that a comment has for another release is one that may take the place of its own."""
    lines = haproxy_place(_MASTERS).splitlines()
    alternatives = [
        (at, each.replace("# ", "", 1))
        for at, each in enumerate(lines)
        if each.strip().startswith(("# check:", "# timeouts:", "# slow_start:", "# on_down:", "# readyz:"))
    ]
    assert len(alternatives) == 8
    for at, line in alternatives:
        key = line.strip().partition(":")[0]
        others = [each for each in lines if not each.strip().startswith(f"{key}:")]
        others.insert(others.index(lines[at]), line)
        accepted("\n".join(others))


def test_keepaliveds_place_is_rendered():
    """Priorities, router ids, password, peers and checks are those of OpenShift's keepalived.conf."""
    made = routers(KeepalivedNode(name="cnf10"))  # whose ids openshift/installer's documentation names
    api, ingress = made["api-0"], made["ingress-0"]
    assert (api.priority, api.version, api.addresses, api.router_id) == (40, 2, ("192.0.2.100/32",), 147)
    assert (ingress.priority, ingress.addresses, ingress.router_id) == (20, ("192.0.2.101/32",), 2)
    assert (api.password, api.source, api.advert) == ("cnf10_api_vip", "192.0.2.1", 1.0)
    assert (api.peers, ingress.peers) == (("192.0.2.2",), ("192.0.2.2", "192.0.2.3"))
    lb, alone = api.track
    assert (lb.kind, lb.exists) == (TrackKind.HTTP, "/var/run/keepalived/iptables-rule-exists")
    assert (lb.weight, lb.interval, lb.rise, lb.fall) == (20, 2.0, 3, 3)
    assert (alone.weight, alone.target) == (5, "https://localhost:6443/readyz")
    assert [(each.weight, each.interval, each.fall) for each in ingress.track] == [
        (None, 1.0, 2),
        (10, 1.0, 2),
    ]


def test_a_mode_is_known_by_its_word():
    """`dynkeepalived` looks for `unicast_peer` in the file to see which mode it has."""
    unicast, multicast = KeepalivedNode(), KeepalivedNode(unicast=False)
    assert "unicast_peer" in unicast.render()
    assert "unicast_peer" not in multicast.render()
    assert all(not each.peers and each.source is None for each in routers(multicast).values())


def test_a_node_that_is_not_in_the_list_takes_no_part():
    """As in OpenShift since OCPBUGS-1565: else it would be active beside those that do not send to it."""
    worker = KeepalivedNode(own="192.0.2.3")
    stranger = KeepalivedNode(own="192.0.2.9")
    assert set(routers(worker)) == {"ingress-0"}
    assert routers(stranger) == {}
    assert "unicast_peer" in stranger.render()
    assert set(routers(KeepalivedNode(own="192.0.2.9", unicast=False))) == {"api-0", "ingress-0"}


def test_two_families_are_two_pairs():
    """A cluster with both has them by number; version 3 has no password."""
    vips = (("192.0.2.100", "192.0.2.101"), ("fd00::100", "fd00::101"))
    made = routers(KeepalivedNode(vips=vips, unicast=False))
    assert set(made) == {"api-0", "ingress-0", "api-1", "ingress-1"}
    assert (made["api-1"].version, made["api-1"].password) == (3, None)


def test_a_lonely_master_has_no_peer():
    """What runtimecfg puts into the list in place of a second one is no peer."""
    for nobody in ("0.0.0.0", "::"):  # its placeholder, nothing binds there
        assert routers(KeepalivedNode(masters=("192.0.2.1", nobody)))["api-0"].peers == ()


def test_the_appliance_alone():
    """The configuration that comes with the third pod has no error, and drains within the pod's grace."""
    text = (IMAGE / "appliance-pod.appliance.yaml").read_text()
    made = accepted(text)
    assert {each.name for each in made.virtual_routers} == {"api", "ingress"}
    assert made.drain < 65
    listed = re.compile(r"    servers:\n(?:      master.*\n)+")
    discovering = (
        listed.sub("", text).replace("# servers:", "servers:").replace("# kubernetes:", "kubernetes:")
    )
    assert "10.0.0.34:6443" not in discovering
    assert accepted(discovering).groups == made.groups
    own = {"master-0": "10.0.0.34", "master-1": "10.0.0.99", "master-2": "10.0.0.90"}
    for name, address in own.items():
        found = load(text, source="appliance.yaml", number=1, node=f"{name}.ocp4.example.com").snapshot
        assert found is not None
        masters = set(own.values()) - {address}
        assert {each.name: (each.source, set(each.peers)) for each in found.virtual_routers} == {
            "api": (address, masters),
            "ingress": (address, {*masters, "10.0.0.51", "10.0.0.52"}),
        }


def test_kube_vips_place():
    """Its configuration reads the file that the pod mounts: the addresses are gated as by kube-vip's pods."""
    text = (IMAGE / "kube-vip-pod.appliance.yaml").read_text()
    source = read(text).value["source"]
    assert isinstance(source, dict)
    file = Path(str(source["bgp_peers"]))
    assert mounts(boxes("kube-vip")["kube-vip"])["peers-dir"] == str(file.parent)
    assert mounts(boxes("kube-vip")["kube-vip"])["conf-dir"] == str(Paths().config.parent)
    volumes = pod("kube-vip")["spec"]["volumes"]
    assert isinstance(volumes, list)
    places = {each["name"]: each["hostPath"]["path"] for each in volumes if "hostPath" in each}
    assert places["peers-dir"] == str(file.parent)  # where the machine-config operator has it
    peers = translate(read(peers_file()), source=str(file), hostname="master-1.ocp4.example.com")
    made = load_together(read(text), [peers], source="appliance.yaml", number=1).snapshot
    assert made is not None
    assert made.bgp is not None
    assert (made.bgp.engine, made.bgp.serve, PROTOCOL) == (Engine.TABLE, 198, 248)
    assert [each.address for each in made.bgp.neighbors] == ["192.0.2.65"]
    assert [(each.name, [track.target for track in each.track]) for each in made.shared_ips] == [
        ("api", ["https://localhost:6443/readyz"]),
        ("ingress", ["http://localhost:1936/healthz"]),
    ]
    assert max(each.drain for each in made.shared_ips) < 65


def test_a_worker_in_kube_vips_place():
    """What the comments say for workers, and for `linger`, is accepted in place of the file."""
    text = (IMAGE / "kube-vip-pod.appliance.yaml").read_text()
    worker = [
        each.removeprefix("# ") for each in text.splitlines() if each.startswith(("# bgp:", "# shared_ips:"))
    ]
    made = accepted("\n".join(worker))
    assert [each.addresses for each in made.shared_ips] == [("198.51.100.4/32",)]
    lines = text[text.index("# nodes:") : text.index("# A worker")].splitlines()
    more = "\n".join(each.removeprefix("# ") for each in lines)
    assert accepted("\n".join([*worker, more])).linger is not None


def test_every_file_is_in_the_readme():
    """Who reads image/README.md finds each of them."""
    text = (IMAGE / "README.md").read_text()
    files: list[Path] = sorted(IMAGE.glob("*-pod*"))
    assert len(files) == 8
    assert [each.name for each in files if each.name not in text] == []
