"""The lines between `vrrp` and its tracker: one JSON object a line, its kind in the field `kind`.

Orders go to the tracker, reports come back. The reader splits the stream with `line_buffer.LineBuffer`.
"""

import msgspec

from appliance.model.snapshot.virtual_router import Track


class TrackerLineError(Exception):
    """A line that the other side does not send."""


class WatchTracks(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="watch"
):
    """Track exactly these, each for its virtual router; tracks that already run keep their state."""

    tracks: tuple[tuple[str, Track], ...]


class RunCommand(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="run"
):
    """Run a notify command of a virtual router; `user` None is vrrp's own user, `timeout` seconds."""

    router: str
    words: tuple[str, ...]
    user: str | None
    timeout: float


class WriteLine(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="write"
):
    """Write a line about a virtual router into the FIFO at a path."""

    router: str
    path: str
    line: str


class TrackVerdict(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="verdict"
):
    """The state of one track: `value` is a file's number (else 0), `at` seconds of CLOCK_MONOTONIC.

    JSON has at most 64 bits of `value`, and no lone surrogates in `detail`: the tracker keeps to both.
    """

    router: str
    track: str
    up: bool
    value: int
    detail: str
    at: float


class CommandEnded(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="ran"
):
    """A notify command has ended, or could not be started; `outcome` is its result, for the log.

    For a line that could not be written to a FIFO, the command is the FIFO's path.
    """

    router: str
    words: tuple[str, ...]
    outcome: str


Order = WatchTracks | RunCommand | WriteLine
Report = TrackVerdict | CommandEnded

_ENCODER = msgspec.json.Encoder()
_ORDERS: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
_REPORTS: msgspec.json.Decoder[Report] = msgspec.json.Decoder(Report)


def encode(message: Order | Report) -> bytes:
    """Return the line, with its end."""
    return _ENCODER.encode(message) + b"\n"


def decode_order(line: bytes) -> Order:
    """Return the order in a line from vrrp; raises TrackerLineError."""
    try:
        return _ORDERS.decode(line)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise TrackerLineError(str(error)) from error


def decode_report(line: bytes) -> Report:
    """Return the report in a line from the tracker; raises TrackerLineError."""
    try:
        return _REPORTS.decode(line)
    except (ValueError, RecursionError) as error:
        raise TrackerLineError(str(error)) from error
