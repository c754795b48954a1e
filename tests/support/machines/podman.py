"""podman as a test needs it: an image of this checkout, and containers in network namespaces.

What a machine of developers or CI lacks is made up for here, by a containers.conf of our own and a base image
of our own, and never in what users run: no registry, no systemd, limits that cannot be raised.
"""

import configparser
import contextlib
import fcntl
import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from support.processes.processes import alive, command_line
from support.processes.waiting import wait_until
from support.run import tools

ROOT: Final = Path(__file__).parents[3]
IMAGE: Final = os.environ.get("LB_TEST_IMAGE", "localhost/lb-appliance:test")
"""Another name lets the tests of two checkouts run beside each other."""

figures: list[str] = []
"""What was measured on the way, for the end of the run."""

_PUBLIC_BASE: Final = "docker.io/library/debian:bookworm-slim"
_OWN_BASE: Final = "localhost/lb-base:bookworm-slim"
_AUTHORITIES: Final = "/etc/ssl/certs/ca-certificates.crt"
_BUILDS: Final = Path(tempfile.gettempdir(), "lb-builds.lock")
"""Held while an image is built: a second process of the tests then finds the layers, and the base."""

_MOST_PROCESSES: Final = 32768
_PULL: Final = 120.0
BUILD: Final = 900.0
"""Seconds that a build may take."""

_LEFT_OUT: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
_MOMENT: Final = "1686355200"  # of all files, as `make image` has one; always the same, for podman's cache
_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def measured(figure: str) -> None:
    """Have a figure shown at the end of the run; nothing is asserted of it."""
    figures.append(figure)


