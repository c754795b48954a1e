"""Who has signed an archive: by real keys of ssh-keygen, and by everything else."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.supervisor.release_key import ReleaseKey

from appliance.net.releases import archive, signing
from appliance.net.releases.signing import SignatureRefused, signature_beside, verify

pytestmark = [pytest.mark.programs, pytest.mark.needs("ssh")]


@pytest.fixture
def key(tmp_path: Path) -> ReleaseKey:
    """The key that the installed release knows."""
    return ReleaseKey(tmp_path / "ours")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An archive, as far as a signature cares."""
    made = tmp_path / "lb-appliance-9.9.9.tar.gz"
    made.write_bytes(bytes(range(256)) * 4096)
    return made


def _refused(file: Path, signers: Path) -> str:
    with archive.private_copy(file) as opened, pytest.raises(SignatureRefused) as error:
        verify(opened, signature_beside(file), signers=signers)
    assert error.value.step
    return str(error.value)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_signed_one_is_accepted(kind: str, file: Path, tmp_path: Path):
    """Whatever kind of key it is; the file is left at its beginning."""
    key = ReleaseKey(tmp_path / "ours", kind)
    key.sign(file)
    with archive.private_copy(file) as opened:
        found = verify(opened, signature_beside(file), signers=key.signers)
        assert opened.read() == file.read_bytes()
    assert found.fingerprint.startswith("SHA256:")


def test_one_of_several_keys_is_enough(file: Path, key: ReleaseKey, tmp_path: Path):
    """While a key is replaced, releases know the former and the next one."""
    former = ReleaseKey(tmp_path / "former")
    key.signers.write_text(former.line + key.line)
    for each in (former, key):
        each.sign(file)
        with archive.private_copy(file) as opened:
            verify(opened, signature_beside(file), signers=key.signers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    file: Path
    key: ReleaseKey
    other: ReleaseKey


def _nothing(it: _Offered) -> None:
    assert not it.file.with_name(f"{it.file.name}.sig").exists()


def _by_another(it: _Offered) -> None:
    it.other.sign(it.file)


def _for_something_else(it: _Offered) -> None:
    it.key.sign(it.file, namespace="git")


def _then_changed(it: _Offered) -> None:
    it.key.sign(it.file)
    it.file.write_bytes(it.file.read_bytes()[:-1] + b"x")


def _of_another_file(it: _Offered) -> None:
    another = it.file.with_name("another")
    another.write_bytes(b"another")
    it.key.sign(another).rename(it.file.with_name(f"{it.file.name}.sig"))


def _damaged(it: _Offered) -> None:
    beside = it.key.sign(it.file)
    lines = beside.read_text().splitlines()
    lines[4] = lines[4].swapcase()
    beside.write_text("\n".join(lines))


def _garbage(it: _Offered) -> None:
    it.file.with_name(f"{it.file.name}.sig").write_bytes(b"\xff" * 100_000)


def _pipe(it: _Offered) -> None:
    os.mkfifo(it.file.with_name(f"{it.file.name}.sig"))


def _expired(it: _Offered) -> None:
    it.key.sign(it.file)
    it.key.signers.write_text(it.key.line.replace(" namespaces=", ' valid-before="20200101",namespaces='))


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (_nothing, "it is not signed"),
        (_by_another, "a key that the installed release does not know: SHA256:"),
        (_for_something_else, "is one for 'git'"),
        (_then_changed, "of other content"),
        (_of_another_file, "of other content"),
        (_damaged, "of other content"),
        (_garbage, "damaged, or none"),
        (_pipe, "damaged, or none"),
        (_expired, "the key's time is over"),
    ],
)
def test_everything_else_is_refused(
    happens: Callable[[_Offered], None],
    reason: str,
    file: Path,
    key: ReleaseKey,
    tmp_path: Path,
):
    """Each with its reason: no signature, a foreign key, other content, damage."""
    happens(_Offered(file=file, key=key, other=ReleaseKey(tmp_path / "other")))
    assert reason in _refused(file, key.signers)


def test_a_release_without_a_key_accepts_nothing(file: Path, key: ReleaseKey, tmp_path: Path):
    """Comments are no keys; and a file that is missing is named."""
    key.sign(file)
    signers = tmp_path / "none"
    signers.write_text("".join(f"# {line}\n" for line in key.line.splitlines()))
    assert "has no key" in _refused(file, signers)
    assert "No such file" in _refused(file, tmp_path / "missing")


def test_without_ssh_keygen(file: Path, key: ReleaseKey, monkeypatch: pytest.MonkeyPatch):
    """The package that has it is named."""
    key.sign(file)
    monkeypatch.setattr(signing, "_ENVIRONMENT", {"PATH": "/nonexistent"})
    assert "there is no ssh-keygen here" in _refused(file, key.signers)


def test_one_that_hangs_is_ended(
    file: Path, key: ReleaseKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It has a deadline."""
    key.sign(file)
    program = tmp_path / "ssh-keygen"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(signing, "_ENVIRONMENT", {"PATH": f"{tmp_path}:/bin:/usr/bin"})
    monkeypatch.setattr(signing, "_PATIENCE", 0.2)
    assert "did not end within 0.2 s" in _refused(file, key.signers)


def test_a_signature_that_cannot_be_read(tmp_path: Path):
    """It is named; one that is not there is none."""
    file = tmp_path / "release.tar.gz"
    assert signature_beside(file) is None
    file.with_name("release.tar.gz.sig").mkdir()
    with pytest.raises(SignatureRefused, match="Is a directory"):
        signature_beside(file)


def test_what_is_verified_is_what_is_unpacked(tmp_path: Path):
    """The owner of the file may write to it meanwhile: the copy stays as it was."""
    file = tmp_path / "release.tar.gz"
    file.write_bytes(b"signed")
    with archive.private_copy(file) as opened:
        file.write_bytes(b"changed")
        assert opened.read() == b"signed"
