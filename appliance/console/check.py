"""`appliance check`: prints all problems of a configuration at once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from appliance.console.output.printing import print_json
from appliance.core.forwarding.plan import families
from appliance.model.loading.loading import Loaded
from appliance.model.messages.problems import Finding, Problem, Severity, ordered
from appliance.model.paths import Paths
from appliance.model.rules.machine_needs import needs, redirect_paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.commands.machine_needs import objection
from appliance.net.nftables import forwarding
from appliance.net.nftables.nftables import unusable
from appliance.net.sources.judging import OperatorsFiles, collect, load
from appliance.net.sources.read_files import ReadFiles
from appliance.translation.composing import changes, together

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


@click.command(epilog="Example: appliance check appliance.yaml && appliance reload")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON; the keys are stable.")
@click.option(
    "--here",
    is_flag=True,
    help="Also what this machine lacks: interfaces, commands, nftables, the directory of log.file.",
)
@click.pass_obj
def check(paths: Paths, *, file: Path | None, as_json: bool, here: bool) -> None:
    """Validate FILE, by default the configuration of --config, and print every problem with its place.

    With it the files of --haproxy and --keepalived, or of its `source`; their lines that do not mean quite
    the same here are warnings. Exits 0 when there is no error; warnings do not count. Changes nothing, asks
    no program.

    JSON: ok, file, files, errors, warnings; each problem has message, severity, source, path, line and
    column.
    """
    found = collect(paths if file is None else _with(paths, file), ReadFiles())
    loaded = load(found, number=0)
    added = list(changes(found.translations))
    if here and loaded.snapshot is not None:
        added += _lacks(loaded.snapshot, found)
    loaded = replace(loaded, problems=ordered((*loaded.problems, *added)))
    files = [str(each) for each in found.files]
    if as_json:
        print_json(
            {
                "ok": not loaded.errors,
                "file": files[0],
                "files": files,
                "errors": loaded.errors,
                "warnings": loaded.warnings,
            }
        )
    else:
        _print(files, loaded)
    if loaded.errors:
        raise SystemExit(1)


def _with(paths: Paths, file: Path) -> Paths:
    """Return the places with another file of ours, which is then needed, whatever is beside it."""
    alone = replace(paths, config=file, haproxy=None, keepalived=None)
    return replace(paths, config=file) if file.exists() else alone


def _lacks(snapshot: Snapshot, found: OperatorsFiles) -> Iterator[Problem]:
    """Yield what this machine lacks for a configuration without errors."""
    source = str(found.config)
    document, _ = together(found.document, found.translations, source=source)
    for need in needs(snapshot.virtual_routers):
        if why := objection(need):
            yield document.problem(Finding(path=need.path, message=why), source=source)
    if (redirected := redirect_paths(snapshot)) and (why := unusable()):
        for path in redirected:
            message = f"nftables cannot be used here: {why}"
            yield document.problem(Finding(path=path, message=message), source=source)
    for group, frontend in snapshot.forwarded:
        for why in forwarding.objections(families(snapshot, frontend)):
            where = (group.name, "frontends", frontend.name, "forward")
            yield document.problem(Finding(path=where, message=why), source=source)
    file = snapshot.log.file
    if file is not None and not Path(file).parent.is_dir():
        message = f"there is no directory `{Path(file).parent}` here"
        yield document.problem(Finding(path=("log", "file"), message=message), source=source)


def _print(files: Sequence[str], loaded: Loaded) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for problem in loaded.problems:
        console.print(_line(problem))
    console.print(Text(f"{', '.join(files)}: {_result(loaded)}", style="bold" if loaded.errors else "green"))


def _line(problem: Problem) -> Text:
    severity = "" if problem.severity is Severity.ERROR else f"{problem.severity}: "
    path = f"{problem.path}: " if problem.path else ""
    return Text.assemble(
        (f"{problem.where}: " if problem.where else "", "bold"),
        (severity, _COLOURS[problem.severity]),
        (path, "cyan"),
        (problem.message, _COLOURS[problem.severity]),
    )


def _result(loaded: Loaded) -> str:
    counts = ((len(loaded.errors), "error"), (len(loaded.warnings), "warning"))
    parts = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count]
    return ", ".join(parts if loaded.errors else ["ok", *parts])
