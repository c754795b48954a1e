"""The static pods as they stand, with stand-ins for OpenShift's programs: `podman kube play` runs them."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.machines import podman
from support.machines.container_site import VIP, Site
from support.openshift.node_api import NodeApi
from support.openshift.pod_templates import HAPROXY, IMAGE, KEEPALIVED
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", "catatonit", root=True),
]

_STAND_IN: Final = "localhost/lb-test-runtimecfg:1"
_EMPTY: Final = ("run-dir", "appliance-run", "appliance-state")
_SUPPORT: Final = (
    "openshift/monitor.py",
    "openshift/dynkeepalived.py",
    "openshift/pod_templates.py",
    "openshift/go_template.py",
    "openshift/openshift_templates.py",
)

# OpenShift's command lines, whose kubeconfig has two lines here: where the API is, and this node's address.
# The image has no nft: the rules are added in tests/kernel.
_COMMANDS: Final = {
    "monitor": '"$2" "$3" "$4" "$5" --server "$server" --scale 20',
    "dynkeepalived": '"$2" "$3" --vips "$5,$7" --server "$server" --own "$own" --scale 20',
}
_COMMAND: Final = """\
#!/bin/sh
{ read -r server; read -r own; } <"$1"
PYTHONPATH=/opt/stand-in exec /opt/appliance/bin/python -m support.openshift.%s %s
"""
_NFT: Final = "#!/bin/sh\nexit 1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owner:
    """Who made the folders of the pod, and who may write there; None is what podman makes of an emptyDir."""

    user: int | None = None
    mode: int = 0o755


_OWNERS: Final = {
    "podman": _Owner(),
    "kubelet": _Owner(user=0, mode=0o777),
    "another user": _Owner(user=1000, mode=0o755),
}


@pytest.fixture(scope="module")
def runtimecfg(image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image with the commands that the pods run of OpenShift's."""
    folder = tmp_path_factory.mktemp("runtimecfg")
    support = Path(__file__).parents[1] / "support"
    for each in _SUPPORT:
        target = folder / "support" / each
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(support / each, target)
    scripts = {name: _COMMAND % (name, words) for name, words in _COMMANDS.items()}
    for name, text in {**scripts, "nft": _NFT}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    lines = (
        f"FROM {image}",
        "USER 0",
        f"COPY {' '.join((*scripts, 'nft'))} /usr/bin/",
        "COPY support /opt/stand-in/support",
        "ENTRYPOINT []",
    )
    (folder / "Containerfile").write_text("\n".join(lines))
    podman.podman("build", "--quiet", "--tag", _STAND_IN, str(folder), timeout=podman.BUILD)
    return _STAND_IN


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One of our pods on node `one`; its host paths are folders of the test, by the names of its volumes."""

    name: str
    around: Site
    manifest: Path

    def volume(self, name: str) -> Path:
        """Return the folder of a volume."""
        return self.around.folder / "node" / name

    def appliance(self, *arguments: str, check: bool = True) -> str:
        """Run our command in our container."""
        command = ("exec", f"{self.name}-{self.name}", "appliance", *arguments)
        return podman.podman(*command, check=check).stdout

    def probe(self) -> None:
        """Ask what the kubelet asks."""
        _on_node(self.around, "healthcheck", "run", f"{self.name}-{self.name}")

    def stop(self) -> None:
        """Stop our container as the kubelet does: TERM, and 65 s for it to end."""
        podman.podman("stop", "--time", "65", f"{self.name}-{self.name}", timeout=90)

    def is_gone(self) -> bool:
        """Take the pod down; podman 4.3 may find a container's /dev/shm busy, and not at the next try."""
        with contextlib.suppress(AssertionError):
            _on_node(self.around, "kube", "down", str(self.manifest))
        podman.podman("pod", "rm", "--force", self.name, check=False)
        return self.name not in podman.podman("pod", "ls", "--format", "{{.Name}}").stdout.split()


