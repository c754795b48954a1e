"""Loads a configuration: from the text to a snapshot, or to all problems at once.

The steps: read YAML or JSON (`model.document`), validate each key (`model.config`), check the rules between
keys (`model.rules`), fill in defaults (`model.loading.defaults`). A file with errors still goes through as
many steps as possible, so that the operator sees every problem in one round.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec
from pydantic import ValidationError

from appliance.model.config.configuration import Config
from appliance.model.document.document import Document, read
from appliance.model.document.tree import DocumentError, Plain
from appliance.model.loading.by_node import ByNode
from appliance.model.loading.defaults import fill
from appliance.model.messages.problems import (
    FaultyPaths,
    Finding,
    Path,
    Problem,
    Severity,
    ordered,
    shortened,
)
from appliance.model.messages.quoting import printable, shown
from appliance.model.messages.secrets import is_secret
from appliance.model.rules import cross_references, node_rules, shared_ip_rules
from appliance.model.rules.node_rules import at_node
from appliance.model.rules.source_rules import common_ports
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.validation import pydantic_errors, unknown_keys

NODES: Final = "nodes"
"""The section that says that the file is for several nodes."""

_SHARED: Final = ("cluster", "api", "ingress", "pools", "defaults")
"""Sections that are the same at all nodes even where each has a file of its own."""

_OWN: Final = ("bind", "redirect", "workers")
"""Keys in these sections that may then differ: they may name addresses of a node, or fit its processors."""

_BYTES: Final = 16


def common(document: Document) -> str:
    """Return the digest, in hexadecimal digits, of what the configurations of all nodes have in common.

    It differs where nodes drift apart. Keys and values count as written: it is the same in two releases whose
    defaults differ. Values that may be secrets do not count, as nodes send it to each other. A file with
    `nodes` is the same at all of them, with its values by node; of other files only the sections that concern
    servers and frontends count.
    """
    value = document.value
    if NODES not in value:
        value = {key: _without_own(value[key]) for key in _SHARED if key in value}
    said = msgspec.json.encode(_without_secrets(value, ()), order="deterministic")
    return hashlib.blake2b(said, digest_size=_BYTES).hexdigest()


def _without_own(value: Plain) -> Plain:
    if not isinstance(value, dict):
        return value
    return {key: _without_own(each) for key, each in value.items() if key not in _OWN}


def _without_secrets(value: Plain, at: Path) -> Plain:
    if not isinstance(value, dict):
        return value
    return {
        key: _without_secrets(each, (*at, key)) for key, each in value.items() if not is_secret((*at, key))
    }


DRAIN_VARIABLE: Final = "OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT"
"""Seconds that an old generation may drain; the variable of OpenShift's HAProxy pod (MCO haproxy.yaml)."""

