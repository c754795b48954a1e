"""Go's text/template, as far as OpenShift's templates use it, in place of `runtimecfg`'s renderer.

Understood: fields of the data (`.A.B`, `$.A`, `$name.B`), variables (`$name :=` and `=`), `range` over lists
with one or two variables and `else`, `if` / `else if` / `else`, `with`, comments, `{{-` and `-}}`,
parentheses, strings in quotes and backquotes, whole numbers, true and false, and the functions of
`_FUNCTIONS`. Anything else, and a field that the data does not have, is a GoTemplateError: Go ends with an
error there too.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

Value = object
Variables = ChainMap[str, Value]
"""By name with its `$`; a child for each block."""


class GoTemplateError(Exception):
    """The template says something that is not understood, or asks for what the data does not have."""


_FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "and": lambda *each: next((one for one in each if not one), each[-1]),
    "or": lambda *each: next((one for one in each if one), each[-1]),
    "not": lambda one: not one,
    "len": len,
    "index": lambda whole, *places: _index(whole, places),
    "eq": lambda one, *others: any(one == each for each in others),
    "ne": lambda one, other: one != other,
    "lt": lambda one, other: one < other,
    "le": lambda one, other: one <= other,
    "gt": lambda one, other: one > other,
    "ge": lambda one, other: one >= other,
    "printf": lambda form, *each: form.replace("%v", "%s") % each,
}

_CONSTANTS: Final = {"true": True, "false": False}

_ACTION: Final = re.compile(
    r"\{\{(-\s)?((?:`[^`]*`|\"(?:\\.|[^\"\\])*\"|[^}`\"]|\}(?!\}))*?)(\s-)?\}\}", re.DOTALL
)
_WORD: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*"|`[^`]*`)|(?P<number>-?\d+)|(?P<path>\$?\w*(?:\.\w+)+|\$\w*|\.)"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<mark>:=|[=(),|]))"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Print:
    words: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class _Block:
    """A range, if or with: `branches` are pairs of a condition and a body; the last may have no condition."""

    kind: str
    branches: list[tuple[tuple[str, ...], list["_Node"]]] = field(default_factory=list)


_Node = _Text | _Print | _Block


def render(template: str, data: Value) -> str:
    """Return the text of a template; raises GoTemplateError."""
    nodes = _parse(template)
    return "".join(_run(nodes, data, ChainMap({"$": data})))


def _parse(template: str) -> list[_Node]:
    root: list[_Node] = []
    bodies, open_blocks = [root], list[_Block]()
    for kind, text in _pieces(template):
        if kind == "text":
            bodies[-1].append(_Text(text=text))
            continue
        words = tuple(_words(text))
        match words[:1]:
            case ():
                continue
            case ("range" | "if" | "with" as name,):
                block = _Block(kind=name, branches=[(words[1:], [])])
                bodies[-1].append(block)
                open_blocks.append(block)
                bodies.append(block.branches[0][1])
            case ("else",):
                _same(open_blocks)
                bodies.pop()
                condition = words[2:] if words[1:2] == ("if",) else ()
                open_blocks[-1].branches.append((condition, []))
                bodies.append(open_blocks[-1].branches[-1][1])
            case ("end",):
                _same(open_blocks)
                open_blocks.pop()
                bodies.pop()
            case _:
                bodies[-1].append(_Print(words=words))
    if open_blocks:
        raise GoTemplateError(f"{open_blocks[-1].kind} without end")
    return root


def _same(open_blocks: Sequence[_Block]) -> None:
    if not open_blocks:
        raise GoTemplateError("else or end without a beginning")


def _pieces(template: str) -> Iterator[tuple[str, str]]:
    """Yield text and actions; blanks beside `{{-` and `-}}` are gone."""
    at, trim = 0, False
    for found in _ACTION.finditer(template):
        text = template[at : found.start()]
        text = text.lstrip() if trim else text
        yield "text", text.rstrip() if found[1] else text
        if not found[2].strip().startswith("/*"):
            yield "action", found[2]
        at, trim = found.end(), bool(found[3])
    rest = template[at:]
    if "{{" in rest:
        raise GoTemplateError(f"an action without an end: {rest[rest.index('{{') :][:40]!r}")
    yield "text", rest.lstrip() if trim else rest


def _words(action: str) -> Iterator[str]:
    at, action = 0, action.rstrip()
    while at < len(action):
        found = _WORD.match(action, at)
        if found is None or found.end() == at:
            raise GoTemplateError(f"not understood: {action[at:]!r}")
        yield found[0].strip()
        at = found.end()


def _run(nodes: Sequence[_Node], dot: Value, variables: Variables) -> Iterator[str]:
    for node in nodes:
        match node:
            case _Text(text=text):
                yield text
            case _Print(words=(name, ":=", *rest)):
                variables[name] = _value(tuple(rest), dot, variables)
            case _Print(words=(name, "=", *rest)):
                _assign(variables, name, _value(tuple(rest), dot, variables))
            case _Print(words=words):
                yield _shown(_value(words, dot, variables))
            case _Block(kind="range"):
                yield from _range(node, dot, variables)
            case _Block():
                yield from _choose(node, dot, variables)


def _assign(variables: Variables, name: str, value: Value) -> None:
    """Give a variable of this block, or of one around it, another value."""
    for scope in variables.maps:
        if name in scope:
            scope[name] = value
            return
    raise GoTemplateError(f"no variable {name}")


def _choose(block: _Block, dot: Value, variables: Variables) -> Iterator[str]:
    for words, body in block.branches:
        value = _value(words, dot, variables) if words else True
        if value:
            inner = value if block.kind == "with" and words else dot
            yield from _run(body, inner, variables.new_child())
            return


def _range(block: _Block, dot: Value, variables: Variables) -> Iterator[str]:
    words, body = block.branches[0]
    names: tuple[str, ...] = ()
    if ":=" in words:
        place = words.index(":=")
        names, words = tuple(each for each in words[:place] if each != ","), words[place + 1 :]
    items = _value(words, dot, variables)
    if not isinstance(items, (list, tuple)):
        raise GoTemplateError(f"range over {items!r}")
    for number, item in enumerate(items):
        named = dict(zip(names, (number, item) if len(names) > 1 else (item,), strict=True)) if names else {}
        yield from _run(body, item, variables.new_child(dict(named)))
    if not items:
        for _, otherwise in block.branches[1:]:
            yield from _run(otherwise, dot, variables.new_child())


def _value(words: Sequence[str], dot: Value, variables: Mapping[str, Value]) -> Value:
    """Return what a pipeline comes to: each command's value is the last argument of the next one."""
    commands, depth = [list[str]()], 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == "|" and depth == 0:
            commands.append([])
        else:
            commands[-1].append(word)
    given: tuple[Value, ...] = ()
    for command in commands:
        given = (_command(command, given, dot, variables),)
    return given[0]


