"""`python -m image.ova ROOTFS FOLDER`: make FOLDER/lb-appliance-VERSION.ova of a root file system.

SOURCE_DATE_EPOCH is the moment of everything in it.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

import appliance
from image.ova import archive, disk, vmdk
from image.ova.descriptor import Disk, Product, descriptor
from image.ova.identity import Identity

_NAME: Final = "lb-appliance"


def main() -> int:
    """Make it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="image.ova")
    parser.add_argument("rootfs", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    identity = Identity(
        name=_NAME, version=appliance.__version__, epoch=int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    )
    ova = make(rootfs=arguments.rootfs, folder=arguments.folder, identity=identity)
    sys.stdout.write(f"{ova.name}: {ova.stat().st_size / 1e6:.0f} MB\n")
    return 0


def make(*, rootfs: Path, folder: Path, identity: Identity) -> Path:
    """Write the OVA, and return where it is; what it is made of is in a folder beside it until it is done."""
    stem = f"{identity.name}-{identity.version}"
    with tempfile.TemporaryDirectory(dir=folder, prefix=".ova-") as scratch:
        parts = Path(scratch)
        raw, image = parts / "disk.raw", parts / f"{stem}-disk1.vmdk"
        disk.make(rootfs=rootfs, disk=raw, identity=identity)
        sizes = vmdk.convert(raw, image, identity)
        form = parts / f"{stem}.ovf"
        form.write_bytes(
            descriptor(
                Product(name=identity.name, version=identity.version),
                Disk(
                    file=image.name,
                    size=image.stat().st_size,
                    capacity=sizes.capacity,
                    populated=sizes.populated,
                ),
            )
        )
        manifest = parts / f"{stem}.mf"
        manifest.write_text(archive.manifest([form, image]))
        ova = folder / f"{stem}.ova"
        archive.write(ova, [form, manifest, image], epoch=identity.epoch)
    return ova


if __name__ == "__main__":
    sys.exit(main())
