"""Text as man(7) takes it: what roff would obey is written so that it is shown."""

from collections.abc import Iterable, Iterator

import appliance


def escaped(text: str) -> str:
    """Return a text that stands in a line; a dash is the one of options, which can be copied."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")


def line(text: str) -> str:
    """Return a line of text: one that begins with a full stop would be a request."""
    said = escaped(text)
    return f"\\&{said}" if said.startswith(".") else said


def quoted(text: str) -> str:
    """Return an argument of a macro."""
    return '"' + escaped(text).replace('"', "\\(dq") + '"'


def head(name: str, summary: str, *, section: int) -> Iterator[str]:
    """Yield the title of a page, and the section NAME."""
    title = f"appliance {appliance.__version__}"
    yield f'.TH {quoted(name.upper())} {section} "" {quoted(title)} "Load balancer"'
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {summary[:1].lower()}{summary[1:]}"


def paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a text whose paragraphs are parted by blank lines."""
    for number, each in enumerate(filter(None, map(str.strip, text.split("\n\n")))):
        if number:
            yield ".PP"
        yield from (line(part.strip()) for part in each.splitlines())


def tagged(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a list of terms, each with what it means."""
    for term, meaning in entries:
        yield ".TP"
        yield f".B {quoted(term)}"
        yield line(" ".join(meaning.split()) or "-")


def example(text: str) -> Iterator[str]:
    """Yield lines that are to be typed, as they are."""
    yield ".EX"
    yield from map(line, text.splitlines())
    yield ".EE"
