"""Give every component of a CycloneDX list its licence: `licences.py LIST ROOT OUT`.

Writes OUT.cdx.json, which is checked against CycloneDX's schema, and OUT.licences.txt for people. What the
tools that made the list found stays. What they leave out are Debian packages whose copyright file names a
licence that SPDX does not know: those names are taken as they stand. A copyright file in prose is not guessed
at: it is listed as not machine-readable, with its place.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseAcknowledgement, LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from debian.copyright import Copyright, MachineReadableFormatError, NotMachineReadableError
from debsbom.apt.copyright import Copyright as KnownCopyright
from debsbom.apt.copyright import UnknownLicenseError
from license_expression import ExpressionError, combine_expressions

VERSION = SchemaVersion.V1_6
PROSE = "not machine-readable"
MISSING = "no copyright file in the image"
_OWN_WORDS = "declared license of"
_FILE = "declared license file:"
_LONGEST = 200
_DECLARED = LicenseAcknowledgement.DECLARED


def copyright_file(component: Component) -> str:
    """Return where Debian's policy (12.5) has the licence of a binary package."""
    return f"/usr/share/doc/{component.name}/copyright"


def debian_licence(path: Path) -> LicenseExpression | DisjunctiveLicense | None:
    """Return what a copyright file states: SPDX's expression, else its own words, and None for prose."""
    try:
        expressions = [str(each) for each in KnownCopyright(path).spdx_license_expressions()]
        return LicenseExpression(str(combine_expressions(expressions)), acknowledgement=_DECLARED)
    except (ExpressionError, UnknownLicenseError):
        names = list(dict.fromkeys(_names(path)))
        return DisjunctiveLicense(name="; ".join(names), acknowledgement=_DECLARED) if names else None


def _names(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as file:
            found = Copyright(file, strict=False)
    except (NotMachineReadableError, MachineReadableFormatError, ValueError):
        return
    stated = [found.header.license, *(each.license for each in found.all_files_paragraphs())]
    yield from (each.synopsis for each in stated if each and each.synopsis)


def fill_in(bom: Bom, root: Path) -> None:
    """Add what is missing, to binary packages and then to the sources that they are built from."""
    for each in bom.components:
        each.licenses = map(_named, each.licenses)
        if is_debian(each) and not is_source(each) and not each.licenses:
            path = root / copyright_file(each).lstrip("/")
            licence = debian_licence(path) if path.is_file() else None
            _state(each, licence, f"{PROSE if path.is_file() else MISSING}: {copyright_file(each)}")
    by_reference = {each.bom_ref.value: each for each in bom.components}
    for dependency in bom.dependencies:
        binary = by_reference.get(dependency.ref.value)
        for needed in dependency.dependencies:
            source = by_reference.get(needed.ref.value)
            if binary and source and is_source(source) and not source.licenses and not said(source):
                _state(source, next(iter(binary.licenses), None), said(binary))


def _named(licence: LicenseExpression | DisjunctiveLicense) -> LicenseExpression | DisjunctiveLicense:
    """Return a licence by the words of its distribution, where the list only says that there are some."""
    if isinstance(licence, LicenseExpression) or licence.text is None or licence.text.encoding is not None:
        return licence
    if not (licence.name or "").startswith(_OWN_WORDS):
        return licence
    words = " ".join(licence.text.content.split())
    return DisjunctiveLicense(name=words[:_LONGEST], acknowledgement=licence.acknowledgement)


def _state(
    component: Component, licence: LicenseExpression | DisjunctiveLicense | None, otherwise: str
) -> None:
    if licence:
        component.licenses.add(licence)
    else:
        component.properties.add(Property(name="licence", value=otherwise))


def is_debian(component: Component) -> bool:
    """Return whether it is a package of Debian's, binary or source."""
    return component.purl is not None and component.purl.type == "deb"


def is_source(component: Component) -> bool:
    """Return whether it is a source package, which is not in the image itself."""
    return is_debian(component) and dict(component.purl.qualifiers).get("arch") == "source"


def said(component: Component) -> str:
    """Return what stands in place of a licence, "" where one is stated."""
    return next((each.value or "" for each in component.properties if each.name == "licence"), "")


def in_words(component: Component) -> str:
    """Return the licence as people read it."""
    words = [
        each.value if isinstance(each, LicenseExpression) else each.id or each.name or ""
        for each in component.licenses
    ]
    naming = [each for each in words if each and not each.startswith(_FILE)]  # a file's name names no licence
    return " AND ".join(naming) or said(component) or "none stated"


def table(bom: Bom) -> Iterator[str]:
    """Return the lines for people: what is in the image, not what it was built from."""
    inside = [each for each in bom.components if not is_source(each)]
    subject = bom.metadata.component
    yield f"{subject.name} {subject.version}: {len(inside)} parts and their licences"
    yield "Texts: /usr/share/doc/*/copyright and *.dist-info/ below /opt/appliance in the image."
    for each in inside:
        kind = each.purl.type if each.purl else "own"
        yield f"{kind:6} {each.name:32} {each.version or '-':36} {in_words(each)}"


def main(source: str, root: str, out: str) -> int:
    """Read, fill in, check, write; returns the exit status."""
    bom = Bom.from_json(json.loads(Path(source).read_text()))
    bom.metadata.component.type = ComponentType.CONTAINER
    fill_in(bom, Path(root))
    text = make_outputter(bom, OutputFormat.JSON, VERSION).output_as_string(indent=2)
    if error := JsonStrictValidator(VERSION).validate_str(text):
        sys.stderr.write(f"not CycloneDX {VERSION.to_version()}: {error}\n")
        return 1
    Path(f"{out}.cdx.json").write_text(f"{text}\n")
    Path(f"{out}.licences.txt").write_text("\n".join(table(bom)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
