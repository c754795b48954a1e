"""The page that has every key of the configuration, made of the model: shapes, units, defaults, errors."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from appliance.model.config.json_schema import json_schema
from appliance.model.config.values import units
from appliance.model.loading.loading import load

_HEAD: Final = """# Every key of the configuration

Made of the model that `appliance check` uses (`make pages`): this is what the appliance reads, no more and
no less. `appliance schema` prints the same as JSON Schema, for editors that complete keys.
[A first configuration](../configuring.md) has one to start from, and `config/appliance.example.yaml` every
key in its place. `NAME` stands for a name that you choose: 1 to 63 letters, digits, `.`, `_` and `-`.

- A *duration* is a number and its unit: `300ms`, `5s`, `2m`, `24h`, `1d`. Without a unit it is an error.
- A *percentage* is a number and `%`.
- Where the last column begins with **needed**, the key has to be given.
"""

_ERRORS: Final = """## Errors

All errors of a file are said at once, each with file, line, column and key. Nothing changes while there is
one. Some of them, as they are printed, each below what is wrong:

"""

_WRONG: Final = (
    "watchdog: 10",
    "watchdogs: 10s",
    "defaults: { drain: 2 minutes }",
    "defaults: { retries: 101 }",
    "log: { level: verbose }",
    "api: { frontends: { kube-api: { pool: masters } } }",
    "api: { frontends: { kube-api: { bind: [9445], pool: masters } } }",
    "pools: { masters: { servers: { master-0: { address: 10.0.0.34 } } } }",
    "virtual_ips: { api: { addresses: [10.0.0.200], interface: ens192, router_id: 51 } }",
)

_Schema = Mapping[str, Any]  # JSON
_SHAPES: Final = {
    units.DURATION_PATTERN: "duration",
    units.DURATION_OR_OFF_PATTERN: "duration, or `off`",
    units.PERCENTAGE_PATTERN: "percentage",
}


def configuration_page() -> str:
    """Return the page."""
    schema = json_schema()
    sections = "\n".join(_sections(schema))
    errors = "\n".join(map(_error, _WRONG))
    return f"{_HEAD}\n{sections}\n{_ERRORS}```text\n{errors}```\n"


@cache
def keys() -> frozenset[str]:
    """Return the name of every key."""
    schema = json_schema()
    defs: Mapping[str, _Schema] = schema["$defs"]  # type: ignore[assignment]  # JSON
    every = (schema, *defs.values())
    return frozenset(key for each in every for key in each.get("properties", {}))  # type: ignore[attr-defined]  # JSON


@cache
def values() -> frozenset[str]:
    """Return every word that can stand behind a key."""
    return frozenset(_words(json_schema()))


def _words(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            if key in {"const", "enum"}:
                yield from map(str, below if isinstance(below, list) else [below])
            yield from _words(below)
    elif isinstance(value, list):
        for each in value:
            yield from _words(each)


def _sections(schema: _Schema) -> Iterator[str]:
    """Yield each section once, in the order in which the keys lead to it."""
    defs: Mapping[str, _Schema] = schema["$defs"]
    places: dict[str, list[str]] = {}
    for name, path in _found(schema, "", defs, ()):
        places.setdefault(name, []).append(path)
    yield _section("The whole file", schema, defs)
    for name, paths in places.items():
        yield _section(_heading(name, defs), defs[name], defs, paths)


def _found(
    schema: _Schema, path: str, defs: Mapping[str, _Schema], above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield each section that keys lead to, with the path; of one that holds itself the first one."""
    for key, below in schema.get("properties", {}).items():
        yield from _below(below, f"{path}{key}", defs, above)
    for below in schema.get("patternProperties", {}).values():
        yield from _below(below, f"{path}NAME", defs, above)


def _below(
    schema: _Schema, path: str, defs: Mapping[str, _Schema], above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for below in schema.get("patternProperties", {}).values():
        yield from _below(below, f"{path}.NAME", defs, above)
    for name in _references(schema):
        if "properties" in defs[name] and name not in above:
            yield name, path
            yield from _found(defs[name], f"{path}.", defs, (*above, name))


def _references(schema: _Schema) -> list[str]:
    found = [schema, *schema.get("anyOf", ())]
    return [each["$ref"].rpartition("/")[2] for each in found if "$ref" in each]


def _heading(name: str, defs: Mapping[str, _Schema]) -> str:
    words = re.findall(r"[A-Z][a-z]+", str(defs[name]["title"]))
    return " ".join(words).capitalize()


def _section(heading: str, schema: _Schema, defs: Mapping[str, _Schema], paths: Iterable[str] = ()) -> str:
    needed = schema.get("required", ())
    rows = [_row(key, each, needed, defs) for key, each in schema["properties"].items()]
    rows += [_row("NAME", each, (), defs) for each in schema.get("patternProperties", {}).values()]
    place = ", ".join(f"`{path}`" for path in dict.fromkeys(paths))
    about = ": ".join(filter(None, (place, _text(schema.get("description", "")))))
    return f"## {heading}\n\n{about}\n\n| key | shape | default | |\n|---|---|---|---|\n{''.join(rows)}"


def _row(key: str, schema: _Schema, needed: Container[str], defs: Mapping[str, _Schema]) -> str:
    about = _text(schema.get("description") or _of_reference(schema, defs))
    said = f"**needed**. {about}" if key in needed else about
    return f"| `{key}` | {_shape(schema, defs)} | {_default(schema)} | {said} |\n"


def _of_reference(schema: _Schema, defs: Mapping[str, _Schema]) -> str:
    names = _references(schema)
    return str(defs[names[0]].get("description", "")) if names else ""


def _shape(schema: _Schema, defs: Mapping[str, _Schema]) -> str:  # noqa: PLR0911  # one line for each shape
    if "patternProperties" in schema:
        (below,) = schema["patternProperties"].values()
        return f"by `NAME`: {_shape(below, defs)}"
    if names := _references(schema):
        others = [each for each in schema.get("anyOf", ()) if "$ref" not in each]
        return " or ".join((_referred(names[0], defs), *(_shape(each, defs) for each in others)))
    if "anyOf" in schema:
        return " or ".join(_shape(each, defs) for each in schema["anyOf"])
    if "const" in schema:
        return f"`{_said(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_shape(schema['items'], defs)}"
    if schema.get("pattern") in _SHAPES:
        return _SHAPES[schema["pattern"]]
    if schema.get("type") == "integer":
        return _number(schema)
    if schema.get("type") == "boolean":
        return "`true` or `false`"
    examples = schema.get("examples") or ()
    return "text" + (f", such as `{_said(examples[0])}`" if examples else "")


def _referred(name: str, defs: Mapping[str, _Schema]) -> str:
    if "enum" in defs[name]:
        return ", ".join(f"`{each}`" for each in defs[name]["enum"])
    heading = _heading(name, defs)
    return f"[{heading.lower()}](#{heading.lower().replace(' ', '-')})"


def _number(schema: _Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    return "number" if least is None else f"{least} to {most}" if most is not None else f"{least} or more"


def _default(schema: _Schema) -> str:
    return f"`{_said(schema['default'])}`" if schema.get("default") not in (None, []) else ""


def _said(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _error(line: str) -> str:
    found = load(f"{line}\n", source="appliance.yaml", number=1).problems
    return "".join(f"{said}\n" for said in (line, *(f"  {each}" for each in found)))
