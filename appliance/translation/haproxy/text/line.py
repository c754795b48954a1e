"""One line of haproxy.cfg: its words, and their places."""

from dataclasses import dataclass

from appliance.model.messages.problems import FilePosition
from appliance.translation.haproxy.text.words import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line with at least one word; `negation` is the `no` or `default` before its words."""

    number: int
    words: tuple[Word, ...]
    source: str
    negation: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The words without their places."""
        return tuple(each.text for each in self.words)

    @property
    def place(self) -> FilePosition:
        """The place of the first word."""
        return self.at(0)

    def text(self, index: int) -> str:
        """Return a word, "" if the line has fewer."""
        return self.words[index].text if index < len(self.words) else ""

    def at(self, index: int) -> FilePosition:
        """Return the place of a word; past the end, that of the last one."""
        word = self.words[min(index, len(self.words) - 1)]
        return FilePosition(line=self.number, column=word.column, source=self.source)
