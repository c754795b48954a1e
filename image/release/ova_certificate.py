"""The certificate of an OVA: its manifest's signature and who has signed, as DSP0243 has it.

vSphere's form and ovftool show the publisher of an archive that has one, and refuse it if the manifest was
changed.
"""

import io
import subprocess
import tarfile
from pathlib import Path


class CertificateError(Exception):
    """The OVA cannot be signed with this key and certificate."""


def sign(ova: Path, *, key: Path, certificate: Path) -> None:
    """Put a certificate behind the manifest of an OVA, in place; `key` is RSA. Raises CertificateError."""
    scratch = ova.with_suffix(".new")
    try:
        with tarfile.open(ova) as source, tarfile.open(scratch, "w", format=tarfile.USTAR_FORMAT) as target:
            for entry in source:
                if entry.name.endswith(".cert"):
                    continue
                target.addfile(entry, source.extractfile(entry))
                if entry.name.endswith(".mf"):
                    manifest = source.extractfile(entry)
                    content = _content(entry.name, manifest.read() if manifest else b"", key, certificate)
                    signed = tarfile.TarInfo(f"{entry.name.removesuffix('.mf')}.cert")
                    signed.size, signed.mtime, signed.mode = len(content), entry.mtime, entry.mode
                    target.addfile(signed, io.BytesIO(content))
    except (tarfile.TarError, OSError) as error:
        raise CertificateError(f"{ova}: {error}") from error
    scratch.replace(ova)


def _content(name: str, manifest: bytes, key: Path, certificate: Path) -> bytes:
    signature = _openssl("dgst", "-sha256", "-sign", str(key), given=manifest)
    of_key = _openssl("pkey", "-in", str(key), "-pubout")
    if _openssl("x509", "-in", str(certificate), "-noout", "-pubkey") != of_key:
        raise CertificateError(f"{certificate} is not the certificate of {key}")
    return f"SHA256({name})= {signature.hex()}\n".encode() + _openssl("x509", "-in", str(certificate))


def _openssl(*arguments: str, given: bytes | None = None) -> bytes:
    done = subprocess.run(  # noqa: S603  # by argument list
        ["openssl", *arguments],  # noqa: S607  # as who makes releases has it
        input=given,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise CertificateError(
            f"openssl {arguments[0]}: {done.stderr.decode(errors='replace').strip()[-300:]}"
        )
    return done.stdout
