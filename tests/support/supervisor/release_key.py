"""A key that signs releases, of ssh-keygen as who makes releases has one."""

import subprocess
from pathlib import Path
from typing import Final

SIGNER: Final = "lb-appliance"


class ReleaseKey:
    """A key pair below a folder; `signers` is the file by which an installed release knows it."""

    def __init__(self, folder: Path, kind: str = "ed25519") -> None:
        folder.mkdir()
        self.path, self.signers = folder / "key", folder / "release-signers"
        _ssh_keygen("-t", kind, "-N", "", "-C", "", "-f", str(self.path))
        public = self.path.with_suffix(".pub").read_text().strip()
        self.line = f'{SIGNER} namespaces="{SIGNER}" {public}\n'
        self.signers.write_text(f"# whose releases are accepted\n{self.line}")

    def sign(self, file: Path, *, namespace: str = SIGNER) -> Path:
        """Write FILE.sig beside a file, and return its path."""
        beside = file.with_name(f"{file.name}.sig")
        beside.unlink(missing_ok=True)
        _ssh_keygen("-Y", "sign", "-f", str(self.path), "-n", namespace, str(file))
        return beside


def _ssh_keygen(*arguments: str) -> None:
    subprocess.run(["ssh-keygen", "-q", *arguments], check=True, capture_output=True)
