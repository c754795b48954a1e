"""Pictures are what their text says, and that of today."""

from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from support.documents.pages import name_of
from support.documents.pictures import PICTURES, drawn

pytestmark = pytest.mark.pure

_SVG: Final = "{http://www.w3.org/2000/svg}"


def _parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314  # our own


@pytest.mark.parametrize("source", sorted(PICTURES.glob("*.txt")), ids=name_of)
def test_it_is_up_to_date(source: Path):
    """`make pages` draws them."""
    assert source.with_suffix(".svg").read_text() == drawn(source.read_text())


def test_each_has_its_text():
    """Nothing is drawn by hand."""
    sources, pictures = ({each.stem for each in PICTURES.glob(f"*.{kind}")} for kind in ("txt", "svg"))
    assert sources == pictures
    assert len(sources) >= 5


def test_every_word_is_in_it():
    """Words stay words; neighbours two spaces apart are two texts; a screen reader gets the title."""
    root = _parsed(drawn("A & B\n\n one word  ┌─▶ two<\n"))
    assert root.attrib["aria-label"] == "A & B"
    assert root.findtext(f"{_SVG}title") == "A & B"
    assert [each.text for each in root.iter(f"{_SVG}text")] == ["one word", "two<"]
    assert len([*root.iter(f"{_SVG}polygon")]) == 1


def test_lines_meet():
    """A corner ends where the line that goes on begins."""
    root = _parsed(drawn("title\n\n┌─\n│\n"))
    paths = [each.attrib["d"] for each in root.iter(f"{_SVG}path")]
    assert paths == [
        "M16.2 21.0L20.4 21.0M16.2 21.0L16.2 30.0",
        "M20.4 21.0h8.4",
        "M16.2 39.0L16.2 30.0M16.2 39.0L16.2 48.0",
    ]


@pytest.mark.parametrize("kind", ["dark", "light"])
def test_every_kind_of_shape_has_a_colour(kind: str):
    """In the colours for a light page, and in those for a dark one."""
    style = drawn("title\n\nx\n").split("<style>")[1].split("</style>")[0]
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    said = {"dark": dark, "light": light}[kind]
    assert all(
        f"{each} {{" in said for each in ("rect.page", "text", "path", "polygon", "rect.first", "rect.second")
    )


@pytest.mark.parametrize("text", ["no picture\nat once\n", "\n\n─\n", "a tab\n\n\t─\n"])
def test_what_is_no_picture(text: str):
    """A picture without a title, or with tabs, whose width nobody knows, is refused."""
    with pytest.raises(ValueError, match="a picture is"):
        drawn(text)
