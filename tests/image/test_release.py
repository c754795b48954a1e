"""What `make release` writes beside what it builds: notes, checksums, signatures, the same bytes again."""

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from support.documents.pages import ROOT
from support.supervisor.release_key import ReleaseKey

import appliance
from appliance.net.releases import archive, signing
from image.ova import archive as ova_archive
from image.release import __main__ as release
from image.release import ova_certificate, saved_image
from image.release.key import Key, KeyUnusable
from image.release.notes import NotesError, notes
from image.release.ova_certificate import CertificateError
from image.release.saved_image import SavedImageError

pytestmark = [pytest.mark.programs, pytest.mark.needs("ssh")]

_ARCHIVE = f"lb-appliance-{appliance.__version__}-cp311-x86_64.tar.gz"


def _changes(tmp_path: Path, *sections: str) -> Path:
    path = tmp_path / "CHANGELOG.md"
    path.write_text("# Changelog\n\n" + "\n".join(f"## [{each}]\n\n- {each} is.\n" for each in sections))
    return path


def test_notes_are_the_section_of_the_version(tmp_path: Path):
    """A signed release has one of its own; a trial may have what is not released yet."""
    path = _changes(tmp_path, "Unreleased", "0.2.0", "0.1.0")
    text = notes(path, "0.2.0", signed=True)
    assert "- 0.2.0 is.\n" in text
    assert "- 0.1.0 is." not in text
    assert "Unreleased" not in text
    assert "sha256sum --check" in text
    trial = notes(path, "0.3.0", signed=False)
    assert ("Unreleased is." in trial, "Not signed" in trial) == (True, True)
    with pytest.raises(NotesError, match=r"no section `## \[0\.3\.0\]`"):
        notes(path, "0.3.0", signed=True)


def test_a_key_that_the_release_does_not_know_is_refused(tmp_path: Path):
    """The line to commit is named: no installed release would accept what the key signs."""
    key = ReleaseKey(tmp_path / "key")
    signers = tmp_path / "signers"
    signers.write_text("# none\n")
    with pytest.raises(KeyUnusable) as error:
        Key(key.path, signers=signers, checkout=ROOT)
    signers.write_text(str(error.value).splitlines()[-1] + "\n")
    for file in (key.path, key.path.with_suffix(".pub")):
        Key(file, signers=signers, checkout=ROOT)
    with pytest.raises(KeyUnusable, match="no such file"):
        Key(tmp_path / "nothing", signers=signers, checkout=ROOT)
    with pytest.raises(KeyUnusable, match="inside the checkout"):
        Key(key.path, signers=signers, checkout=tmp_path)
    garbage = tmp_path / "garbage"
    garbage.write_text("no key")
    with pytest.raises(KeyUnusable, match="ssh-keygen cannot use it"):
        Key(garbage, signers=signers, checkout=ROOT)


