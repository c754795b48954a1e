"""The page that has every key of the configuration, made of the model: shapes, units, defaults, errors."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from appliance.model.config.json_schema import json_schema
from appliance.model.config.key_reference import KeyRow, KeySection, key_sections
from appliance.model.loading.loading import load

_HEAD: Final = """# Every key of the configuration

*For operators who know what they look for. To look things up.*

Generated from the model that `appliance check` uses (`make pages`): the appliance reads exactly these keys.
`appliance schema` prints the same as JSON Schema, for editors that complete keys.
[A first configuration](../configuring.md) is a starting point, and `config/appliance.example.yaml` shows
every key in its place. `NAME` stands for a name that you choose: 1 to 63 letters, digits, `.`, `_` and `-`.

- A *duration* is a number and its unit: `300ms`, `5s`, `2m`, `24h`, `1d`. Without a unit it is an error.
- A *percentage* is a number and `%`.
- If the last column begins with **needed**, the key is required.
"""

_ERRORS: Final = """## Errors

All errors of a file are reported together, each with file, line, column and key. While there are errors,
nothing changes. Examples as they are printed, each below the wrong line:

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


def configuration_page() -> str:
    """Return the page."""
    sections = "\n".join(map(_section, key_sections(link="[{heading}](#{anchor})")))
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


def _section(section: KeySection) -> str:
    place = ", ".join(f"`{path}`" for path in section.paths)
    about = ": ".join(filter(None, (place, _text(section.about))))
    rows = "".join(map(_row, section.rows))
    return f"## {section.heading}\n\n{about}\n\n| key | shape | default | |\n|---|---|---|---|\n{rows}"


def _row(row: KeyRow) -> str:
    said = f"**needed**. {_text(row.about)}" if row.needed else _text(row.about)
    return f"| `{row.key}` | {row.shape} | {row.default} | {said} |\n"


def _text(text: str) -> str:
    return text.replace("|", "\\|")


def _error(line: str) -> str:
    found = load(f"{line}\n", source="appliance.yaml", number=1).problems
    return "".join(f"{said}\n" for said in (line, *(f"  {each}" for each in found)))
