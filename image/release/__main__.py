"""`python -m image.release STEP`: the steps of `make release` that build nothing.

`check` says, before anything is built, whether the release may be made. `image SAVED` writes SAVED.gz, an
archive of podman that is the same for the same image. `ova OVA` signs its manifest. `finish FOLDER` writes
notes, checksums and signatures.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import appliance
from image.release import ova_certificate, saved_image
from image.release.key import Key, KeyUnusable
from image.release.notes import NotesError, notes
from image.release.ova_certificate import CertificateError

_CHECKOUT: Final = Path(__file__).parents[2]
_SIGNERS: Final = _CHECKOUT / "config" / "release-signers"
_CHANGELOG: Final = _CHECKOUT / "CHANGELOG.md"
_SUMS: Final = "SHA256SUMS"
_NO_KEY: Final = (
    "name the key that signs: make release KEY=FILE (CONTRIBUTING.md, Releases). For a trial, which only"
    " `appliance upgrade --unsigned` accepts: make release UNSIGNED=yes"
)


def main() -> int:
    """Do one step; returns the exit status."""
    parser = argparse.ArgumentParser(prog="image.release")
    parser.add_argument("step", choices=["check", "image", "ova", "finish"])
    parser.add_argument("place", type=Path, nargs="?", default=Path())
    parser.add_argument("--key", default="")
    parser.add_argument("--unsigned", default="")
    parser.add_argument("--ova-key", default="")
    parser.add_argument("--ova-certificate", default="")
    arguments = parser.parse_args()
    try:
        if arguments.step == "image":
            saved_image.write(arguments.place)
            return 0
        if arguments.step == "ova":
            certify(arguments.place, arguments.ova_key, arguments.ova_certificate)
            return 0
        key = _key(arguments.key, arguments.unsigned)
        if arguments.step == "check":
            check(key)
        else:
            finish(arguments.place, key)
    except (KeyUnusable, NotesError, saved_image.SavedImageError, CertificateError) as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    return 0


def _key(file: str, unsigned: str) -> Key | None:
    if bool(file) == (unsigned == "yes"):
        raise KeyUnusable(_NO_KEY)
    return Key(Path(file), signers=_SIGNERS, checkout=_CHECKOUT) if file else None


def check(key: Key | None) -> None:
    """Raise if the release may not be made: what is signed is a commit, with its section of the changes."""
    notes(_CHANGELOG, appliance.__version__, signed=key is not None)
    if key is None:
        return
    changed = subprocess.run(
        ["git", "status", "--porcelain"],  # noqa: S607  # as who makes releases has it
        cwd=_CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if changed:
        raise NotesError(f"the checkout is not what is committed:\n{changed}")


def certify(ova: Path, key: str, certificate: str) -> None:
    """Sign the OVA's manifest if a key and its certificate are given, and say so if not."""
    if bool(key) != bool(certificate):
        raise CertificateError("OVA_KEY and OVA_CERTIFICATE go together")
    if not key:
        sys.stdout.write("release: the OVA has no publisher: OVA_KEY= and OVA_CERTIFICATE= name one\n")
        return
    ova_certificate.sign(ova, key=Path(key), certificate=Path(certificate))


def finish(folder: Path, key: Key | None) -> None:
    """Write what says of the other files what they are, and sign."""
    text = notes(_CHANGELOG, appliance.__version__, signed=key is not None)
    (folder / "RELEASE-NOTES.md").write_text(text)
    shutil.copyfile(_CHECKOUT / "LICENSE", folder / "LICENSE")
    shutil.copyfile(_SIGNERS, folder / "release-signers")
    files = sorted(each for each in folder.iterdir() if each.name != _SUMS and each.suffix != ".sig")
    sums = folder / _SUMS
    sums.write_text("".join(f"{_sha256(each)}  {each.name}\n" for each in files))
    if key:
        for each in (sums, *folder.glob("*.tar.gz")):
            key.sign(each)


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