_SECONDS: Final = re.compile(r"[0-9]{1,8}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Result of loading: a snapshot if and only if there are no errors; warnings in both cases.

    `common` is the digest of what all nodes have in common, and `node` this node's name for the others; both
    are "" without `linger`, which sends them.
    """

    snapshot: Snapshot | None
    problems: tuple[Problem, ...]
    common: str = ""
    node: str = ""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that refuse the configuration."""
        return tuple(each for each in self.problems if each.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that do not refuse the configuration."""
        return tuple(each for each in self.problems if each.severity is Severity.WARNING)


def load(
    text: str | bytes, *, source: str, number: int, drain: str | None = None, node: str | None = None
) -> Loaded:
    """Return the snapshot of a configuration, or its problems; never raises.

    `source` is the file's name in problems, `number` the snapshot's number. `drain` is the value of
    DRAIN_VARIABLE in the caller's environment; it wins over `defaults.drain` of the file. `node` is the name
    of the node that will use the configuration, None to judge it for any.
    """
    try:
        document = read(text)
    except DocumentError as error:
        known = (unreadable(error, source=source),)
        return load_document(None, source=source, number=number, drain=drain, known=known)
    return load_document(document, source=source, number=number, drain=drain, node=node)


def load_document(
    document: Document | None,
    *,
    source: str,
    number: int,
    drain: str | None = None,
    node: str | None = None,
    known: Iterable[Problem] = (),
) -> Loaded:
    """Return the snapshot of a document, as `load` does; `known` are problems that it had before."""
    seconds, outside = _drain(drain)
    if document is None:
        return Loaded(snapshot=None, problems=ordered((*outside, *known)))
    by_node = ByNode(document)
    found = tuple(document.problem(each, source=source) for each in by_node.findings())
    config, own = _judged(by_node, node, source)
    # All nodes are to accept the file, so it is refused for what is wrong at another one.
    others = {name: _judged(by_node, name, source) for name in by_node.others(node)}
    elsewhere = (each for _, problems in others.values() for each in problems)
    configs = {name: others[name][0] if name in others else config for name in by_node.nodes}
    valid = {name: each for name, each in configs.items() if each is not None}
    met = common_ports(valid) if len(valid) == len(configs) else ()
    between = (document.problem(each, source=source) for each in met)
    every = dict.fromkeys((*outside, *known, *found, *own, *elsewhere, *between))
    problems = shortened(ordered(every), source=source)
    if config is None or any(each.severity is Severity.ERROR for each in problems):
        return Loaded(snapshot=None, problems=problems)
    snapshot = fill(config, number=number, source=source, drain=seconds, node=node)
    if snapshot.linger is None:
        return Loaded(snapshot=snapshot, problems=problems)
    name = (node_rules.own_name(by_node.nodes, node) if node else None) or node or ""
    return Loaded(snapshot=snapshot, problems=problems, common=common(document), node=name)


def _judged(by_node: ByNode, node: str | None, source: str) -> tuple[Config | None, tuple[Problem, ...]]:
    """Return what the document means at one node, and its problems; for None what it means at the first."""
    document, config, found = _validated(by_node.of(node), node)
    problems = tuple(document.problem(each, source=source) for each in found)
    return config and at_node(config, node), problems


def unreadable(error: DocumentError, *, source: str) -> Problem:
    """Return the problem of a text that cannot be read as a document."""
    place = error.place
    return Problem(message=printable(error.message), source=source, line=place.line, column=place.column)


def _drain(value: str | None) -> tuple[float | None, tuple[Problem, ...]]:
    if not value:
        return None, ()
    if _SECONDS.fullmatch(value):
        return float(value), ()
    message = f"must be whole seconds such as `120`, not {shown(value)}"
    return None, (Problem(message=message, path=DRAIN_VARIABLE),)


def _validated(document: Document, node: str | None) -> tuple[Document, Config | None, list[Finding]]:
    """Return the configuration, None if a key is wrong by itself, and all findings.

    Misspelt keys are replaced by the intended ones, and everything is validated again, so that the values
    below them are judged too. The paths of findings are those of the returned document.
    """
    value = document.value
    try:
        config = Config.model_validate(value)
    except ValidationError as error:
        spelling = _spelling(document, error)
        if not spelling:
            return document, None, _faults(value, error, node)
        misspelt = [
            replace(each, path=(*each.path[:-1], spelling[each.path]))
            for each in pydantic_errors.findings(error)
            if each.path in spelling
        ]
        respelt, _, found = _validated(document.respelt(spelling), node)
        return respelt, None, [*misspelt, *found]
    return document, config, list(_findings(config, node))


def _findings(config: Config, node: str | None) -> Iterator[Finding]:
    yield from node_rules.findings(config, node=node)
    yield from shared_ip_rules.references(config)
    yield from cross_references.findings(at_node(config, node))


def _spelling(document: Document, error: ValidationError) -> Mapping[Path, str]:
    """Return the right key for each misspelt one, unless the file has the right one too."""
    meant: dict[Path, Path] = {}
    for path, key in unknown_keys.spelling(error).items():
        meant.setdefault((*path[:-1], key), path)
    return {path: str(right[-1]) for right, path in meant.items() if not document.has(right)}


def _faults(value: Plain, error: ValidationError, node: str | None) -> list[Finding]:
    """Return pydantic's errors, and the rules' findings in the rest of the configuration."""
    rest, removed = _without_faults(value, error)
    faulty = FaultyPaths(removed | unknown_keys.misspelt(error))
    # A rule's conclusion from a wrong key might be gone once that key is right.
    certain = (each for each in _findings(rest, node) if not faulty.concern(each))
    return [*pydantic_errors.findings(error), *certain]


def _without_faults(value: Plain, error: ValidationError) -> tuple[Config, frozenset[Path]]:
    """Return the part of a configuration that is valid, and the paths that were left out.

    Without one key a mapping may be incomplete; then the next round leaves out the whole mapping. It ends,
    because each round leaves out more and an empty configuration is valid.
    """
    removed: frozenset[Path] = frozenset()
    while True:
        faulty = pydantic_errors.faulty(error)
        removed |= faulty
        value = _without(value, faulty, ())
        try:
            return Config.model_validate(value), removed
        except ValidationError as further:
            error = further


def _without(value: Plain, paths: frozenset[Path], at: Path) -> Plain:
    if not isinstance(value, dict):
        return value
    kept = ((key, each) for key, each in value.items() if (*at, key) not in paths)
    return {key: _without(each, paths, (*at, key)) for key, each in kept}
