"""The parts of an archive for a ticket, each made when its turn comes: a name, and what makes its text."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec


class PartMissing(Exception):  # noqa: N818  # an outcome, told beside the parts that are there
    """A part cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file of the archive; `made` returns its text, and may raise anything that says why it cannot."""

    name: str
    made: Callable[[], str]


def as_json(value: object) -> str:
    """Return a value as JSON that people can read; what JSON has no word for is written as Python does."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=repr), indent=2).decode() + "\n"


def of_files(files: Mapping[str, str]) -> Iterator[Part]:
    """Yield a part for each name, with the text that is there already."""
    for name, text in files.items():
        yield Part(name=name, made=lambda text=text: text)  # type: ignore[misc]  # the text of this turn
