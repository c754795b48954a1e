"""`appliance fleet push`: one configuration, accepted on all nodes that can be reached or on none."""

import hashlib
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

import click

from appliance.console.fleet.asking import Fleet, Way
from appliance.console.fleet.remote import RemoteCommand, closed_at_the_end, wait, why
from appliance.console.output.error_positions import located
from appliance.console.output.printing import print_json
from appliance.core.fleet.push import Fate, Order, Outcome, Push, Step
from appliance.model.messages.quoting import printable
from appliance.wire.lines import node_answers
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.node_answers import NodeAnswerError, NodeVerdict

_MARGIN: Final = 5.0
"""Seconds beyond a node's own time limit, in which it says that it is over."""

_MISUSE: Final = 2

_DOING: Final = {
    Step.CHECKED: "has checked it",
    Step.APPLIED: "has applied it",
    Step.KEPT: "keeps it",
    Step.BACK: "uses the configuration before again",
}


class Talk:
    """The orders for one node, and its answers."""

    def __init__(self, command: RemoteCommand) -> None:
        self.command = command
        self.heard: dict[str, NodeVerdict] = {}
        self._read = 0

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.command.name

    def has(self, step: Step) -> bool:
        """Return whether a step was reported; what is no line of ours is passed over."""
        output = self.command.output
        while (end := output.find(b"\n", self._read)) >= 0:
            line, self._read = bytes(output[self._read : end]), end + 1
            try:
                verdict = node_answers.step(line)
            except NodeAnswerError as error:
                self.command.give_up(str(error))
                break
            if verdict:
                self.heard[verdict.step] = verdict
        return step in self.heard

    @property
    def errors(self) -> list[AnswerProblem]:
        """The errors of all steps."""
        return _distinct(each.errors for each in self.heard.values())

    @property
    def warnings(self) -> list[AnswerProblem]:
        """The warnings of all steps: those of the check are repeated when the file is applied."""
        return _distinct(each.warnings for each in self.heard.values())

    def outcome(self, step: Step) -> Outcome:
        """Return the outcome of a step on the node that is no longer awaited."""
        if self.has(step):
            return Outcome.AGREED if self.heard[step].ok else Outcome.REFUSED
        if self.command.denial:
            return Outcome.REFUSED
        if self.command.is_unreachable and not self.heard:
            return Outcome.DOWN
        return Outcome.LOST

    def trouble(self, step: Step) -> str | None:
        """Return why a step was not reported, None if it was."""
        if self.has(step):
            return None
        said = why(self.command)
        old = self.command.status == _MISUSE and not self.heard
        return f"its release has no `fleet` to accept it: {said}" if old else said


@click.command("push", epilog="Example: appliance fleet push appliance.yaml && appliance fleet status")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.pass_obj
def fleet_push(way: Way, *, file: Path, as_json: bool) -> None:
    """Have all nodes that FILE names accept it, or none.

    Each node checks it first, by the release there and as itself. If no node that can be reached refuses, it
    replaces the configuration file of each, and is applied. If that is refused anywhere, every node puts the
    file before back and applies that; so it does if the connection to it is lost, or after Ctrl-C. The file
    before stays beside the new one, its name ending with `.former`. Files that it refers to (`file:...`) are
    not copied.

    A node that cannot be reached is named, and does not keep the others from it: push it again when the node
    is back. One that answers ssh but not the command in time counts as a refusal, and so does one that does
    not accept your key, or that ssh does not know: it may be up. Where no appliance runs, the next start uses
    the file.

    Exits 0 if all nodes have accepted it; 1 if none has, or not all.

    JSON: ok, accepted (whether the nodes that were reached have it), digest (SHA-256 of FILE), and nodes,
    each with name, outcome (accepted, as before, not reached, not known), trouble, errors, warnings.
    """
    fleet = way.fleet(file)
    digest = hashlib.sha256(fleet.text).hexdigest()
    words = ("fleet", "--timeout", f"{way.timeout:g}", "accept")
    arguments = (*words, "--size", str(len(fleet.text)), "--sha256", digest)
    line = way.transport.command
    talks = {each.name: Talk(fleet.begin(each, line(each, arguments))) for each in fleet.nodes}
    push, missed = Push(talks), dict[str, str]()
    with closed_at_the_end([each.command for each in talks.values()]):
        for each in talks.values():
            each.command.send(fleet.text)
        try:
            _push(push, talks, missed, way.timeout)
        except KeyboardInterrupt:
            if push.awaited is not None:
                _go_back(talks, way.timeout)
            raise
    if as_json:
        print_json(_values(push, talks, missed, digest))
    else:
        _print(push, talks, missed, fleet)
    if set(push.fates.values()) != {Fate.ACCEPTED}:
        raise SystemExit(1)