def _manifest(around: Site, name: str, owner: _Owner) -> Path:
    """Fill the manifest in for a machine whose paths are below a folder."""
    text = (IMAGE / f"{name}-pod.yaml").read_text()
    for word, value in (
        ("APPLIANCE_IMAGE", podman.IMAGE), ("RUNTIMECFG_IMAGE", _STAND_IN), ("PLATFORM", "test"),
        ("BASE_DOMAIN", "example.com"), ("API_VIPS", VIP), ("INGRESS_VIPS", "192.0.2.101"),
        ("NAMESPACE", "test"),
    ):  # fmt: skip
        text = text.replace(word, value)
    pod = yaml.safe_load(text)
    # podman 4.3 waits 20 s for each; this one is OpenShift's own.
    pod["spec"]["initContainers"] = [
        each for each in pod["spec"]["initContainers"] if each["name"] != "verify-api-int-resolvable"
    ]
    for volume in pod["spec"]["volumes"]:
        folder = around.folder / "node" / volume["name"]
        if volume["name"] in _EMPTY and owner.user is None:
            continue
        folder.mkdir(parents=True)
        if volume["name"] in _EMPTY:
            folder.chmod(owner.mode)
            subprocess.run(["chown", str(owner.user), str(folder)], check=True)
            volume.pop("emptyDir", None)
        volume["hostPath"] = {"path": str(folder)}
    path = around.folder / "pod.yaml"
    path.write_text(yaml.safe_dump(pod))
    return path


def _on_node(around: Site, *arguments: str) -> None:
    """Run podman with the network of a node as the machine's own, which the pod has."""
    done = subprocess.run(
        ["nsenter", f"--net=/run/netns/{around.one.name}", "podman", *arguments],
        env=podman.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def _played(
    around: Site, name: str, files: Mapping[str, str], owner: _Owner = _OWNERS["podman"]
) -> Iterator[Pod]:
    """Run a pod; `files` are by their place below the folder of the volumes."""
    pod = Pod(name=name, around=around, manifest=_manifest(around, name, owner))
    for place, text in files.items():
        path = around.folder / "node" / place
        path.write_text(text)
        path.chmod(0o644)
    try:
        _on_node(around, "kube", "play", str(pod.manifest))
        yield pod
    finally:
        for container in (name, f"{name}-monitor"):  # pytest shows it where it fails
            print(podman.podman("logs", f"{name}-{container}", check=False))  # noqa: T201  # as said
        wait_until(pod.is_gone, what="the pod is gone", timeout=60, pause=1)
        podman.podman("volume", "rm", "--force", *_EMPTY, check=False)


@pytest.fixture
def api(around: Site) -> Iterator[NodeApi]:
    """The Kubernetes API of node `one`, which lists one master: the server of the site."""
    with NodeApi(around.one) as made:
        made.masters = {"master-0": around.servers.address}
        yield made


@pytest.mark.promise("container", "static pod in HAProxy's place")
@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(
            each, marks=() if each == "kubelet" else pytest.mark.slow("one more start of a container")
        )
        for each in _OWNERS
    ],
)
def test_in_haproxys_place(around: Site, runtimecfg: str, api: NodeApi, owner: str):
    """From no configuration to an answer: monitor connects, renders, says `reload`; the probe is content."""
    del runtimecfg
    files = {
        "kubeconfigvarlib/kubeconfig": f"{api.url}\n{around.one.address}\n",
        "resource-dir/appliance.yaml.tmpl": HAPROXY.read_text().replace(
            "type: https, path: /readyz", "type: tcp"
        ),
    }
    with _played(around, "haproxy", files, _OWNERS[owner]) as pod:
        wait_until(lambda: around.who(around.one.address), what="it serves", timeout=90, pause=0.2)
        assert "{{" not in (pod.volume("conf-dir") / "appliance.yaml").read_text()
        pod.probe()
        pod.appliance("status")


@pytest.mark.promise("container", "static pod in keepalived's place")
def test_in_keepaliveds_place(around: Site, runtimecfg: str, api: NodeApi):
    """From no configuration to a held address; at the end of the pod the address is gone."""
    del runtimecfg
    api.masters = {"master-0": around.one.address, "master-1": around.two.address}
    files = {
        "kubeconfigvarlib/kubeconfig": f"{api.url}\n{around.one.address}\n",
        "resource-dir/appliance.yaml.tmpl": KEEPALIVED.read_text(),
    }
    with _played(around, "keepalived", files) as pod:
        wait_until(lambda: around.one.holds(f"{VIP}/32"), what="the address is held", timeout=90, pause=0.2)
        pod.probe()
        pod.stop()
        assert not around.one.holds(f"{VIP}/32")


@pytest.mark.slow("one more start of a container")
def test_alone(around: Site):
    """With a configuration of its own: the virtual IP, and a client that is served by it."""
    folder = {"conf-dir/appliance.yaml": yaml.safe_dump(around.config())}
    with _played(around, "appliance", folder) as pod:
        wait_until(lambda: around.who(VIP), what="it serves", timeout=90, pause=0.2)
        pod.probe()
        pod.appliance("status")
        pod.stop()
        assert not around.one.holds(VIP)