def _command(words: list[str], given: tuple[Value, ...], dot: Value, variables: Mapping[str, Value]) -> Value:
    arguments = [*_arguments(words, dot, variables), *given]
    first = arguments.pop(0)
    if not isinstance(first, _Function):
        if arguments:
            raise GoTemplateError(f"not a function: {' '.join(words)}")
        return first
    try:
        return _FUNCTIONS[first.name](*arguments)
    except (TypeError, LookupError) as error:
        raise GoTemplateError(f"{' '.join(words)}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    name: str


def _arguments(words: list[str], dot: Value, variables: Mapping[str, Value]) -> Iterator[Value]:
    at = 0
    while at < len(words):
        if words[at] == "(":
            end = _closing(words, at)
            yield _value(words[at + 1 : end], dot, variables)
            at = end
        else:
            yield _atom(words[at], dot, variables)
        at += 1


def _closing(words: list[str], at: int) -> int:
    depth = 0
    for place in range(at, len(words)):
        depth += (words[place] == "(") - (words[place] == ")")
        if depth == 0:
            return place
    raise GoTemplateError("a parenthesis without an end")


def _atom(word: str, dot: Value, variables: Mapping[str, Value]) -> Value:
    if word[0] == "`":
        return word[1:-1]
    if word[0] == '"':
        return word[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
    if word.lstrip("-").isdigit():
        return int(word)
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    return _Function(name=word) if word in _FUNCTIONS else _field(word, dot, variables)


def _field(word: str, dot: Value, variables: Mapping[str, Value]) -> Value:
    name, *fields = word.split(".")
    if name.startswith("$"):
        if name not in variables:
            raise GoTemplateError(f"no variable {name}")
        return _fields(variables[name], fields)
    if name:
        raise GoTemplateError(f"no function {name}")
    return _fields(dot, [each for each in fields if each])


def _fields(value: Value, names: Sequence[str]) -> Value:
    for name in names:
        if not isinstance(value, Mapping) or name not in value:
            raise GoTemplateError(f"no field {name} in {value!r}")
        value = value[name]
    return value


def _index(whole: Value, places: Sequence[Value]) -> Value:
    for place in places:
        whole = whole[place]  # type: ignore[index]  # what cannot be indexed is a TypeError, as said above
    return whole


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)):
        return str(value)
    raise GoTemplateError(f"cannot be printed as Go would: {value!r}")
