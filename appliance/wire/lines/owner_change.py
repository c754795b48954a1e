"""What `migrate` sends `linger`: connections that have come to this node, and those that have left it."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from appliance.wire.lines.control import ControlError

MOST: Final = 1000
"""Most connections of one kind."""

_Host = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[0-9a-fA-F.:]+$")]
_Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
_Ends = tuple[_Host, _Port, _Host, _Port]
_Some = Annotated[tuple[_Ends, ...], msgspec.Meta(max_length=MOST)]


class OwnerChange(msgspec.Struct, frozen=True, kw_only=True):
    """Connections by the peer's address and port, and ours."""

    ours: _Some = ()
    others: _Some = ()


def values(change: OwnerChange) -> dict[str, object]:
    """Return it as the values of a question."""
    return msgspec.structs.asdict(change)


def decode(given: Mapping[str, object]) -> OwnerChange:
    """Return the change that a question has; raises ControlError."""
    try:
        return msgspec.convert(given, OwnerChange)
    except msgspec.ValidationError as error:
        raise ControlError(f"change-owner: {error}") from error
