"""What a worker gets from its master at the start: the arguments of `python -m appliance.programs.worker`.

They are one text, split into as many words as necessary: Linux limits a word to less than 128 KiB (execve(2),
MAX_ARG_STRLEN), which is some 1,700 listen addresses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from appliance.model.accept_claims import AcceptClaim

_WORD: Final = 30_000  # characters, of at most four bytes each


class WorkerArgumentsError(Exception):
    """The argument does not have a master's format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedListener:
    """An inherited listening socket, `fd`; releases without `claim` had one for all their workers."""

    frontend: str
    host: str
    port: int
    fd: int
    claim: AcceptClaim = AcceptClaim.EQUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerArguments:
    """The worker's identity and sockets, and the descriptor `ready_fd` to write to when it is ready."""

    program: str
    group: str
    generation: int
    index: int
    workers: int
    snapshot: int
    listeners: tuple[InheritedListener, ...]
    ready_fd: int


def encode(arguments: WorkerArguments) -> tuple[str, ...]:
    """Return the words of the command line, at least one."""
    text = msgspec.json.encode(arguments).decode()
    return tuple(text[start : start + _WORD] for start in range(0, len(text), _WORD))


def decode(words: Sequence[str]) -> WorkerArguments:
    """Return the arguments; raises WorkerArgumentsError."""
    try:
        return msgspec.json.decode("".join(words), type=WorkerArguments)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise WorkerArgumentsError(str(error)) from error
