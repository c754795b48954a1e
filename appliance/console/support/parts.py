"""The parts of an archive for a ticket: each has a name, and a function that makes its text in its turn."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec


class PartMissing(Exception):  # noqa: N818  # an outcome, reported beside the parts that are there
    """A part is not available here; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file of the archive; `made` returns its text, and may raise any exception with the reason."""

    name: str
    made: Callable[[], str]


def as_json(value: object) -> str:
    """Return a value as readable JSON; types that JSON lacks are written as in Python."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=repr), indent=2).decode() + "\n"


def of_files(files: Mapping[str, str]) -> Iterator[Part]:
    """Yield a part for each name, with its existing text."""
    for name, text in files.items():
        yield Part(name=name, made=lambda text=text: text)  # type: ignore[misc]  # the text of this turn
