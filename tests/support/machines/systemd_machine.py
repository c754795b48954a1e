"""A machine with a real systemd and nothing around it: the VM image's files, booted by systemd-nspawn."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.machines import podman
from support.processes.processes import end
from support.processes.waiting import wait_until

_NOT_HERE = ("vmtoolsd", "appliance-guest", "appliance-console")
_BOOT = 120.0
_STATES = ("running", "degraded")


class SystemdMachine:
    """One that runs; commands are run as its root."""

    def __init__(self, leader: int, root: Path) -> None:
        self._leader = leader
        self.root = root
        """Its files, as this machine sees them."""

    def run(
        self, *command: str, check: bool = True, timeout: float = 200.0
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in it; a failure raises with what it printed."""
        done = subprocess.run(
            ["nsenter", "--target", str(self._leader), "--all", "env", "-i", *_ENVIRONMENT, *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done

    def says(self, *command: str) -> str:
        """Return what a command prints, without the end of its line, whatever its status."""
        return self.run(*command, check=False).stdout.strip()

    def show(self, unit: str, key: str) -> str:
        """Return a property of a unit, as systemd shows it."""
        return self.says("systemctl", "show", "--property", key, "--value", unit)


_ENVIRONMENT = ("PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb", "LANG=C.UTF-8")


@contextlib.contextmanager
def systemd_machine(folder: Path, prepare: dict[str, str], *, network: str = "") -> Iterator[SystemdMachine]:
    """Boot it with these files written before, by their paths in it.

    Its network is the namespace of that name, or one of its own, without a peer.
    """
    with _root(folder) as root:
        for name, text in prepare.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            (root / name).chmod(0o644)
        command = ["systemd-nspawn", "--register=no", "--keep-unit", "--quiet", "--directory", str(root)]
        command += [f"--network-namespace-path=/run/netns/{network}" if network else "--private-network"]
        command += ["--capability=all", "--boot", "--console=pipe"]
        with (folder / "console").open("ab") as console:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True
            )
        try:
            yield _booted(process.pid, root)
        finally:
            end(process, patience=60)


def _booted(pid: int, root: Path) -> SystemdMachine:
    leader = int(wait_until(lambda: _leader(pid), what="systemd runs in it", timeout=_BOOT))
    machine = SystemdMachine(leader, root)
    wait_until(
        lambda: machine.says("systemctl", "is-system-running") in _STATES,
        what="it has booted",
        timeout=_BOOT,
    )
    return machine


def _leader(pid: int) -> int:
    """Return the process that is number 1 in it, 0 while there is none."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            inside = stat.with_name("status").read_text().partition("NSpid:")[2].split("\n")[0].split()
            if inside[-1:] == ["1"] and len(inside) > 1 and _descends(int(stat.parent.name), pid):
                return int(stat.parent.name)
    return 0


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if pid == ancestor:
            return True
    return False


@contextlib.contextmanager
def _root(folder: Path) -> Iterator[Path]:
    """Give the image's files, with a layer above them that can be written."""
    image = podman.build_vm_image()
    lower = podman.podman("image", "mount", image).stdout.strip()
    upper, work, root = (folder / name for name in ("upper", "work", "root"))
    for each in (upper, work, root):
        each.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(root)], check=True)
    try:
        for unit in _NOT_HERE:
            for link in (root / "etc/systemd/system").glob(f"**/{unit}.service"):
                link.unlink()
        yield root
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)
        podman.podman("image", "unmount", image)
        shutil.rmtree(upper)
