"""Every key of the configuration as values: sections in the order in which keys refer to them, with rows.

Derived from the JSON Schema, so from the model itself. References and manual pages are generated from it.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from appliance.model.config.json_schema import json_schema
from appliance.model.config.values import units

_Schema = Mapping[str, Any]  # JSON
_SHAPES: Final = {
    units.DURATION_PATTERN: "duration",
    units.DURATION_OR_OFF_PATTERN: "duration, or `off`",
    units.PERCENTAGE_PATTERN: "percentage",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """One key; `shape` and `default` have values in backticks, `default` is "" without one."""

    key: str
    shape: str
    default: str
    needed: bool
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySection:
    """One mapping of keys; `paths` are its places in the file, none for the whole file."""

    heading: str
    paths: tuple[str, ...]
    about: str
    rows: tuple[KeyRow, ...]


def key_sections(link: str = "{heading}") -> Iterator[KeySection]:
    """Yield each section once. `link` formats a reference to another section, with `heading` and `anchor`."""
    schema = json_schema()
    defs: Mapping[str, _Schema] = schema["$defs"]  # type: ignore[assignment]  # JSON
    places: dict[str, list[str]] = {}
    for name, path in _found(schema, "", defs, ()):
        places.setdefault(name, []).append(path)
    yield _section("The whole file", schema, defs, (), link)
    for name, paths in places.items():
        yield _section(_heading(name, defs), defs[name], defs, tuple(dict.fromkeys(paths)), link)


def _found(
    schema: _Schema, path: str, defs: Mapping[str, _Schema], above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield each section that keys refer to, with its path; for a recursive section the first path."""
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


def _section(
    heading: str, schema: _Schema, defs: Mapping[str, _Schema], paths: tuple[str, ...], link: str
) -> KeySection:
    needed = schema.get("required", ())
    rows = [_row(key, each, needed, defs, link) for key, each in schema["properties"].items()]
    rows += [_row("NAME", each, (), defs, link) for each in schema.get("patternProperties", {}).values()]
    about = " ".join(str(schema.get("description", "")).split())
    return KeySection(heading=heading, paths=paths, about=about, rows=tuple(rows))


def _row(key: str, schema: _Schema, needed: Container[str], defs: Mapping[str, _Schema], link: str) -> KeyRow:
    about = str(schema.get("description") or _of_reference(schema, defs))
    return KeyRow(
        key=key,
        shape=_shape(schema, defs, link),
        default=_default(schema),
        needed=key in needed,
        about=" ".join(about.split()),
    )


def _of_reference(schema: _Schema, defs: Mapping[str, _Schema]) -> str:
    names = _references(schema)
    return str(defs[names[0]].get("description", "")) if names else ""


def _shape(schema: _Schema, defs: Mapping[str, _Schema], link: str) -> str:  # noqa: PLR0911  # one line for each
    if "patternProperties" in schema:
        (below,) = schema["patternProperties"].values()
        return f"by `NAME`: {_shape(below, defs, link)}"
    if names := _references(schema):
        others = [each for each in schema.get("anyOf", ()) if "$ref" not in each]
        shapes = (_referred(names[0], defs, link), *(_shape(each, defs, link) for each in others))
        return " or ".join(shapes)
    if "anyOf" in schema:
        return " or ".join(_shape(each, defs, link) for each in schema["anyOf"])
    if "const" in schema:
        return f"`{_said(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_item(schema['items'], defs, link)}"
    if schema.get("pattern") in _SHAPES:
        return _SHAPES[schema["pattern"]]
    if schema.get("type") == "integer":
        return _number(schema)
    if schema.get("type") == "boolean":
        return "`true` or `false`"
    examples = schema.get("examples") or ()
    return "text" + (f", such as `{_said(examples[0])}`" if examples else "")


def _item(schema: _Schema, defs: Mapping[str, _Schema], link: str) -> str:
    if schema.get("type") == "object":
        return f"mappings of {', '.join(f'`{key}`' for key in schema['properties'])}"
    return _shape(schema, defs, link)


def _referred(name: str, defs: Mapping[str, _Schema], link: str) -> str:
    if "enum" in defs[name]:
        return ", ".join(f"`{each}`" for each in defs[name]["enum"])
    heading = _heading(name, defs).lower()
    return link.format(heading=heading, anchor=heading.replace(" ", "-"))


def _number(schema: _Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    return "number" if least is None else f"{least} to {most}" if most is not None else f"{least} or more"


def _default(schema: _Schema) -> str:
    return f"`{_said(schema['default'])}`" if schema.get("default") not in (None, []) else ""


def _said(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