@pytest.mark.parametrize("arguments", [(), ("--key", "k", "--unsigned", "yes"), ("--unsigned", "no")])
def test_without_a_key_nothing_is_built(arguments: tuple[str, ...]):
    """The first step says which key to name, and what an unsigned trial is."""
    done = subprocess.run(
        [sys.executable, "-m", "image.release", "check", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "make release KEY=FILE" in done.stderr) == (1, True)
    assert "UNSIGNED=yes" in done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What was built."""
    made = tmp_path / "release"
    made.mkdir()
    for name in (_ARCHIVE, "lb-appliance.ova", "lb-appliance.cdx.json"):
        (made / name).write_bytes(name.encode() * 1000)
    return made


@pytest.mark.promise("docs/releases.md", "checksums and signatures of a release can be verified")
def test_it_is_verified_as_its_page_says(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By the commands of notes and page, and as `appliance upgrade` does; a second time makes the same."""
    monkeypatch.setattr(release, "_CHANGELOG", _changes(tmp_path, appliance.__version__))
    key = ReleaseKey(tmp_path / "key")
    monkeypatch.setattr(release, "_SIGNERS", key.signers)
    signer = Key(key.path, signers=key.signers, checkout=ROOT)
    release.finish(folder, signer)
    first = {each.name: each.read_bytes() for each in folder.iterdir()}
    commands = [line[2:] for line in first["RELEASE-NOTES.md"].decode().splitlines() if line.startswith("$ ")]
    assert len(commands) == 2
    assert all(each in (ROOT / "docs" / "releases.md").read_text() for each in commands)
    for each in commands:
        subprocess.run(["sh", "-c", each], cwd=folder, check=True, capture_output=True)
    with archive.private_copy(folder / _ARCHIVE) as opened:
        signing.verify(opened, signing.signature_beside(folder / _ARCHIVE), signers=key.signers)
    release.finish(folder, signer)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == first
    (folder / "lb-appliance.ova").write_bytes(b"damaged")
    assert subprocess.run(["sh", "-c", commands[1]], cwd=folder, check=False, capture_output=True).returncode


def test_a_trial_has_no_signature(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its notes say so."""
    monkeypatch.setattr(release, "_CHANGELOG", _changes(tmp_path, "Unreleased"))
    release.finish(folder, None)
    assert list(folder.glob("*.sig")) == []
    assert "Not signed" in (folder / "RELEASE-NOTES.md").read_text()


def _saved(path: Path, build: str) -> Path:
    """Write an image as podman saves it, of a build whose container had this name."""
    described = {
        "container": build,
        "container_config": {"Hostname": build},
        "config": {"Hostname": build, "Healthcheck": {"Test": ["CMD", "appliance", "alive"]}},
        "rootfs": {"diff_ids": ["sha256:0"]},
    }
    content = json.dumps(described).encode()
    name = f"{hashlib.sha256(content).hexdigest()}.json"
    image = {"Config": name, "RepoTags": ["localhost/lb-appliance:1"], "Layers": ["layer.tar"]}
    files = {
        "layer.tar": b"layer", name: content, "manifest.json": json.dumps([image]).encode(), build: b"old",
    }  # fmt: skip
    with tarfile.open(path, "w") as made:
        for each, data in files.items():
            entry = tarfile.TarInfo(each)
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return path


def test_an_image_is_the_same_whichever_build_made_it(tmp_path: Path):
    """The names of one build are left out; layers, tags and the health check are as they were."""
    made = [saved_image.write(_saved(tmp_path / f"{build}.tar", build)) for build in ("first", "second")]
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as opened:
        contents = {each.name: opened.extractfile(each).read() for each in opened}  # type: ignore[union-attr]  # files
    (image,) = json.loads(contents["manifest.json"])
    assert contents.keys() == {"manifest.json", image["Config"], "layer.tar"}
    assert image["RepoTags"] == ["localhost/lb-appliance:1"]
    assert hashlib.sha256(contents[image["Config"]]).hexdigest() == image["Config"].removesuffix(".json")
    assert "Healthcheck" in json.loads(contents[image["Config"]])["config"]


def _shell(command: str, folder: Path) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["sh", "-c", command], cwd=folder, check=False, capture_output=True)


def _authority(folder: Path, name: str) -> tuple[Path, Path]:
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-days", "9"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return key, certificate


@pytest.mark.needs("openssl")
@pytest.mark.promise("docs/releases.md", "the OVA's publisher can be verified")
def test_the_publisher_of_an_ova(tmp_path: Path):
    """Openssl finds the manifest's signature good as the page says; signed again the archive is the same."""
    stem = f"lb-appliance-{appliance.__version__}"
    parts = {f"{stem}.ovf": b"<Envelope/>", f"{stem}.mf": b"", f"{stem}-disk1.vmdk": b"disk" * 1000}
    files = [tmp_path / name for name in parts]
    for file, content in zip(files, parts.values(), strict=True):
        file.write_bytes(content)
    files[1].write_text(ova_archive.manifest([files[0], files[2]]))
    ova = tmp_path / f"{stem}.ova"
    ova_archive.write(ova, files, epoch=1)
    key, certificate = _authority(tmp_path, "publisher")
    ova_certificate.sign(ova, key=key, certificate=certificate)
    first = ova.read_bytes()
    with tarfile.open(ova) as opened:
        assert opened.getnames() == [f"{stem}.ovf", f"{stem}.mf", f"{stem}.cert", f"{stem}-disk1.vmdk"]
        assert {(each.mtime, each.mode) for each in opened} == {(1, 0o644)}
    page = (ROOT / "docs" / "releases.md").read_text()
    commands = [line[2:] for line in page.splitlines() if line.startswith(("$ tar", "$ openssl", "$ sed"))]
    assert len(commands) == 4
    verified = tmp_path / "verified"
    verified.mkdir()
    ova.rename(verified / ova.name)
    done = [
        subprocess.run(["sh", "-c", each], cwd=verified, check=True, capture_output=True) for each in commands
    ]
    assert done[-1].stdout == b"Verified OK\n"
    assert "CN = publisher" in (verified / "publisher.pem").read_text()
    (verified / f"{stem}.mf").write_text("changed")
    assert subprocess.run(
        ["sh", "-c", commands[-1]], cwd=verified, check=False, capture_output=True
    ).returncode
    ova_certificate.sign(verified / ova.name, key=key, certificate=certificate)
    assert (verified / ova.name).read_bytes() == first
    with pytest.raises(CertificateError, match="is not the certificate of"):
        ova_certificate.sign(verified / ova.name, key=key, certificate=_authority(tmp_path, "other")[1])
    with pytest.raises(CertificateError, match="openssl dgst"):
        ova_certificate.sign(verified / ova.name, key=certificate, certificate=certificate)
    assert (verified / ova.name).read_bytes() == first
    with pytest.raises(CertificateError):
        ova_certificate.sign(key, key=key, certificate=certificate)


@pytest.mark.parametrize("content", [b"", b"garbage", gzip.compress(b"x", mtime=0)])
def test_what_is_no_image_is_named(content: bytes, tmp_path: Path):
    """An archive that podman has not written is an error."""
    path = tmp_path / "saved.tar"
    path.write_bytes(content)
    with pytest.raises(SavedImageError, match="no image"):
        saved_image.write(path)


@pytest.mark.parametrize(
    ("binfmt", "shown"), [("/nonexistent", "NOT MADE: the image for"), ("/", "--platform linux/")]
)
def test_the_image_for_the_other_processor_is_made_where_it_can_be(binfmt: str, shown: str):
    """Where the kernel starts its programs; elsewhere the maker reads that it is missing."""
    make = ["make", "--dry-run", "release-image-other", f"BINFMT={binfmt}"]
    assert shown in subprocess.run(make, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_files_of_the_platforms_are_an_archive(tmp_path: Path):
    """With all that its README names, and nothing that is made; a second time the same bytes."""
    archives = []
    for each in ("one", "two"):
        make = ["make", "release-platforms", f"RELEASE={tmp_path / each}", "SOURCE_DATE_EPOCH=1"]
        subprocess.run(make, cwd=ROOT, check=True, capture_output=True)
        archives += (tmp_path / each).iterdir()
    first, second = archives
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {
        "compose.yaml",
        "from-archive.Containerfile",
        "coreos/appliance.bu",
        "vsphere/deploy.py",
        "haproxy-pod.yaml",
        "README.md",
    } <= names
    assert not [name for name in names if "__" in name or name.endswith(".tfstate")]
