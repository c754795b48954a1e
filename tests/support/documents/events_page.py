"""The page that has every event of the log, found in the sources of the programs."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from support.documents.pages import ROOT

from appliance.core.checks.server_health import HealthEvent
from appliance.core.log_events.all_events import LOG_EVENTS, log_step
from appliance.health.reports import WARNINGS
from appliance.model.paths import Paths
from appliance.supervisor.program_changes import EVENTS, TROUBLE

UNKNOWN: Final = "?"
"""The name of an event that cannot be read from the sources: there may be none."""

_CODE: Final = ROOT / "appliance"
_LOUD: Final = ("warning", "error", "exception", "critical")
_SEVERITIES: Final = ("debug", "info", *_LOUD)
_CALLED: Final = tuple(f".{severity}" for severity in _SEVERITIES)
_AS_ERROR: Final = {"exception": "error", "critical": "error"}
_HEAD: Final = """# Log events

*For operators who know what they look for. To look things up.*

Each log line has one event with a fixed name, and fields with the details: count and alert by the name.
`appliance why NAME` shows what this page says about an event of level warning or error. Generated from the
sources (`make pages`).

## Warnings and errors

"""
_REST: Final = """
## All events

| event | severity | fields | logged by |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Call:
    """One place that logs an event."""

    name: str
    severity: str
    fields: tuple[str, ...]
    module: str

    @property
    def loud(self) -> bool:
        """Say whether an operator has to look at it."""
        return self.severity not in ("debug", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """One module of ours, its name below the package; its tree is parsed when asked for, and walked once."""

    name: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """Its tree."""
        return _parsed(self.text)[0]

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of its tree."""
        return _parsed(self.text)[1]

    def mentions(self, *words: str) -> bool:
        """Say whether one of the words is in it: without, its tree has nothing of that name."""
        return any(word in self.text for word in words)


@cache
def _parsed(text: str) -> tuple[ast.Module, tuple[ast.AST, ...]]:
    tree = ast.parse(text)
    return tree, tuple(ast.walk(tree))


@cache
def events() -> frozenset[str]:
    """Return the name of every event."""
    return frozenset(call.name for call in calls())


@cache
def calls() -> tuple[Call, ...]:
    """Return every place that logs, with `UNKNOWN` for a name that is not in the sources."""
    return tuple(sorted({*_calls(), *_of_tables()}))


def events_page() -> str:
    """Return the page."""
    return _HEAD + "".join(_meanings()) + _REST + "".join(_rows())


def _meanings() -> Iterator[str]:
    yield "| event | what it means | what to do |\n|---|---|---|\n"
    control = f"supervisorctl -s unix://{Paths().supervisor_socket}"
    for name in dict.fromkeys(call.name for call in calls() if call.loud):
        step = log_step(name, supervisorctl=control)
        yield f"| `{name}` | {LOG_EVENTS[name].means} | {step} |\n"


def _rows() -> Iterator[str]:
    for name in dict.fromkeys(call.name for call in calls()):
        same = [call for call in calls() if call.name == name]
        severities = ", ".join(dict.fromkeys(call.severity for call in same))
        fields = ", ".join(
            f"`{each}`" for each in dict.fromkeys(field for call in same for field in call.fields)
        )
        modules = ", ".join(dict.fromkeys(call.module for call in same))
        yield f"| `{name}` | {severities} | {fields} | {modules} |\n"


def _of_tables() -> Iterator[Call]:
    """Yield what is logged by a variable, with names of a table."""
    for event in HealthEvent:
        severity = "warning" if event in WARNINGS else "info"
        yield Call(name=event.value, severity=severity, fields=("pool", "server"), module="health/reports")
    for kind, name in EVENTS.items():
        severity = "warning" if kind in TROUBLE else "info"
        fields = ("name", "pid", "reason")
        yield Call(name=name, severity=severity, fields=fields, module="supervisor/program_changes")


def unseen() -> frozenset[str]:
    """Return the modules that keep a method of a logger and say elsewhere what it logs."""
    return frozenset(module.name for module in _modules() if module.mentions(*_CALLED) and _hidden(module))


def _hidden(module: _Module) -> bool:
    seen = {id(node.func) for node in module.nodes if isinstance(node, ast.Call)}
    for choice, _ in _chosen(module):
        seen |= {id(choice.body), id(choice.orelse)}
    methods = (node for node in module.nodes if isinstance(node, ast.Attribute) and node.attr in _LOUD)
    return any(_is_logger(node.value) and id(node) not in seen for node in methods)


def _chosen(module: _Module) -> Iterator[tuple[ast.IfExp, ast.Call]]:
    """Yield each `say = log.warning if ... else log.info` with the call of `say`, if that has a name."""
    if not any(map(_is_choice, module.nodes)):
        return
    for function in module.nodes:
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = list(ast.walk(function))
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=say)], value=ast.IfExp(body=ast.Attribute()) as choice):
                    for call in nodes:
                        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == say:
                            yield from [(choice, call)] if _is_literal(call.args[0]) else []


def _is_choice(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp)


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.IfExp)


def _of_choice(choice: ast.IfExp, call: ast.Call, module: _Module) -> Iterator[Call]:
    """Yield a call whose severity depends on something; names that depend on the same go with it."""
    name = call.args[0]
    branches = ("body", "orelse")
    paired = isinstance(name, ast.IfExp) and ast.dump(name.test) == ast.dump(choice.test)
    for branch in branches:
        method = getattr(choice, branch)
        given = getattr(name, branch) if paired else name
        yield from _logged(call, given, method.attr, module)


@cache
def _modules() -> tuple[_Module, ...]:
    return tuple(map(_module, sorted(_CODE.rglob("*.py"))))


def _module(path: Path) -> _Module:
    return _Module(name=str(path.relative_to(_CODE).with_suffix("")), text=path.read_text())


def _calls() -> Iterator[Call]:
    for module in _modules():
        if not module.mentions(*_CALLED):
            continue
        for node in module.nodes:
            if isinstance(node, ast.Call):
                yield from _of(node, module)
        for choice, call in _chosen(module):
            yield from _of_choice(choice, call, module)


def _of(call: ast.Call, module: _Module) -> Iterator[Call]:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _SEVERITIES or not call.args:
        return
    if function.attr not in _LOUD and not _is_logger(function.value):
        return
    yield from _logged(call, call.args[0], function.attr, module)


def _logged(call: ast.Call, name: ast.expr, method: str, module: _Module) -> Iterator[Call]:
    fields = tuple(each.arg for each in call.keywords if each.arg and each.arg != "exc_info")
    severity = _AS_ERROR.get(method, method)
    for each in _names(name, module):
        yield Call(name=each, severity=severity, fields=fields, module=module.name)


def _is_logger(node: ast.expr) -> bool:
    named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return "log" in named.lower()


def _names(node: ast.expr, module: _Module) -> Iterator[str]:
    """Yield the names that an event may have: those of its module, or of who uses a class of it."""
    match node:
        case ast.Constant(value=str() as name):
            yield name
        case ast.IfExp():
            yield from (*_names(node.body, module), *_names(node.orelse, module))
        case ast.Name(id=variable):
            yield from _assigned(variable, module) or [UNKNOWN]
        case ast.Attribute(attr=field):
            yield from _given(field, (module,)) or [UNKNOWN]
        case ast.JoinedStr(values=[ast.FormattedValue(), ast.Constant(value=str() as ending)]):
            yield from [f"{name}{ending}" for name in _given("name", _modules(), _classes(module))] or [
                UNKNOWN
            ]
        case _:
            yield UNKNOWN


def _assigned(variable: str, module: _Module) -> list[str]:
    """Return the value of a module's constant."""
    return [
        str(node.value.value)
        for node in module.tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and getattr(node.target, "id", "") == variable
    ]


def _classes(module: _Module) -> frozenset[str]:
    return frozenset(node.name for node in module.tree.body if isinstance(node, ast.ClassDef))


def _given(field: str, modules: tuple[_Module, ...], to: frozenset[str] | None = None) -> list[str]:
    """Return the constants that calls (those of `to`, None for all) give by the keyword `field`."""
    return [
        str(keyword.value.value)
        for module in modules
        if module.mentions(*(to if to is not None else (field,)))
        for node in module.nodes
        if isinstance(node, ast.Call) and (to is None or getattr(node.func, "id", "") in to)
        for keyword in node.keywords
        if keyword.arg == field and isinstance(keyword.value, ast.Constant)
    ]
