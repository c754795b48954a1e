"""The static pod as it stands, with stand-ins for OpenShift's own images: `podman kube play` runs it."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.machines import podman
from support.machines.container_site import Site
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", "catatonit", root=True),
]

_POD: Final = podman.ROOT / "image" / "haproxy-pod.yaml"
_CONFIG: Final = podman.ROOT / "image" / "haproxy-pod.appliance.yaml"
_STAND_IN: Final = "localhost/lb-test-runtimecfg:1"
_EMPTY: Final = ("run-dir", "appliance-run", "appliance-state")

# What haproxy-monitor does with the socket, as root of a container of its own: it holds one connection.
_MONITOR: Final = """\
#!/opt/appliance/bin/python
import pathlib, socket, time
path = "/var/run/haproxy/haproxy-master.sock"
while not pathlib.Path(path).exists():
    time.sleep(0.1)
connection = socket.socket(socket.AF_UNIX)
connection.connect(path)
connection.sendall(b"reload\\n")
pathlib.Path("/etc/haproxy/answer").write_bytes(connection.recv(65536))
time.sleep(3600)
"""


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
    """An image with the commands that the pod runs of OpenShift's."""
    folder = tmp_path_factory.mktemp("runtimecfg")
    (folder / "monitor").write_text(_MONITOR)
    (folder / "monitor").chmod(0o755)
    (folder / "Containerfile").write_text(f"FROM {image}\nUSER 0\nCOPY monitor /usr/bin/\nENTRYPOINT []\n")
    podman.podman("build", "--quiet", "--tag", _STAND_IN, str(folder), timeout=podman.BUILD)
    return _STAND_IN


def _manifest(around: Site, image: str, owner: _Owner) -> Path:
    """Fill the manifest in for a machine whose paths are below a folder."""
    text = _POD.read_text()
    for word, value in (
        ("APPLIANCE_IMAGE", podman.IMAGE), ("RUNTIMECFG_IMAGE", image), ("PLATFORM", "test"),
        ("BASE_DOMAIN", "example.com"), ("API_VIPS", "192.0.2.100"),
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
            del volume["emptyDir"]
        volume["hostPath"] = {"path": str(folder)}
    path = around.folder / "pod.yaml"
    path.write_text(yaml.safe_dump(pod))
    return path


def _configure(around: Site) -> Path:
    """Write the configuration that comes with the pod, with this site's servers; return its folder."""
    config = yaml.safe_load(_CONFIG.read_text())
    config["pools"]["masters"] |= around.config()["pools"]["masters"]  # type: ignore[index]  # a mapping
    folder = around.folder / "node" / "conf-dir"
    (folder / "appliance.yaml").write_text(yaml.safe_dump(config))
    return folder


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


@pytest.fixture(params=_OWNERS)
def folder(request: pytest.FixtureRequest, around: Site, runtimecfg: str) -> Iterator[Path]:
    """The pod runs, with folders of some owner; its /etc/haproxy."""
    manifest = _manifest(around, runtimecfg, _OWNERS[request.param])
    folder = _configure(around)
    try:
        _on_node(around, "kube", "play", str(manifest))
        yield folder
    finally:
        print(podman.podman("logs", "haproxy-haproxy", check=False))  # noqa: T201  # pytest shows it where it fails
        wait_until(lambda: _is_gone(around, manifest), what="the pod is gone", timeout=60, pause=1)
        podman.podman("volume", "rm", "--force", *_EMPTY, check=False)


def _is_gone(around: Site, manifest: Path) -> bool:
    """Take the pod down; podman 4.3 may find a container's /dev/shm busy, and not at the next try."""
    with contextlib.suppress(AssertionError):
        _on_node(around, "kube", "down", str(manifest))
    podman.podman("pod", "rm", "--force", "haproxy", check=False)
    return "haproxy" not in podman.podman("pod", "ls", "--format", "{{.Name}}").stdout.split()


def test_podman_plays_the_pod(around: Site, folder: Path):
    """It serves, OpenShift's monitor gets its answer on the socket, and the probe finds it alive."""
    wait_until(lambda: around.who(around.one.address), what="it serves", timeout=90, pause=0.2)
    answer = folder / "answer"
    wait_until(lambda: answer.exists() and answer.read_text(), what="the monitor has its answer", timeout=60)
    assert json.loads(answer.read_text())["ok"] is True
    _on_node(around, "healthcheck", "run", "haproxy-haproxy")
