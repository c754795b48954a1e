"""The operator's configuration and the snapshots, without secrets, and these secrets."""

import contextlib
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import yaml
from pydantic import ValidationError

from appliance.console.support.parts import Part, PartMissing, as_json
from appliance.model.config.configuration import Config
from appliance.model.document.tree import Plain
from appliance.model.messages.redaction import redacted
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.model.validation import pydantic_errors
from appliance.net.files import snapshots, state_files
from appliance.net.files.state_files import FileUnusable
from appliance.net.sources.judging import OperatorsFiles, collect, load
from appliance.net.sources.read_files import ReadFiles
from appliance.translation.combined_files import changes, together

_MOST_SNAPSHOTS: Final = 8
_LONGEST_SECRET_FILE: Final = 1 << 18
_SECRET_FILES: Final = frozenset({"password_file", "token_file", "webhook_file", "kubeconfig"})
_CREDENTIALS: Final = frozenset({"token", "password", "client-key-data", "client-certificate-data", "secret"})


class Configuration:
    """The operator's current files, and all secrets that they and the snapshots contain or name."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._found = collect(paths, ReadFiles())
        self._value = _said(self._found)
        self._shown = redacted(self._value, unknown=_faulty(self._value))
        self._snapshots = dict(_snapshots(paths))
        trees = [_tree(each) for each in self._snapshots.values() if isinstance(each, Snapshot)]
        named = {file for tree in (self._value, *trees) for file in _files(tree)}
        self.secrets = frozenset(
            {
                *self._shown.secrets,
                *(secret for tree in trees for secret in redacted(tree).secrets),
                *(secret for file in named for secret in _content(file)),
            }
        )

    def parts(self) -> Iterator[Part]:
        """Yield the configuration, its problems, and each snapshot."""
        yield Part(name="configuration.yaml", made=self._text)
        yield Part(name="check.txt", made=self._problems)
        for name, found in self._snapshots.items():
            yield Part(name=f"snapshots/{name}.json", made=partial(_snapshot_text, found))

    def _text(self) -> str:
        if self._found.document is None and not self._found.translations:
            raise PartMissing("; ".join(map(str, self._found.problems)) or "there is no configuration")
        origin = " with ".join(map(str, self._found.files))
        return f"# {origin}, without secrets and comments\n" + yaml.safe_dump(
            self._shown.value, sort_keys=False
        )

    def _problems(self) -> str:
        loaded = load(self._found, number=0)
        lines = [
            f"{each.severity}: {each}" for each in (*loaded.problems, *changes(self._found.translations))
        ]
        return "\n".join(lines or ["no problem"]) + "\n"


def _said(found: OperatorsFiles) -> dict[str, Plain]:
    return together(found.document, found.translations, source=str(found.config))[0].value


def _faulty(value: dict[str, Plain]) -> frozenset[tuple[str | int, ...]]:
    """Return the paths of invalid values: a secret may be in a wrong place."""
    try:
        Config.model_validate(value)
    except ValidationError as error:
        return frozenset(pydantic_errors.faulty(error))
    return frozenset()


def _snapshots(paths: Paths) -> Iterator[tuple[str, Snapshot | str]]:
    numbered = sorted(
        (each for each in paths.snapshot(0).parent.glob("*.json") if each.stem.isdecimal()),
        key=lambda each: int(each.stem),
        reverse=True,
    )
    for name, path in (
        ("accepted", paths.accepted),
        ("last-good", paths.last_good),
        *((each.stem, each) for each in islice(numbered, _MOST_SNAPSHOTS)),
    ):
        try:
            yield name, snapshots.read(path) or f"{path}: not there"
        except SnapshotError as error:
            yield name, str(error)


def _snapshot_text(found: Snapshot | str) -> str:
    if isinstance(found, str):
        raise PartMissing(found)
    return as_json(redacted(_tree(found)).value)


def _tree(snapshot: Snapshot) -> dict[str, object]:
    tree: dict[str, object] = msgspec.to_builtins(snapshot)
    return tree


def _files(value: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the paths of files that hold secrets, as a configuration names them."""
    match value:
        case dict():
            for name, each in value.items():
                yield from _files(each, (*path, str(name)))
        case list() | tuple():
            for each in value:
                yield from _files(each, path)
        case str() if value.startswith("file:/"):
            yield value.removeprefix("file:")
        case str() if value.startswith("/") and path and _names_a_secret(path):
            yield value


def _names_a_secret(path: tuple[str, ...]) -> bool:
    return path[-1] in _SECRET_FILES or (path[-1] == "file" and "hmac" in path)


def _content(file: str) -> Iterator[str]:
    """Yield the secrets in a file: its lines, or the credentials of a kubeconfig."""
    with contextlib.suppress(FileUnusable, UnicodeDecodeError):
        text = (state_files.read(Path(file), limit=_LONGEST_SECRET_FILE) or b"").decode()
        with contextlib.suppress(yaml.YAMLError, RecursionError):
            said = yaml.safe_load(text)
            if isinstance(said, dict) and "users" in said:
                yield from _credentials(said)
                return
        for line in map(str.strip, text.splitlines()):
            yield line
            yield from redacted({"webhook": line}).secrets  # the parts of a URL


def _credentials(value: object) -> Iterator[str]:
    match value:
        case dict():
            for key, each in value.items():
                if key in _CREDENTIALS and isinstance(each, str):
                    yield each
                yield from _credentials(each)
        case list():
            for each in value:
                yield from _credentials(each)
