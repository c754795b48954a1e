"""`appliance why`: explains the state of a server, a pool, a frontend, an address or a BGP session."""

import time
from collections.abc import Iterable, Iterator
from textwrap import fill
from typing import Final

import click

from appliance.console.completion.names import all_names
from appliance.console.output.printing import print_json
from appliance.console.output.refusal import LOOK, Refused
from appliance.console.program_questions import interrupt_quietly
from appliance.console.runtime_access import require_access
from appliance.core.log_events.all_events import LOG_EVENTS, log_step
from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.core.why.explanation import Change, Evidence, Explanation, Kind
from appliance.core.why.history import REMEMBERED
from appliance.core.why.subjects import Subject, meant, similar
from appliance.core.why.why import explain
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.events.kept_events import events_since
from appliance.net.observing.observation import observe
from appliance.wire.lines.reload_status import ReloadStatus

_WIDTH: Final = 100
_DAY: Final = 86400.0


@click.command(epilog="Example: appliance why masters/master-1")
@click.argument("name", metavar="NAME", shell_complete=all_names)
@click.option(
    "--kind",
    type=click.Choice([each.value for each in Kind]),
    help="Kind of NAME, if several things have that name.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def why(paths: Paths, *, name: str, kind: str | None, as_json: bool) -> None:
    """Explain a server, pool, frontend, address or BGP session: its state, who decided it, what changes it.

    NAME is a POOL/SERVER, a server's name alone, a pool, a frontend, a virtual IP, a shared IP (also as
    shared/NAME), a neighbour of `bgp`, or an address of one of these: 10.0.0.200, 10.0.0.34:6443, :9445; or
    the name of a warning or error in the log. Changes nothing, and works while programs are down. The history
    comes from the kept events of one day.

    JSON: kind, name, state, since (Unix seconds), decided_by (check, operator, configuration, discovery,
    limit, program, other-program, election, track, interface, peer, sync-group, nobody), answer, reasons,
    circumstances, changes (text and command), history. Of an event of the log: kind, name, means, step.
    """
    require_access(paths.runtime)
    interrupt_quietly()
    observations = observe(paths)
    if kind is None and name in LOG_EVENTS and not _is_of_ours(name, observations):
        _tell_log_event(name, paths, as_json=as_json)
        return
    if isinstance(observations.snapshot, str):
        raise Refused(f"there is no accepted configuration: {observations.snapshot}", step=LOOK)
    subject = _subject(name, observations, observations.snapshot, Kind(kind) if kind else None)
    now = time.time()
    evidence = Evidence(
        snapshot=observations.snapshot,
        observations=observations,
        status=assess(observations, now),
        now=now,
        moment=lambda at: _moment(at, now),
        supervisorctl=paths.supervisorctl,
        events=tuple(events_since(paths, now - REMEMBERED)),
    )
    explanation = explain(subject, evidence)
    if as_json:
        print_json(explanation)
    else:
        click.echo("\n".join(sentences(explanation)))


def _is_of_ours(name: str, observations: Observations) -> bool:
    """Return whether the configuration has this name: it then takes precedence."""
    return isinstance(observations.snapshot, Snapshot) and bool(meant(name, observations.snapshot))


def _tell_log_event(name: str, paths: Paths, *, as_json: bool) -> None:
    means, step = LOG_EVENTS[name].means, log_step(name, supervisorctl=paths.supervisorctl)
    if as_json:
        print_json({"kind": "log-event", "name": name, "means": means, "step": step})
        return
    click.echo(_paragraph(f"{name}, in the log: {means}."))
    click.echo(_paragraph(f"What to do: {step}."))


def sentences(explanation: Explanation) -> Iterator[str]:
    """Yield the lines for a terminal."""
    yield _paragraph(explanation.answer)
    yield from _list((*explanation.reasons, *explanation.circumstances))
    if explanation.history:
        yield "Before:"
        yield from _list(explanation.history)
    if explanation.changes:
        yield "What would change it:"
        yield from _list(map(_change, explanation.changes))


def _change(change: Change) -> str:
    return f"{change.text}: {change.command}" if change.command else f"{change.text}."


def _list(texts: Iterable[str]) -> Iterator[str]:
    yield from (_paragraph(text, first="  - ", further="    ") for text in texts)


def _paragraph(text: str, *, first: str = "", further: str = "") -> str:
    # A command or an address that is broken in two cannot be copied.
    return fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _moment(at: float, now: float) -> str:
    """Return the local time of the day, with the date if it is not today."""
    return time.strftime("%H:%M:%S" if now - at < _DAY else "%Y-%m-%d %H:%M:%S", time.localtime(at))


def _subject(text: str, observations: Observations, snapshot: Snapshot, kind: Kind | None) -> Subject:
    found = meant(text, snapshot, kind=kind)
    if len(found) == 1:
        return found[0]
    hint = _several(text, found) if found else _none(text, observations, snapshot)
    raise click.BadParameter(hint, param_hint="NAME")


def _several(text: str, found: tuple[Subject, ...]) -> str:
    kinds = {each.kind for each in found}
    if len(kinds) == len(found):
        ways = [f"--kind {each.kind}" for each in found]
    else:
        ways = [f"{each.label} (a {each.kind})" for each in found]
    return f"{text!r} may mean {len(found)} things. Which one: {', '.join(ways)}?"


def _none(text: str, observations: Observations, snapshot: Snapshot) -> str:
    near = similar(text, snapshot)
    hint = f" Did you mean {' or '.join(near)}?" if near else " See: appliance status"
    reload = observations.answer(ReloadStatus)
    refused = (
        " The last reload was refused, so what it adds is not there yet." if reload and reload.refused else ""
    )
    return f"nothing is called {text!r}.{hint}{refused}"
