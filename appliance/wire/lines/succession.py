"""What the supervisord of a new appliance and that of the running one say to each other during a take-over.

Both may be of different releases. Fields that a release does not know are ignored, those that it adds have
defaults; a `form` that is not ours is refused in words, and nothing has happened then.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from appliance.wire.lines.control import Question

TAKE_OVER: Final = "take-over"
"""The new one asks: stand by, and let your programs be ended. The answer brings the lock's descriptor."""

DONE: Final = "done"
"""The new one serves: the other one can go."""

GIVE_BACK: Final = "give-back"
"""The new one does not come up: go on."""

UPGRADE: Final = "upgrade"
"""An operator asks: start the release with this command, so that it takes over."""

COMMAND: Final = "APPLIANCE_COMMAND"
"""Environment variable: the command that was started as `appliance`, as a JSON list of words."""

REFUSALS: Final = "APPLIANCE_REFUSALS"
"""Environment variable of a `run` that supervisord has started: the descriptor that takes why it ends."""

PREDECESSOR: Final = "APPLIANCE_PREDECESSOR"
"""Environment variable of supervisord: whom it takes over from."""

LOCK: Final = "APPLIANCE_LOCK"
"""Environment variable of supervisord: the descriptor that holds the runtime directory."""

INSTANCE: Final = "APPLIANCE_INSTANCE"
"""Environment variable: the name of this start of the appliance, which no other start has."""

FORMER_INSTANCE: Final = "APPLIANCE_FORMER_INSTANCE"
"""Environment variable: the instance with which we changed places, whose workers are to be replaced."""

OTHER_GOES_ON: Final = 3
"""Exit status of a start that leaves everything to the appliance that runs: not to be tried again."""

FORM: Final = 1
"""The form of these messages."""


_LONGEST_NAME: Final = 100
_MOST_WORDS: Final = 8
_LONGEST_WORD: Final = 4096  # bytes of a path, as Linux takes them (PATH_MAX)
_Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]
_Words = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST_WORD)], ...],
    msgspec.Meta(min_length=1, max_length=_MOST_WORDS),
]


class SuccessionError(Exception):
    """The other side has not sent what belongs there."""


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two: its release, and its `instance`, which no other start of an appliance has.

    Workers know the instance that started them, so that the new one replaces those of the former.
    """

    form: int = FORM
    version: _Name = ""
    instance: _Name = ""


class Predecessor(msgspec.Struct, frozen=True, kw_only=True):
    """What `run` leaves in the environment of the supervisord that it becomes.

    `connection` is the descriptor of the socket over which the former one was asked, `pid` its process.
    """

    connection: int
    pid: int
    version: str = ""
    instance: str = ""


def request(party: Party) -> Question:
    """Return the question of who wants to take over."""
    return Question(command=TAKE_OVER, values=values_of(party))


def values_of(party: Party) -> dict[str, object]:
    """Return a party as the values of a message."""
    values: dict[str, object] = msgspec.to_builtins(party)
    return values


def party(values: Mapping[str, object]) -> Party:
    """Return who a message speaks of; raises SuccessionError, also for a form that is not ours."""
    try:
        found = msgspec.convert(dict(values), Party)
    except msgspec.ValidationError as error:
        raise SuccessionError(str(error)) from error
    if found.form != FORM:
        raise SuccessionError(f"version {found.version} speaks form {found.form} of a take-over, not {FORM}")
    return found


def wanted(command: Sequence[str]) -> Question:
    """Return the question of an operator who wants this command's release to take over."""
    return Question(command=UPGRADE, values={"words": list(command)})


def wanted_command(question: Question) -> tuple[str, ...]:
    """Return the command of such a question; raises SuccessionError."""
    return _command(question.values.get("words"))


def encode_command(command: Sequence[str]) -> str:
    """Return a command as the environment variable."""
    return msgspec.json.encode(list(command)).decode()


def decode_command(text: str) -> tuple[str, ...]:
    """Return the command of the environment variable; raises SuccessionError."""
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
    """Return the environment variable."""
    return msgspec.json.encode(predecessor).decode()


def decode_predecessor(text: str) -> Predecessor:
    """Return what `run` left; raises SuccessionError."""
    try:
        return msgspec.json.decode(text, type=Predecessor)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise SuccessionError(str(error)) from error
