"""A certificate authority for one test."""

from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Files of one server certificate and of the authority that signed it."""

    authority: Path
    chain: Path
    key: Path


def issue(directory: Path, *names: str) -> Certificates:
    """Write a certificate for the names and addresses, and its authority."""
    authority = trustme.CA()
    leaf = authority.issue_cert(*names)
    files = Certificates(
        authority=directory / "ca.pem", chain=directory / "chain.pem", key=directory / "key.pem"
    )
    authority.cert_pem.write_to_path(files.authority)
    leaf.private_key_pem.write_to_path(files.key)
    files.chain.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    return files
