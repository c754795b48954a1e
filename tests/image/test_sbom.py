"""`make sbom`: what it lists is what dpkg and Python say of the image, and every part has its licence."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines import podman
from support.machines.podman import measured

import appliance

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", root=True),
    pytest.mark.slow("builds an image of its own"),
]

Component = dict[str, object]

_PROSE = "not machine-readable: /usr/share/doc/"
_METADATA = (
    "import importlib.metadata as m; print(*(f'{d.name} {d.version}' for d in m.distributions()), sep='\\n')"
)


@pytest.fixture(scope="module")
def listed(image: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The list that `make sbom` writes of the image."""
    return podman.list_parts(tmp_path_factory.mktemp("dist"), image)


def _in_image(*command: str) -> str:
    run = ("run", "--rm", "--network", "none", "--entrypoint", command[0], podman.IMAGE, *command[1:])
    return podman.podman(*run).stdout


def _components(listed: Path, kind: str = "") -> Iterator[Component]:
    for each in json.loads(listed.read_text())["components"]:
        if str(each.get("purl", "")).startswith(f"pkg:{kind}") or not kind:
            yield each


def _versions(components: Iterator[Component]) -> dict[object, object]:
    return {str(each["name"]).lower(): each["version"] for each in components}


def _licence(component: Component) -> str:
    """Return what is said of the licence: SPDX's words, Debian's, or that no machine can read it."""
    said: list[object] = []
    for each in component.get("licenses", ()):
        inner = each.get("license", {})
        said.append(each.get("expression") or inner.get("id") or inner.get("name"))
    said += [each["value"] for each in component.get("properties", ()) if each["name"] == "licence"]
    assert all(isinstance(each, str) and each for each in said)
    return " AND ".join(map(str, said))


def test_every_debian_package(listed: Path):
    """Every package that dpkg knows is listed with its version, and no other."""
    words = _in_image("dpkg-query", "--show", "--showformat", "${binary:Package} ${Version}\\n").splitlines()
    installed = {name.partition(":")[0]: version for name, version in (line.split() for line in words)}
    binaries = (each for each in _components(listed, "deb/") if "arch=source" not in str(each["purl"]))
    assert _versions(binaries) == installed


def test_every_python_package(listed: Path):
    """Every distribution of the image's Python is listed with its version, and no other."""
    words = _in_image("/opt/appliance/bin/python", "-c", _METADATA).splitlines()
    installed = {name.lower(): version for name, version in (line.split() for line in words)}
    assert installed.pop("lb-appliance") == appliance.__version__
    assert _versions(_components(listed, "pypi/")) == installed


def test_our_own_package(listed: Path):
    """The appliance itself is listed, with its licence."""
    (ours,) = (each for each in _components(listed) if each["name"] == "lb-appliance")
    assert ours["version"] == appliance.__version__
    assert _licence(ours) == "Apache-2.0"


def test_what_is_compiled_into_wheels(listed: Path):
    """What a wheel says is compiled into it is listed as well (PEP 770)."""
    assert "pyo3" in _versions(_components(listed, "cargo/"))


def test_every_part_has_its_licence(listed: Path):
    """Each part has a licence; where Debian states it in prose the list says so, and where the prose is."""
    said = {str(each["bom-ref"]): _licence(each) for each in _components(listed)}
    assert [name for name, licence in said.items() if not licence] == []
    assert [name for name, licence in said.items() if "declared license of" in licence] == []
    prose = [licence for licence in said.values() if not licence.startswith(_PROSE)]
    measured(f"sbom: {len(said)} parts, {len(said) - len(prose)} with a licence in prose only")
    assert len(prose) > len(said) / 2


def test_licences_for_people(listed: Path):
    """The table has a line for each part that is in the image."""
    lines = listed.with_name(listed.name.replace(".cdx.json", ".licences.txt")).read_text().splitlines()
    inside = [each for each in _components(listed) if "arch=source" not in str(each.get("purl"))]
    assert len(lines) == 2 + len(inside)
    assert not [line for line in lines if line.endswith("none stated") or "declared license" in line]


def test_same_image_same_list(listed: Path, tmp_path: Path):
    """Listed again, the image gives the same bytes."""
    assert podman.list_parts(tmp_path, podman.IMAGE).read_bytes() == listed.read_bytes()


def test_no_valid_list(listed: Path, tmp_path: Path):
    """What does not follow CycloneDX's schema is refused, and nothing is written."""
    broken = json.loads(listed.read_text())
    broken["components"][0]["licenses"] = [{"license": {"id": "No-Such-Licence"}}]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    check = ("--entrypoint", "python3", "--network", "none", "--volume", f"{tmp_path}:/dist")
    done = podman.podman(
        *("run", "--rm", *check, "localhost/lb-sbom", "licences.py", "/dist/broken.json", "/", "/dist/out"),
        check=False,
    )
    assert done.returncode == 1
    assert "No-Such-Licence" in done.stderr
    assert not list(tmp_path.glob("out*"))
