"""Text for man(7): characters that roff would interpret are escaped."""

from collections.abc import Iterable, Iterator

import appliance


def escaped(text: str) -> str:
    """Return a text for use within a line; a dash is that of options, which can be copied."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")


def line(text: str) -> str:
    """Return a line of text, escaped if it begins with a full stop, which would be a request."""
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
    """Yield the lines of a text whose paragraphs are separated by blank lines."""
    for number, each in enumerate(filter(None, map(str.strip, text.split("\n\n")))):
        if number:
            yield ".PP"
        yield from (line(part.strip()) for part in each.splitlines())


def tagged(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a list of terms, each with its meaning."""
    for term, meaning in entries:
        yield ".TP"
        yield f".B {quoted(term)}"
        yield line(" ".join(meaning.split()) or "-")


def example(text: str) -> Iterator[str]:
    """Yield lines to type, unchanged."""
    yield ".EX"
    yield from map(line, text.splitlines())
    yield ".EE"
