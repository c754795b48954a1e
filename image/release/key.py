"""The key that signs a release, by ssh-keygen: its file, or its public half if an agent or a token has it."""

import subprocess
from pathlib import Path
from typing import Final

SIGNER: Final = "lb-appliance"
"""Who signs, and what for: the principal and the namespace of config/release-signers."""


class KeyUnusable(Exception):  # noqa: N818  # what was found
    """No release can be signed with it."""


class Key:
    """A key that the release itself will accept."""

    def __init__(self, file: Path, *, signers: Path, checkout: Path) -> None:
        """Look at it; raises KeyUnusable."""
        if not file.is_file():
            raise KeyUnusable(f"KEY={file}: there is no such file")
        if file.suffix != ".pub" and file.resolve().is_relative_to(checkout.resolve()):
            raise KeyUnusable(f"KEY={file}: it is inside the checkout: keep a private key elsewhere")
        self._file = file
        kind, words = self._public().split()[:2]
        if words not in signers.read_text().split():
            line = f'{SIGNER} namespaces="{SIGNER}" {kind} {words}'
            raise KeyUnusable(
                f"KEY={file}: {signers} does not know it, so that no installed release would accept what it"
                f" signs. If it is the key of releases, commit this line there:\n{line}"
            )

    def sign(self, file: Path) -> Path:
        """Write FILE.sig and return its path; raises KeyUnusable."""
        beside = file.with_name(f"{file.name}.sig")
        beside.unlink(missing_ok=True)
        self._run("-Y", "sign", "-f", str(self._file), "-n", SIGNER, str(file))
        return beside

    def _public(self) -> str:
        if self._file.suffix == ".pub":
            return self._file.read_text()
        return self._run("-y", "-f", str(self._file))

    def _run(self, *arguments: str) -> str:
        # No pipe but the output: ssh-keygen asks for a passphrase at the terminal.
        done = subprocess.run(  # noqa: S603  # by argument list
            ["ssh-keygen", *arguments],  # noqa: S607  # as who makes releases has it
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            raise KeyUnusable(f"KEY={self._file}: ssh-keygen cannot use it")
        return done.stdout