def _push(push: Push, talks: Mapping[str, Talk], missed: dict[str, str], timeout: float) -> None:
    """Take all nodes from step to step; `missed` is filled with why some took no further part."""
    with ExitStack() as stack:
        while (step := push.awaited) is not None:
            taking_part = [talks[name] for name in push.taking_part]
            _await(taking_part, step, timeout)
            for each in taking_part:
                if trouble := each.trouble(step):
                    missed.setdefault(each.name, printable(trouble))
            order = push.decide({each.name: each.outcome(step) for each in taking_part})
            if order is Order.KEEP:  # no Ctrl-C may come between the word to one node and that to the next
                stack.enter_context(_uninterrupted())
            for each in taking_part:
                _order(each.command, order)


def _order(command: RemoteCommand, order: Order | None) -> None:
    if command.is_running:
        command.send(f"{order}\n".encode() if order else b"", last=order is None)


def _await(talks: Sequence[Talk], step: Step, timeout: float) -> None:
    by_command = {id(each.command): each for each in talks}

    def progress(command: RemoteCommand) -> None:
        talk = by_command[id(command)]
        reached = talk.has(step)
        said = _DOING[step] if reached and talk.heard[step].ok else talk.trouble(step) or "refuses it"
        click.echo(f"{talk.name}: {printable(said)}", err=True)

    wait(
        [each.command for each in talks],
        lambda command: by_command[id(command)].has(step),
        seconds=timeout + _MARGIN,
        progress=progress,
    )


def _go_back(talks: Mapping[str, Talk], timeout: float) -> None:
    """Let every node go back, and wait for those that had applied it."""
    click.echo("Interrupted: every node returns to its previous configuration.", err=True)
    for each in talks.values():
        _order(each.command, None)
    _await([each for each in talks.values() if Step.APPLIED in each.heard], Step.BACK, timeout)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _distinct(found: Iterable[Iterable[AnswerProblem]]) -> list[AnswerProblem]:
    return list(dict.fromkeys(chain.from_iterable(found)))


def _values(
    push: Push, talks: Mapping[str, Talk], missed: Mapping[str, str], digest: str
) -> dict[str, object]:
    nodes = [
        {
            "name": name,
            "outcome": push.fates[name],
            "trouble": missed.get(name),
            "errors": talk.errors,
            "warnings": talk.warnings,
        }
        for name, talk in talks.items()
    ]
    ok = set(push.fates.values()) == {Fate.ACCEPTED}
    return {"ok": ok, "accepted": push.is_accepted, "digest": digest, "nodes": nodes}


def _print(push: Push, talks: Mapping[str, Talk], missed: Mapping[str, str], fleet: Fleet) -> None:
    for name, talk in talks.items():
        for each in talk.errors:
            click.echo(printable(f"{name}: {located(each, fleet.file)}"), err=True)
        for each in talk.warnings:
            click.echo(printable(f"{name}: warning: {located(each, fleet.file)}"), err=True)
        stopped = Step.KEPT in talk.heard and not talk.heard[Step.CHECKED].runs
        note = f" ({missed[name]})" if name in missed else " (no appliance runs there)" if stopped else ""
        click.echo(f"{name}: {push.fates[name]}{note}")
    click.echo(_verdict(push, fleet))


def _verdict(push: Push, fleet: Fleet) -> str:
    absent = [name for name, fate in push.fates.items() if fate is not Fate.ACCEPTED]
    if not absent:
        return f"Accepted on all nodes: {fleet.file}."
    if push.is_accepted:
        return f"Accepted, but not on {', '.join(absent)}: when back, `appliance fleet push {fleet.file}`."
    unknown = [name for name, fate in push.fates.items() if fate is Fate.UNKNOWN]
    if unknown:
        return f"Refused, and not known of {', '.join(unknown)}: `appliance fleet status` shows what it uses."
    return "Refused: all nodes have the configuration before."
