"""The answer of a proxy's master to `status`."""

from dataclasses import dataclass

from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyStatus(StatusAnswer):
    """The answer; `generation` is the one whose workers accept connections."""

    generation: int | None = None
