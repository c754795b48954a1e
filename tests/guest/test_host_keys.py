"""Host keys in a folder, beside what ssh-keygen says of them."""

import subprocess
from pathlib import Path

import pytest

from appliance.guest.host_keys import host_keys

pytestmark = pytest.mark.sockets


def _make(folder: Path, kind: str) -> str:
    file = folder / f"ssh_host_{kind}_key"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(file)], check=True, timeout=60)
    said = subprocess.run(["ssh-keygen", "-l", "-f", str(file)], check=True, capture_output=True, timeout=60)
    return said.stdout.decode().split()[1]


@pytest.mark.programs
@pytest.mark.needs("ssh-keygen")
def test_fingerprints_are_those_of_ssh_keygen(tmp_path: Path):
    """A person compares them letter by letter."""
    made = [(kind.upper(), _make(tmp_path, kind)) for kind in ("ecdsa", "ed25519")]
    assert [(each.kind, each.fingerprint) for each in host_keys(tmp_path)] == made


@pytest.mark.parametrize(
    "text", ["", "ssh-ed25519", "ssh-ed25519 A", "ssh-ed25519 \u00e4", "ssh-ed25519 ****"]
)
def test_what_is_no_key_is_left_out(tmp_path: Path, text: str):
    """A power cut may have left a file empty; nothing is shown that ssh would not show."""
    (tmp_path / "ssh_host_ed25519_key.pub").write_text(text)
    assert host_keys(tmp_path) == ()
    assert host_keys(tmp_path / "absent") == ()
