"""The states of generations and workers: what the drawings show is what the tables hold."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

import pytest

from appliance.core.rollout import states
from appliance.core.rollout.states import (
    GENERATION_MOVES,
    WORKER_MOVES,
    GenerationMove,
    GenerationState,
    WorkerMove,
    WorkerState,
)

pytestmark = pytest.mark.pure

_ARROW = re.compile(r" -(\w+)-> ")


def arrows(drawing: str) -> Iterator[tuple[str, str, str]]:
    """Yield the arrows of a drawing: `A | B -move-> C -other-> D` has three."""
    for line in drawing.splitlines():
        *parts, last = _ARROW.split(line.strip())
        for sources, move, targets in zip(parts[::2], parts[1::2], [*parts[2::2], last], strict=True):
            (target,) = targets.split(" | ")
            for source in sources.split(" | "):
                yield source, move, target


def drawn() -> tuple[str, str]:
    """Return the drawings of a generation and of a worker, indented in the module's docstring."""
    text = states.__doc__ or ""
    generation, worker = re.findall(r"(?:^    .*-> .*\n)+", text, re.MULTILINE)
    return generation, worker


def table(moves: Mapping[tuple[StrEnum, StrEnum], StrEnum]) -> list[tuple[str, str, str]]:
    """Return a table in the form of a drawing's arrows."""
    return sorted((state.name, move.value, target.name) for (state, move), target in moves.items())


def test_the_drawing_of_a_generation_is_its_table() -> None:
    """Every arrow is an entry, and every entry an arrow."""
    assert sorted(arrows(drawn()[0])) == table(GENERATION_MOVES)


def test_the_drawing_of_a_worker_is_its_table() -> None:
    """Every arrow is an entry, and every entry an arrow."""
    assert sorted(arrows(drawn()[1])) == table(WORKER_MOVES)


def test_every_state_and_move_is_used() -> None:
    """No state is out of reach, and no move leads nowhere."""
    assert {move for _, move in GENERATION_MOVES} == set(GenerationMove)
    assert {move for _, move in WORKER_MOVES} == set(WorkerMove)
    assert set(GENERATION_MOVES.values()) | {GenerationState.STARTING} == set(GenerationState)
    assert set(WORKER_MOVES.values()) == set(WorkerState)