def podman(
    *arguments: str, check: bool = True, timeout: float = 60.0, notify: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run podman to its end; a failure raises with what it printed.

    `notify` is the socket that it has of systemd, where that starts it.
    """
    done = subprocess.run(
        ["podman", *arguments],
        env=environment(**({"NOTIFY_SOCKET": str(notify)} if notify else {})),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert not check or done.returncode == 0, f"podman {arguments}: {done.stdout}{done.stderr}"
    return done


@functools.cache
def build_image() -> float:
    """Build the image of this checkout and return the seconds that it took; the base is there before."""
    base_image()
    started = time.monotonic()
    _build(IMAGE)
    return time.monotonic() - started


def build_changed(tag: str, *commands: str) -> str:
    """Build an image of the one of this checkout, changed by commands of a shell, and return its name."""
    name = f"{IMAGE.rpartition(':')[0]}:{tag}"
    changes = "".join(f"RUN {each}\n" for each in commands)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "Containerfile"
        file.write_text(f"FROM {IMAGE}\nUSER 0\n{changes}USER 9445:9445\n")
        podman(
            "build",
            "--quiet",
            "--format",
            "docker",
            "--network",
            "none",
            "--tag",
            name,
            scratch,
            timeout=BUILD,
        )
    return name


def build_from_archive(archive: Path, name: str) -> None:
    """Build the container of an archive on the base of the tests, with the arguments of image/README.md."""
    arguments = {
        "ARCHIVE": archive.name,
        "BASE_IMAGE": base_image(),
        "INSTALL": "apt-get update && apt-get install --yes python3-venv libnftables1",
        "PYTHON": "python3",
    }
    podman(
        *("build", "--quiet", "--format", "docker", "--network", "host", "--tag", name),
        *("--file", str(ROOT / "image" / "from-archive.Containerfile")),
        *(f"--build-arg={key}={value}" for key, value in arguments.items()),
        str(archive.parent),
        timeout=BUILD,
    )


def remove_image(name: str) -> None:
    """Remove an image that was built of this checkout's."""
    podman("image", "rm", "--force", name, check=False)


def list_parts(folder: Path, image: str = IMAGE) -> Path:
    """Have `make sbom` list what is in an image, and return the list; its licences lie beside it."""
    name, _, tag = image.rpartition(":")
    _make("sbom", DIST=str(folder), IMAGE=name, VERSION=tag)
    return folder / f"{Path(name).name}.cdx.json"


def make_ova(folder: Path, *arguments: str) -> float:
    """Run `make ova` of this checkout and return the seconds that it took; the base is there before.

    `arguments` are of each `podman build` in it.
    """
    base_image()
    started = time.monotonic()
    _make("ova", *arguments, DIST=str(folder), IMAGE=f"{IMAGE.partition(':')[0]}-test")
    return time.monotonic() - started


@functools.cache
def build_vm_image() -> str:
    """Build the files of the virtual machine, of this checkout, and return the image's name."""
    name = f"{IMAGE.partition(':')[0]}-vm-files:test"
    _build(name, "--target", "vm")
    return name


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    with _BUILDS.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(name: str, *arguments: str) -> None:
    with _alone(), tempfile.TemporaryDirectory() as scratch:
        podman(
            *("build", "--format", "docker", "--network", "host", "--tag", name, "--timestamp", _MOMENT),
            *(*arguments, "--build-arg", f"BASE_IMAGE={_base()}", *_secrets(Path(scratch)), str(ROOT)),
            timeout=BUILD,
        )


def make_image(name: str, *arguments: str) -> tuple[str, tuple[str, ...]]:
    """Run `make image` of this checkout under a name of its own; return the image's id, and its layers."""
    _make("image", *arguments, IMAGE=name)
    (found,) = json.loads(podman("image", "inspect", f"{name}:latest").stdout)
    return found["Id"], tuple(found["RootFS"]["Layers"])


def _make(target: str, *arguments: str, **given: str) -> None:
    """Run a target of the Makefile with what a build takes on this machine."""
    with _alone(), tempfile.TemporaryDirectory() as scratch:
        secrets = dict(word.split(",src=") for word in _secrets(Path(scratch)) if word.startswith("id="))
        knobs = {
            "BASE_IMAGE": _base(),
            "CA": secrets.get("id=ca", ""),
            "PIP_CONF": secrets.get("id=pipconf", ""),
            "IMAGE_ARGS": " ".join(("--network host", *arguments)),
            **given,
        }
        done = subprocess.run(
            ["make", "--directory", str(ROOT), target, *(f"{key}={value}" for key, value in knobs.items())],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD,
        )
    assert done.returncode == 0, f"make {target}: {done.stdout[-4000:]}{done.stderr[-4000:]}"


class Container:
    """One container of the image, removed at the end of its context."""

    def __init__(
        self,
        *arguments: str,
        command: Sequence[str] = (),
        image: str = "",
        notify: Path | None = None,
    ) -> None:
        """Start it with these arguments of `podman run`; `image` is another one than this checkout's."""
        run = ("run", "--detach", "--no-healthcheck", *arguments, image or IMAGE, *command)
        self.id = podman(*run, notify=notify).stdout.strip()
        self._first = int(self._inspect("{{.State.Pid}}"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            sys.stderr.write(f"--- log of container {self.id[:12]}\n{self.log()[-8000:]}\n")
        podman("rm", "--force", "--volumes", "--time", "0", self.id, check=False)

    def exec(self, *command: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run a command in it."""
        return podman("exec", self.id, *command, check=check)

    def log(self) -> str:
        """Return what it has written, to both outputs."""
        done = podman("logs", self.id, check=False)
        return done.stdout + done.stderr

    def stop(self, grace: int) -> float:
        """TERM it, KILL it after `grace` seconds; return how long that took."""
        started = time.monotonic()
        podman("stop", "--time", str(grace), self.id, timeout=grace + 60)
        return time.monotonic() - started

    def kill(self) -> None:
        """KILL it."""
        podman("kill", "--signal", "KILL", self.id)

    def is_running(self) -> bool:
        """Return whether it runs; podman is asked only when its first process has ended."""
        return alive(self._first) or self._inspect("{{.State.Running}}") == "true"

    def exit_code(self, timeout: float = 30.0) -> int:
        """Wait for its end, and return how it ended."""
        wait_until(lambda: not self.is_running(), what="the container has ended", timeout=timeout, pause=0.1)
        return int(self._inspect("{{.State.ExitCode}}"))

    def changed_files(self) -> list[str]:
        """Return what it has changed outside mounts."""
        return podman("diff", self.id).stdout.splitlines()

    def processes(self) -> dict[int, str]:
        """Return the command lines of all its processes, by the machine's numbers."""
        namespace = Path(f"/proc/{self._first}/ns/pid").readlink()
        return {pid: command_line(pid) for pid in _in_namespace(namespace)}

    def _inspect(self, form: str) -> str:
        return podman("inspect", "--format", form, self.id).stdout.strip()


def labels() -> dict[str, str]:
    """Return the image's labels."""
    found: dict[str, str] = json.loads(
        podman("image", "inspect", "--format", "{{json .Labels}}", IMAGE).stdout
    )
    return found


def storage() -> str:
    """Return where podman keeps images."""
    return podman("info", "--format", "{{.Store.GraphRoot}}").stdout.strip()


def size() -> int:
    """Return the image's size in bytes."""
    return int(podman("image", "inspect", "--format", "{{.Size}}", IMAGE).stdout)


def quadlet(path: Path) -> list[str]:
    """Return what the `[Container]` of a unit is as arguments of `podman run` (podman-systemd.unit(5)).

    Image, name, network and volumes are left out: a test has its own.
    """
    words: list[str] = []
    for key, value in _settings(path):
        match key:
            case "ReadOnly":
                words += ["--read-only"]
            case "NoNewPrivileges":
                words += ["--security-opt", "no-new-privileges"]
            case "DropCapability":
                words += ["--cap-drop", value]
            case "AddCapability":
                words += ["--cap-add", value.replace(" ", ",")]
            case "PodmanArgs":
                words += value.replace("=", " ").split()
            case "Notify":
                words += [f"--sdnotify={'container' if value == 'true' else 'conmon'}"]
            case "Image" | "ContainerName" | "Network" | "Volume" | "Exec":
                continue
            case _:
                raise AssertionError(f"{path}: {key}: say here what it means")
    return words


def _settings(path: Path) -> Iterator[tuple[str, str]]:
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Container]" and line and not line.startswith("#"):
            key, _, value = line.partition("=")
            yield key, value


def _in_namespace(namespace: Path) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "ns" / "pid").readlink() == namespace:
                yield int(process.name)


def environment(**more: str) -> dict[str, str]:
    """Return what podman needs to run here."""
    return {**os.environ, "CONTAINERS_CONF": str(configuration()), **more}


@functools.cache
def configuration() -> Path:
    """Return a containers.conf with what this machine needs."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = _limit(resource.getrlimit(resource.RLIMIT_NPROC)[1])
    lines = [
        "[containers]",
        f'default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]',
        "[engine]",
    ]
    if tools.path("runc"):  # crun wants cgroups of version 2 alone
        lines.append('runtime = "runc"')
    if not Path("/run/systemd/system").exists():
        lines += ['cgroup_manager = "cgroupfs"', 'events_logger = "file"']
    path = Path(tempfile.mkdtemp(prefix="lb-podman-")) / "containers.conf"
    path.write_text("\n".join(lines) + "\n")
    return path


def _limit(hard: int) -> int:
    return _MOST_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, _MOST_PROCESSES)


def base_image() -> str:
    """Return the public base where it can be had, else one that Debian's own packages make."""
    with _alone():
        return _base()


def _base() -> str:
    for name in (_PUBLIC_BASE, _OWN_BASE):
        if podman("image", "exists", name, check=False).returncode == 0:
            return name
    with contextlib.suppress(subprocess.TimeoutExpired):
        if podman("pull", "--quiet", _PUBLIC_BASE, check=False, timeout=_PULL).returncode == 0:
            return _PUBLIC_BASE
    _make_base()
    return _OWN_BASE


def _make_base() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        archive = f"{scratch}/base.tar"
        subprocess.run(
            [
                *("mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates,usr-is-merged"),
                "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
                *(f"--dpkgopt=path-exclude={each}" for each in _LEFT_OUT),
                "--dpkgopt=path-include=/usr/share/doc/*/copyright",
                *("bookworm", archive),
            ],
            check=True,
            timeout=BUILD,
        )
        podman("import", "--quiet", "--change", f"ENV {_PATH}", archive, _OWN_BASE, timeout=BUILD)


def _secrets(scratch: Path) -> list[str]:
    """Return what gives a build this machine's authorities, and the index that its pip uses."""
    authorities = os.environ.get("PIP_CERT") or _AUTHORITIES
    if not Path(authorities).exists():
        return []
    settings = configparser.ConfigParser(interpolation=None)
    settings.read("/etc/pip.conf")
    settings.read_dict({"global": {"cert": "/run/secrets/ca"}})
    with (scratch / "pip.conf").open("w") as file:
        settings.write(file)
    return ["--secret", f"id=ca,src={authorities}", "--secret", f"id=pipconf,src={scratch}/pip.conf"]
