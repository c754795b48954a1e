"""One look at the appliance, as all views share it."""

from dataclasses import dataclass

from appliance.core.status.status import Status
from appliance.core.top.rates import Rates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One look: the status, and the rates since the look before. No two looks are equal."""

    status: Status
    rates: Rates
