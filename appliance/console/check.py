"""`appliance check`: prints all problems of a configuration at once."""

import os
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from appliance.console.output.printing import print_json
from appliance.model.document.document import read
from appliance.model.loading.loading import DRAIN_VARIABLE, Loaded, load
from appliance.model.messages.problems import Finding, Problem, Severity, ordered
from appliance.model.paths import Paths
from appliance.model.rules.machine_needs import needs
from appliance.net.commands.machine_needs import objection
from appliance.net.files import config_file
from appliance.net.files.state_files import FileUnusable

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


@click.command(epilog="Example: appliance check appliance.yaml && appliance reload")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON; the keys are stable.")
@click.option(
    "--here",
    is_flag=True,
    help="Also what this machine lacks: interfaces, commands, the directory of log.file.",
)
@click.pass_obj
def check(paths: Paths, *, file: Path | None, as_json: bool, here: bool) -> None:
    """Validate FILE, by default the configuration of --config, and print every problem with its place.

    Exits 0 when there is no error; warnings do not count. Changes nothing, asks no program.

    JSON: ok, file, errors, warnings; each problem has message, severity, source, path, line and column.
    """
    path = paths.config if file is None else file
    loaded = _with_this_machine(_loaded(path), path) if here else _loaded(path)
    if as_json:
        print_json(
            {
                "ok": not loaded.errors,
                "file": str(path),
                "errors": loaded.errors,
                "warnings": loaded.warnings,
            }
        )
    else:
        _print(path, loaded)
    if loaded.errors:
        raise SystemExit(1)


def _loaded(path: Path) -> Loaded:
    try:
        text = config_file.read(path)
    except FileUnusable as error:
        problem = Problem(message=f"cannot be read: {error}", source=str(path))
        return Loaded(snapshot=None, problems=(problem,))
    return load(text, source=str(path), number=0, drain=os.environ.get(DRAIN_VARIABLE))


def _with_this_machine(loaded: Loaded, path: Path) -> Loaded:
    """Add what this machine lacks; only where the file itself has no errors."""
    if loaded.snapshot is None:
        return loaded
    document = read(config_file.read(path))
    lacks = [
        Finding(path=need.path, message=why)
        for need in needs(loaded.snapshot.virtual_routers)
        if (why := objection(need))
    ]
    file = loaded.snapshot.log.file
    if file is not None and not Path(file).parent.is_dir():
        message = f"there is no directory `{Path(file).parent}` here"
        lacks.append(Finding(path=("log", "file"), message=message))
    found = [document.problem(each, source=str(path)) for each in lacks]
    return replace(loaded, problems=ordered((*loaded.problems, *found)))


def _print(path: Path, loaded: Loaded) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for problem in loaded.problems:
        console.print(_line(problem))
    console.print(Text(f"{path}: {_result(loaded)}", style="bold" if loaded.errors else "green"))


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
