"""The section `keepalive` of frontends, pools and defaults."""

from pydantic import Field, model_validator

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import MOST_PROBES, KeepAliveTime, written
from appliance.model.config.values.units import keepalive_time


class KeepAliveSection(Section):
    """TCP keepalive of idle connections, which detects dead peers; `off` is short for `count: 0`."""

    idle: KeepAliveTime = written("60s", keepalive_time)
    """Idle time before the first probe, 1s to 32767s (HAProxy's tcpka-idle)."""
    interval: KeepAliveTime = written("10s", keepalive_time)
    """Time between probes, 1s to 32767s (HAProxy's tcpka-intvl)."""
    count: int = Field(default=3, ge=0, le=MOST_PROBES)
    """Unanswered probes after which a connection is closed (HAProxy's tcpka-cnt); 0 sends none."""

    @model_validator(mode="before")
    @classmethod
    def _off(cls, value: object) -> object:
        return {"count": 0} if value == "off" else value
