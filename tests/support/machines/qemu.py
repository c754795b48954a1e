"""A virtual machine of the OVA: its disk, emulated in software, on a segment with the other nodes of a test.

KVM is never asked for: where it is nested in something it may be there and hang. The disk of the OVA is not
changed, each machine writes to a layer of its own, which survives its restarts. What it says on its serial
console is in a file, whose end is shown where a test fails.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, Self
from xml.sax.saxutils import quoteattr

from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until

BOOT: Final = 240.0
"""Seconds for a start; 30 to 70 were measured on two cores, beside nothing else."""

_MEMORY: Final = 1024
_FIRMWARE: Final = Path("/usr/share/OVMF")
_END: Final = 15.0
_SSH: Final = (
    *("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
    *("-o", "LogLevel=ERROR", "-o", "ConnectTimeout=90"),  # to the banner: emulated, beside others
)


class Firmware(StrEnum):
    """What starts the machine."""

    BIOS = "bios"
    UEFI = "uefi"
    SECURE_BOOT = "secure-boot"


class Machine:
    """One virtual machine, killed at the end of its context."""

    def __init__(
        self,
        segment: Segment,
        *,
        name: str,
        folder: Path,
        disk: Path,
        firmware: Firmware = Firmware.BIOS,
        cd: Path | None = None,
        credential: Path | None = None,
        bridges: Sequence[str] = (),
    ) -> None:
        """Make its layer of the disk; `credential` is what systemd gets as lb.ovfenv.

        `bridges` are of its further network adapters, in the namespace of the segment.
        """
        self.name = name
        self._segment = segment
        self._firmware = firmware
        self._cd = cd
        self._credential = credential
        self._serial = folder / f"{name}.serial"
        self._complaints = folder / f"{name}.qemu"
        self._keyboard = folder / f"{name}.keyboard"
        self._monitor = folder / f"{name}.qmp"
        self._variables = folder / f"{name}.variables"
        self.layer = folder / f"{name}.qcow2"
        self._process: subprocess.Popen[bytes] | None = None
        self._serial.touch()
        self._number = len(list(folder.glob("*.qcow2"))) + 1
        image = ("create", "-q", "-f", "qcow2", "-F", "vmdk", "-b", str(disk), str(self.layer))
        subprocess.run(["qemu-img", *image], check=True, timeout=60)
        self._taps = {
            f"tap{self._number}" + (f"-{place}" if place else ""): bridge
            for place, bridge in enumerate(("bridge", *bridges))
        }
        for tap, bridge in self._taps.items():
            segment.batch(f"tuntap add dev {tap} mode tap", f"link set {tap} master {bridge} up")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.kill()
        if kind is not None:
            said = self._complaints.read_text(errors="replace")
            sys.stderr.write(f"--- serial console of {self.name}\n{self.console()[-8000:]}\n{said}\n")

    def start(self) -> None:
        """Power it on."""
        with self._complaints.open("ab") as output:
            self._process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self._segment.name}", "--", *self._command()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def kill(self) -> None:
        """Pull its plug."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(_END)
            self._process = None

    def restart(self, *, cd: Path) -> None:
        """Pull its plug and power it on with another CD, as vSphere has it for changed properties."""
        self.kill()
        self._cd = cd
        self.start()

    def insert(self, cd: Path) -> None:
        """Put a CD into a machine that is off."""
        self._cd = cd

    def power_button(self) -> None:
        """Press its power button, which asks for an end in order."""
        self._ask("system_powerdown")

    def types(self, text: str) -> None:
        """Type a line at its serial console."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_END)
            connection.connect(str(self._keyboard))
            connection.sendall(f"{text}\r".encode())

    @property
    def macs(self) -> tuple[str, ...]:
        """The addresses of its network adapters, in their order."""
        return tuple(f"52:54:00:00:{place:02x}:{self._number:02x}" for place in range(len(self._taps)))

    def console(self, *, since: int = 0) -> str:
        """Return what it has said on its serial console after so many bytes."""
        return self._serial.read_bytes()[since:].decode(errors="replace")

    def said(self) -> int:
        """Return how many bytes it has said, for `since`."""
        return self._serial.stat().st_size

    def says(self, text: str, *, since: int = 0, timeout: float = BOOT) -> float:
        """Wait until it says a text, and return after how many seconds."""
        started = time.monotonic()
        wait_until(
            lambda: text in self.console(since=since) or self.has_ended(),
            what=f"{self.name} says {text!r}",
            timeout=timeout,
            pause=0.25,
        )
        assert text in self.console(since=since), f"{self.name} has ended"
        return time.monotonic() - started

    def has_ended(self) -> bool:
        """Return whether it is off."""
        return self._process is None or self._process.poll() is not None

    def _command(self) -> list[str]:
        log = f"logfile={self._serial},logappend=on"
        return [
            *("qemu-system-x86_64", "-accel", "tcg", "-smp", "2", "-m", str(_MEMORY), "-nodefaults"),
            *("-display", "none", "-vga", "std", "-no-user-config", "-name", self.name),
            *("-chardev", f"socket,id=serial,path={self._keyboard},server=on,wait=off,{log}"),
            *("-serial", "chardev:serial"),
            *("-qmp", f"unix:{self._monitor},server=on,wait=off", "-device", "virtio-rng-pci"),
            *self._machine(),
            *self._disk(),
            *self._network(),
            *(() if self._cd is None else self._drive(self._cd)),
            *self._credentials(),
        ]

    def _machine(self) -> Sequence[str]:
        if self._firmware is Firmware.BIOS:
            return ()
        code, variables = "OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"
        secure: tuple[str, ...] = ()
        if self._firmware is Firmware.SECURE_BOOT:
            code, variables = "OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd"
            secure = ("-machine", "q35,smm=on", "-global", "driver=cfi.pflash01,property=secure,value=on")
        if not self._variables.exists():
            self._variables.write_bytes((_FIRMWARE / variables).read_bytes())
        return (
            *secure,
            *("-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={_FIRMWARE / code}"),
            *("-drive", f"if=pflash,format=raw,unit=1,file={self._variables}"),
        )

    def _disk(self) -> Sequence[str]:
        drive = ("-drive", f"if=none,id=disk,format=qcow2,cache=unsafe,file={self.layer}")
        if self._firmware is Firmware.BIOS:
            return (*drive, "-device", "pvscsi,id=scsi", "-device", "scsi-hd,bus=scsi.0,drive=disk")
        return (*drive, "-device", "virtio-blk-pci,drive=disk")  # OVMF finds no disk at a pvscsi

    def _network(self) -> Sequence[str]:
        words: list[str] = []
        # The last one first on the bus: their order is what the OVF environment says.
        for place, tap in reversed(list(enumerate(self._taps))):
            words += ("-netdev", f"tap,id=net{place},ifname={tap},script=no,downscript=no")
            words += ("-device", f"vmxnet3,netdev=net{place},mac={self.macs[place]},romfile=")
        return words

    def _drive(self, cd: Path) -> Sequence[str]:
        drive = ("-drive", f"if=none,id=medium,format=raw,media=cdrom,readonly=on,file={cd}")
        if self._firmware is not Firmware.SECURE_BOOT:
            return (*drive, "-device", "ide-cd,id=cd,bus=ide.1,drive=medium")
        # q35 has SATA in place of IDE, which the kernel does not know; vSphere's machine has IDE.
        return (*drive, "-device", "pvscsi,id=scsi", "-device", "scsi-cd,bus=scsi.0,drive=medium")

    def _credentials(self) -> Sequence[str]:
        if self._credential is None:
            return ()
        return ("-fw_cfg", f"name=opt/io.systemd.credentials/lb.ovfenv,file={self._credential}")

    def _ask(self, command: str, **arguments: str) -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_END)
            connection.connect(str(self._monitor))
            with connection.makefile("rw") as stream:
                stream.readline()  # its greeting
                for execute, given in (("qmp_capabilities", {}), (command, arguments)):
                    stream.write(json.dumps({"execute": execute, "arguments": given}) + "\n")
                    stream.flush()
                    while "return" not in (answer := json.loads(stream.readline())):
                        assert "error" not in answer, answer


class Shell:
    """The user admin of a machine, by SSH from a node."""

    def __init__(self, node: Node, *, address: str, key: Path) -> None:
        self._node = node
        self._command = ["ssh", "-i", str(key), *_SSH, f"admin@{address}"]

    def run(self, command: str, *, check: bool = True) -> str:
        """Run a command to its end and return what it printed."""
        return self._node.run([*self._command, command], check=check, timeout=120)

    def answers(self) -> bool:
        """Return whether a login works."""
        try:
            return self.run("echo it is me") == "it is me\n"
        except (AssertionError, subprocess.TimeoutExpired):
            return False


def make_key(folder: Path) -> tuple[Path, str]:
    """Make an SSH key, and return its file and its public half."""
    key = folder / "key"
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(key)]
    subprocess.run(made, check=True, timeout=60)
    return key, key.with_suffix(".pub").read_text().strip()


def environment(properties: Mapping[str, str], macs: Sequence[str] = ("00:50:56:00:00:01",)) -> str:
    """Return the OVF environment that vSphere makes of the form, for a machine with these adapters."""
    lines = (
        f"    <Property oe:key={quoteattr(key)} oe:value={quoteattr(value)}/>"
        for key, value in properties.items()
    )
    adapters = (
        f'    <ve:Adapter ve:mac="{mac}" ve:network="VM Network" ve:unitNumber="{number}"/>'
        for number, mac in enumerate(macs, start=7)
    )
    return _ENVIRONMENT.format(properties="\n".join(lines), adapters="\n".join(adapters))


def ovf_iso(
    folder: Path, name: str, properties: Mapping[str, str], macs: Sequence[str] = ("00:50:56:00:00:01",)
) -> Path:
    """Return a CD with the OVF environment of the properties."""
    source = folder / f"{name}.cd"
    source.mkdir()
    (source / "ovf-env.xml").write_text(environment(properties, macs))
    iso = folder / f"{name}.iso"
    make = ["genisoimage", "-quiet", "-J", "-R", "-V", "OVF ENV", "-o", str(iso), str(source)]
    subprocess.run(make, check=True, timeout=60)
    return iso


_ENVIRONMENT: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<Environment xmlns="http://schemas.dmtf.org/ovf/environment/1"
             xmlns:oe="http://schemas.dmtf.org/ovf/environment/1"
             xmlns:ve="http://www.vmware.com/schema/ovfenv" oe:id="" ve:vCenterId="vm-42">
  <PlatformSection>
    <Kind>VMware ESXi</Kind>
    <Version>7.0.3</Version>
    <Vendor>VMware, Inc.</Vendor>
    <Locale>en</Locale>
  </PlatformSection>
  <PropertySection>
{properties}
  </PropertySection>
  <ve:EthernetAdapterSection>
{adapters}
  </ve:EthernetAdapterSection>
</Environment>
"""
