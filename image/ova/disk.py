"""A bootable raw disk of a root file system, made offline: no loop device, no mount, no privilege.

GPT with three partitions: a MiB for GRUB's core image (BIOS), the EFI system partition with shim and GRUB as
Debian has signed them (UEFI, Secure Boot), and the root file system. GRUB's configuration is what update-grub
makes in the machine (image/vm/etc/grub.d).
"""

import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from image.ova.identity import Identity

SIZE: Final = 8 << 30
"""Bytes of the disk, of which the OVA has what is in use: room for two kernels, logs and updates."""

_SECTOR: Final = 512
_MIB: Final = (1 << 20) // _SECTOR
_BIOS_START: Final = 1 * _MIB
_BIOS_SECTORS: Final = 1 * _MIB
_ESP_START: Final = 2 * _MIB
_ESP_SECTORS: Final = 64 * _MIB  # mkfs.vfat refuses FAT32 with fewer clusters
_ROOT_START: Final = _ESP_START + _ESP_SECTORS
_END_SECTORS: Final = 1 * _MIB  # the second table of partitions is there
ROOT_OFFSET: Final = _ROOT_START * _SECTOR
"""Where the root file system begins, in bytes: debugfs and mke2fs take it."""

_BIOS_TYPE: Final = "21686148-6449-6E6F-744E-656564454649"
_ESP_TYPE: Final = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
_ROOT_TYPE: Final = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"
_CORE_MODULES: Final = (
    *(
        "biosdisk",
        "part_gpt",
        "ext2",
        "search",
        "search_fs_uuid",
        "normal",
        "configfile",
        "linux",
        "gzio",
        "test",
        "echo",
    ),
    *("boot", "minicmd", "ls", "cat", "halt", "reboot", "serial", "terminal", "keystatus", "sleep"),
)
_ROOT_INODE: Final = 2
_FIRST_INODE: Final = 11
_DIRECTORY: Final = 0o40755
_FILE: Final = 0o100644


def make(*, rootfs: Path, disk: Path, identity: Identity) -> None:
    """Write the disk; `disk` is replaced."""
    disk.unlink(missing_ok=True)
    with disk.open("wb") as file:
        file.truncate(SIZE)
    _partition(disk, identity)
    _root(rootfs, disk, identity)
    with tempfile.TemporaryDirectory() as scratch:
        _files(disk, machine_files(rootfs, identity), Path(scratch), identity)
        _esp(rootfs, disk, Path(scratch), identity)
        _bios(rootfs, disk, Path(scratch), identity)
    _times(disk, identity)


def machine_files(rootfs: Path, identity: Identity) -> Mapping[str, str]:
    """Return the files that a container has no use for, or that its build mounts over."""
    root = identity.uuid("root")
    return {
        "/etc/hostname": f"{identity.name}\n",
        "/etc/hosts": _HOSTS,
        "/etc/fstab": _FSTAB.format(root=root),
        "/boot/grub/grub.cfg": _grub_configuration(rootfs, root),
    }


def table(identity: Identity) -> str:
    """Return what sfdisk makes the partitions of."""
    root_sectors = SIZE // _SECTOR - _ROOT_START - _END_SECTORS
    parts = (
        ("bios", _BIOS_START, _BIOS_SECTORS, _BIOS_TYPE),
        ("esp", _ESP_START, _ESP_SECTORS, _ESP_TYPE),
        ("root", _ROOT_START, root_sectors, _ROOT_TYPE),
    )
    lines = [
        f"start={start}, size={size}, type={kind}, uuid={identity.uuid(f'{name}-partition')}, name={name}"
        for name, start, size, kind in parts
    ]
    return "\n".join(["label: gpt", f"label-id: {identity.uuid('disk')}", "unit: sectors", *lines, ""])


def boot_record(boot: bytes, *, core_start: int) -> bytes:
    """Return GRUB's first 440 bytes, pointed at its core image (grub-setup's work on boot.img)."""
    code = bytearray(boot[:440])
    code[0x5C:0x64] = struct.pack("<Q", core_start)
    code[0x66:0x68] = b"\x90\x90"  # trust the BIOS for the number of the drive, as for any hard disk
    return bytes(code)


def core_image(core: bytes, *, core_start: int) -> bytes:
    """Return GRUB's core image, whose first sector knows where the rest is."""
    padded = bytearray(core + bytes(-len(core) % _SECTOR))
    sectors = len(padded) // _SECTOR
    if sectors > _BIOS_SECTORS:
        raise ValueError(f"GRUB's core image has {sectors} sectors, its partition {_BIOS_SECTORS}")
    padded[0x1F4:0x200] = struct.pack("<QHH", core_start + 1, sectors - 1, 0x820)
    return bytes(padded)


def _partition(disk: Path, identity: Identity) -> None:
    _run(["sfdisk", "--quiet", str(disk)], given=table(identity))


