"""The messages between the supervisord of a new appliance and the running one's during a take-over.

Their releases may differ. Fields unknown to a release are ignored, new ones have defaults; a `form` other
than ours is refused with a message, and nothing has happened then.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from appliance.wire.lines.control import Question

TAKE_OVER: Final = "take-over"
"""From the new one: stand by, and let your programs be ended. The answer carries the lock's descriptor."""

DONE: Final = "done"
"""From the new one: it serves, and the other one can go."""

GIVE_BACK: Final = "give-back"
"""From the new one: it cannot start, so continue."""

UPGRADE: Final = "upgrade"
"""From an operator: start the release with this command, so that it takes over."""

COMMAND: Final = "APPLIANCE_COMMAND"
"""Environment variable: the command that was started as `appliance`, as a JSON list of words."""

REFUSALS: Final = "APPLIANCE_REFUSALS"
"""Environment variable of a `run` started by supervisord: the descriptor to which it writes why it ends."""

PREDECESSOR: Final = "APPLIANCE_PREDECESSOR"
"""Environment variable of supervisord: the instance that it takes over from."""

LOCK: Final = "APPLIANCE_LOCK"
"""Environment variable of supervisord: the descriptor of the lock on the runtime directory."""

INSTANCE: Final = "APPLIANCE_INSTANCE"
"""Environment variable: the unique name of this start of the appliance."""

FORMER_INSTANCE: Final = "APPLIANCE_FORMER_INSTANCE"
"""Environment variable: the instance that we have replaced, whose workers are to be replaced too."""

OTHER_GOES_ON: Final = 3
"""Exit status of a start that leaves everything to the running appliance: do not try again."""

FORM: Final = 1
"""The version of these messages."""


_LONGEST_NAME: Final = 100
_MOST_WORDS: Final = 8
_LONGEST_WORD: Final = 4096  # bytes of a path in Linux (PATH_MAX)
_Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]
_Words = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST_WORD)], ...],
    msgspec.Meta(min_length=1, max_length=_MOST_WORDS),
]


class SuccessionError(Exception):
    """The other side sent an unexpected message."""


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two: its release, and its `instance`, unique to each start of an appliance.

    Workers know the instance that started them, so that the new one replaces those of the former.
    """

    form: int = FORM
    version: _Name = ""
    instance: _Name = ""


class Predecessor(msgspec.Struct, frozen=True, kw_only=True):
    """What `run` leaves in the environment for the supervisord that it becomes.

    `connection` is the descriptor of the socket to the former one, `pid` its process.
    """

    connection: int
    pid: int
    version: str = ""
    instance: str = ""


def request(party: Party) -> Question:
    """Return the question of a party that wants to take over."""
    return Question(command=TAKE_OVER, values=values_of(party))


def values_of(party: Party) -> dict[str, object]:
    """Return a party as the values of a message."""
    values: dict[str, object] = msgspec.to_builtins(party)
    return values


def party(values: Mapping[str, object]) -> Party:
    """Return the party in a message; raises SuccessionError, also for a `form` other than ours."""
    try:
        found = msgspec.convert(dict(values), Party)
    except msgspec.ValidationError as error:
        raise SuccessionError(str(error)) from error
    if found.form != FORM:
        raise SuccessionError(f"version {found.version} speaks form {found.form} of a take-over, not {FORM}")
    return found


def wanted(command: Sequence[str]) -> Question:
    """Return an operator's request that this command's release take over."""
    return Question(command=UPGRADE, values={"words": list(command)})


def wanted_command(question: Question) -> tuple[str, ...]:
    """Return the command in such a request; raises SuccessionError."""
    return _command(question.values.get("words"))


def encode_command(command: Sequence[str]) -> str:
    """Return the value of the environment variable for a command."""
    return msgspec.json.encode(list(command)).decode()


def decode_command(text: str) -> tuple[str, ...]:
    """Return the command in the environment variable; raises SuccessionError."""
    try:
        return _command(msgspec.json.decode(text))
    except (ValueError, RecursionError) as error:
        raise SuccessionError(str(error)) from error


def _command(words: object) -> tuple[str, ...]:
    try:
        command = msgspec.convert(words, _Words)
    except msgspec.ValidationError as error:
        raise SuccessionError(f"no command: {error}") from error
    if not command[0].startswith("/") or any("\0" in each for each in command):
        raise SuccessionError("no command: its first word is to be an absolute path")
    return command


def encode_predecessor(predecessor: Predecessor) -> str:
    """Return the value of the environment variable."""
    return msgspec.json.encode(predecessor).decode()


def decode_predecessor(text: str) -> Predecessor:
    """Return the value that `run` left; raises SuccessionError."""
    try:
        return msgspec.json.decode(text, type=Predecessor)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise SuccessionError(str(error)) from error
