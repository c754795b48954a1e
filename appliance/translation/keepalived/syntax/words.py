"""Comments, braces and words of a line, and the words of a command.

keepalived reads a line in two ways. Ordinary words are separated by blanks, and only `"` quotes: the text
between two of them is a separate word, and a backslash has no special meaning. On lines with a command,
`script`, `misc_path` and `notify_*`, `'` and `"` quote within words, and a backslash escapes; the first word
after the keyword is the command, and is split in the same way again (keepalived.conf(5), "Quoted strings").
"""

import re
from typing import Final

from appliance.translation.keepalived.syntax.located_text import LineError, LocatedText, Word

OPEN: Final = "{"
CLOSE: Final = "}"
COMMANDS: Final = frozenset(
    (
        *("script", "notify", "notify_master", "notify_backup", "notify_fault", "notify_stop"),
        *("notify_deleted", "notify_up", "notify_down", "quorum_up", "quorum_down", "misc_path"),
    )
)
"""Keywords of lines with a command."""

_BLANKS: Final = " \t\f\n\r\v"
_NOTED: Final = re.compile(r"[!#\"\\]")
_BRACE_OR_QUOTED: Final = re.compile(r'[{}]|"[^"]*("|$)')
_ESCAPES: Final = {"a": "\a", "b": "\b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED: Final = re.compile(r"x([0-9A-Fa-f]+)|c(.)|([0-7]{1,3})|(.)", re.DOTALL)
_UNQUOTED: Final = re.compile(rf"[^{_BLANKS}'\"\\]+")
_WITHIN: Final = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}


class CommandError(ValueError):
    """The text of a command that cannot be split into words."""


def uncommented(line: LocatedText) -> LocatedText:
    r"""Return a line without comment and outer blanks; `\#` and `\!` outside of quotes are literal.

    A backslash at the end is kept, even after a comment. Raises LineError for an unclosed quote.
    """
    line = line.stripped(" \t\r")
    comment: int | None = None
    quote: int | None = None
    at = 0
    while found := _NOTED.search(line.text, at):
        at = found.start()
        following = line.text[at + 1 : at + 2]
        if found[0] == '"' and comment is None:
            quote = at if quote is None else None
        elif found[0] == "\\" and following in ("#", "!") and following and quote is None:
            line = line.without(at)
        elif found[0] == "\\" and following:
            at += 1
        elif found[0] in "!#" and quote is None and comment is None:
            comment = at
        at += 1
    if quote is not None:
        raise LineError("this quote is not closed on its line", line.place(quote))
    if comment is None:
        return line
    kept = line.part(0, comment).stripped()
    continued = line.text.endswith("\\")
    return line.replaced(len(kept.text), len(line.text) - 1, "") if continued else kept


def first_piece(line: LocatedText) -> tuple[LocatedText, LocatedText]:
    """Return the first brace outside of quotes, or the text before it, and the rest of the line."""
    braces = (each for each in _BRACE_OR_QUOTED.finditer(line.text) if each[0] in (OPEN, CLOSE))
    brace = next(braces, None)
    if brace is None:
        return line.stripped(_BLANKS), line.part(len(line.text))
    end = brace.start() or 1
    return line.part(0, end).stripped(_BLANKS), line.part(end).stripped(_BLANKS)


def words(line: LocatedText) -> tuple[Word, ...]:
    """Return the words of a line; raises LineError for an unclosed quote."""
    found = _ordinary_words(line)
    return _words_of_command(line) if found and found[0].text in COMMANDS else found


def _words_of_command(line: LocatedText) -> tuple[Word, ...]:
    found: list[Word] = []
    rest = line.text
    while rest := rest.lstrip(_BLANKS):
        place = line.place(len(line.text) - len(rest))
        try:
            word, rest = _command_word(rest)
        except CommandError as fault:
            raise LineError(str(fault), place) from None
        found.append(Word(text=word, place=place))
    return tuple(found)


def _ordinary_words(line: LocatedText) -> tuple[Word, ...]:
    found: list[Word] = []
    at = 0
    while True:
        at += len(line.text[at:]) - len(line.text[at:].lstrip(_BLANKS))
        if at == len(line.text):
            return tuple(found)
        if line.text[at] == '"':
            stop = line.text.find('"', at + 1)
            if stop < 0:
                raise LineError("this quote is not closed on its line", line.place(at))
            found.append(Word(text=line.text[at + 1 : stop], place=line.place(at)))
            at = stop + 1
        else:
            stop = at + len(re.split(rf'[{_BLANKS}"]', line.text[at:], maxsplit=1)[0])
            found.append(Word(text=line.text[at:stop], place=line.place(at)))
            at = stop


def command_words(text: str) -> tuple[str, ...]:
    """Return the words of a command; raises CommandError for an unfinished quote or escape."""
    found: list[str] = []
    rest = text.lstrip(_BLANKS)
    while rest:
        word, rest = _command_word(rest)
        found.append(word)
        rest = rest.lstrip(_BLANKS)
    return tuple(found)


def _command_word(text: str) -> tuple[str, str]:
    word = ""
    quote = ""
    while text:
        plain = (_WITHIN[quote] if quote else _UNQUOTED).match(text)
        if plain:
            word, text = word + plain[0], text[plain.end() :]
        elif text[0] == "\\":
            character, text = _escaped(text[1:])
            word += character
        elif text[0] == quote:
            quote, text = "", text[1:]
        elif text[0] in _BLANKS:
            return word, text
        else:
            quote, text = text[0], text[1:]
    if quote:
        raise CommandError(f"the quote {quote} is not closed")
    return word, ""


def _escaped(text: str) -> tuple[str, str]:
    match = _ESCAPED.match(text)
    if match is None:
        raise CommandError("nothing follows the last backslash")
    digits, control, octal, other = match.groups()
    if digits:
        character = chr(int(digits, 16) & 0xFF)
    elif control:
        character = chr(ord(control) & 0x1F)
    elif octal:
        character = chr(int(octal, 8) & 0xFF)
    else:
        character = _ESCAPES.get(other, other)
    return character, text[match.end() :]