def _root(rootfs: Path, disk: Path, identity: Identity) -> None:
    blocks = (SIZE // _SECTOR - _ROOT_START - _END_SECTORS) // 8
    # GRUB 2.06 reads neither of the two features.
    _run(
        [
            *("mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "1", "-L", "lb-root"),
            *("-O", "^metadata_csum_seed,^orphan_file", "-U", identity.uuid("root"), "-d", str(rootfs)),
            *("-E", f"offset={ROOT_OFFSET},hash_seed={identity.uuid('hash')},lazy_itable_init=1"),
            *(str(disk), str(blocks)),
        ],
        identity=identity,
    )


def _files(disk: Path, files: Mapping[str, str], scratch: Path, identity: Identity) -> None:
    commands = ["mkdir /boot/grub", f"set_inode_field /boot/grub mode 0{_DIRECTORY:o}"]
    for number, (name, text) in enumerate(files.items()):
        source = scratch / f"file-{number}"
        source.write_text(text)
        commands += [f"rm {name}", f"write {source} {name}", f"set_inode_field {name} mode 0{_FILE:o}"]
        commands += [f"set_inode_field {name} {owner} 0" for owner in ("uid", "gid")]
    commands += ["rm /etc/resolv.conf", "symlink /etc/resolv.conf /run/systemd/resolve/stub-resolv.conf"]
    debugfs(disk, commands, identity)


def debugfs(disk: Path, commands: Sequence[str], identity: Identity | None = None) -> None:
    """Change the root file system; it goes on after an error, so tests look at what must hold."""
    _run(
        ["debugfs", "-w", "-f", "-", f"{disk}?offset={ROOT_OFFSET}"],
        given="\n".join([*commands, ""]),
        identity=identity,
    )


def _times(disk: Path, identity: Identity) -> None:
    """Give every file the moment of the identity for what mke2fs took over from the machine that builds.

    When a file was changed last (mtime) is the image's own; when it was read, and when its inode was made or
    changed, is this build's.
    """
    commands = [
        f"set_inode_field <{inode}> {field} @{identity.epoch}"
        for inode in _inodes(disk)
        for field in ("atime", "ctime", "crtime")
    ]
    debugfs(disk, commands, identity)


def _inodes(disk: Path) -> Iterator[int]:
    """Yield the inodes in use: the root directory, and all behind those that ext4 has for itself."""
    said = _run(["dumpe2fs", f"{disk}?offset={ROOT_OFFSET}"])
    (count,) = re.findall(r"^Inode count: +(\d+)$", said, re.MULTILINE)
    free: set[int] = set()
    for ranges in re.findall(r"^  Free inodes: (.*)$", said, re.MULTILINE):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", ranges):
            free.update(range(int(first), int(last or first) + 1))
    yield _ROOT_INODE
    yield from (each for each in range(_FIRST_INODE, int(count) + 1) if each not in free)


def _esp(rootfs: Path, disk: Path, scratch: Path, identity: Identity) -> None:
    esp = scratch / "esp"
    with esp.open("wb") as file:
        file.truncate(_ESP_SECTORS * _SECTOR)
    _run(["mkfs.vfat", "--invariant", "-F", "32", "-n", "LB-ESP", "-i", identity.volume_id(), str(esp)])
    configuration = scratch / "esp.cfg"
    root = identity.uuid("root")
    configuration.write_text(f"search --fs-uuid --set=root {root}\nconfigfile ($root)/boot/grub/grub.cfg\n")
    _run(["mmd", "-i", str(esp), "::/EFI", "::/EFI/BOOT", "::/EFI/debian"], identity=identity)
    for source, name in (
        (rootfs / "usr/lib/shim/shimx64.efi.signed", "EFI/BOOT/BOOTX64.EFI"),
        (rootfs / "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed", "EFI/BOOT/grubx64.efi"),
        (configuration, "EFI/debian/grub.cfg"),  # where Debian's signed GRUB looks
    ):
        _run(["mcopy", "-i", str(esp), str(source), f"::/{name}"], identity=identity)
    _write(disk, esp.read_bytes(), at=_ESP_START * _SECTOR)


def _bios(rootfs: Path, disk: Path, scratch: Path, identity: Identity) -> None:
    modules = rootfs / "usr/lib/grub/i386-pc"
    early, core = scratch / "early.cfg", scratch / "core.img"
    early.write_text(f"search.fs_uuid {identity.uuid('root')} root\nset prefix=($root)/boot/grub\n")
    _run(
        [
            *("grub-mkimage", "--format", "i386-pc", "--directory", str(modules), "--prefix", "/boot/grub"),
            *("--config", str(early), "--output", str(core), *_CORE_MODULES),
        ],
        identity=identity,
    )
    boot = (modules / "boot.img").read_bytes()
    _write(disk, boot_record(boot, core_start=_BIOS_START), at=0)
    _write(disk, core_image(core.read_bytes(), core_start=_BIOS_START), at=_BIOS_START * _SECTOR)


def _write(disk: Path, data: bytes, *, at: int) -> None:
    with disk.open("r+b") as file:
        for offset in range(0, len(data), 1 << 16):
            chunk = data[offset : offset + (1 << 16)]
            if any(chunk):  # holes stay holes
                file.seek(at + offset)
                file.write(chunk)


def _run(
    command: Sequence[str],
    *,
    given: str = "",
    identity: Identity | None = None,
    more: Mapping[str, str] | None = None,
) -> str:
    epoch = {} if identity is None else {"SOURCE_DATE_EPOCH": str(identity.epoch)}
    fake = {} if identity is None else {"E2FSPROGS_FAKE_TIME": str(identity.epoch)}
    environment = {**os.environ, **epoch, **fake, "MTOOLS_SKIP_CHECK": "1", "LC_ALL": "C", **(more or {})}
    done = subprocess.run(  # noqa: S603  # by argument list
        list(command), input=given, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def _grub_configuration(rootfs: Path, root: str) -> str:
    script = rootfs / "etc/grub.d/05_appliance"
    return _run(["sh", str(script)], more={"GRUB_DEVICE_UUID": root, "GRUB_CMDLINE_LINUX": ""})


_HOSTS: Final = """\
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
ff02::1 ip6-allnodes
ff02::2 ip6-allrouters
"""

# Services have /tmp and /var/tmp of their own there: on a disk that is full none of them would start.
_FSTAB: Final = """\
UUID={root} / ext4 errors=remount-ro 0 1
tmpfs /tmp tmpfs mode=1777,nosuid,nodev,size=50% 0 0
tmpfs /var/tmp tmpfs mode=1777,nosuid,nodev,size=50% 0 0
"""
