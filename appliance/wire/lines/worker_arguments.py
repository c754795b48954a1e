"""What a worker gets from its master at the start: the argument of `python -m appliance.programs.worker`."""

from dataclasses import dataclass

import msgspec

from appliance.model.accept_claims import AcceptClaim


class WorkerArgumentsError(Exception):
    """The argument is not what a master gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InheritedListener:
    """A listening socket that the worker inherits as descriptor `fd`.

    Releases without `claim` had one socket for all their workers.
    """

    frontend: str
    host: str
    port: int
    fd: int
    claim: AcceptClaim = AcceptClaim.EQUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerArguments:
    """Which worker it is, what it listens on, and the descriptor `ready_fd` to write to when it is ready."""

    program: str
    group: str
    generation: int
    index: int
    workers: int
    snapshot: int
    listeners: tuple[InheritedListener, ...]
    ready_fd: int


def encode(arguments: WorkerArguments) -> str:
    """Return the argument."""
    return msgspec.json.encode(arguments).decode()


def decode(argument: str) -> WorkerArguments:
    """Return the arguments; raises WorkerArgumentsError."""
    try:
        return msgspec.json.decode(argument, type=WorkerArguments)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise WorkerArgumentsError(str(error)) from error
