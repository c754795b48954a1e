"""The page that has every event of the log, found in the sources of the programs."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from support.documents.pages import ROOT

from appliance.core.checks.server_health import HealthEvent

_OF_THE_LOG: Final = frozenset({"lines-dropped", "lines-left-out"})
_CODE: Final = ROOT / "appliance"
_SEVERITIES: Final = ("debug", "info", "warning", "error", "exception")
_HEAD: Final = """# Log events

Each line of the log has one event, a fixed name, and the fields that say what it is about: count and alert
by the name. Made of the sources (`make pages`). `lines-dropped` and `lines-left-out` say how many lines a
full disk and the limit of equal lines have cost.

| event | severity | fields | said by |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Call:
    """One place that logs an event."""

    name: str
    severity: str
    fields: tuple[str, ...]
    module: str


@cache
def events() -> frozenset[str]:
    """Return the name of every event whose name stands in the sources."""
    return frozenset(call.name for call in _calls()) | {each.value for each in HealthEvent} | _OF_THE_LOG


def events_page() -> str:
    """Return the page."""
    calls = sorted({*_calls(), *_of_servers()})
    rows = []
    for name in dict.fromkeys(call.name for call in calls):
        same = [call for call in calls if call.name == name]
        severities = ", ".join(dict.fromkeys(call.severity for call in same))
        fields = ", ".join(
            f"`{each}`" for each in dict.fromkeys(field for call in same for field in call.fields)
        )
        modules = ", ".join(dict.fromkeys(call.module for call in same))
        rows.append(f"| `{name}` | {severities} | {fields} | {modules} |\n")
    return _HEAD + "".join(rows)


def _of_servers() -> Iterator[_Call]:
    for event in HealthEvent:
        yield _Call(name=event.value, severity="info, warning", fields=("pool", "server"), module="health")


def _calls() -> Iterator[_Call]:
    for path in sorted(_CODE.rglob("*.py")):
        module = str(path.relative_to(_CODE).with_suffix(""))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield from _of(node, module)


def _of(call: ast.Call, module: str) -> Iterator[_Call]:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _SEVERITIES or not call.args:
        return
    logger = function.value
    named = logger.attr if isinstance(logger, ast.Attribute) else getattr(logger, "id", "")
    if "log" not in named.lower():
        return
    severity = "error" if function.attr == "exception" else function.attr
    fields = tuple(each.arg for each in call.keywords if each.arg and each.arg != "exc_info")
    for name in _names(call.args[0]):
        yield _Call(name=name, severity=severity, fields=fields, module=module)


def _names(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _names(node.body)
        yield from _names(node.orelse)
