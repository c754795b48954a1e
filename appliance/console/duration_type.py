"""Durations as options of commands."""

import click

from appliance.model.config.values.units import duration


class DurationType(click.ParamType[float]):
    """A duration, in the configuration's form: 90s, 1h."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        try:
            return value if isinstance(value, float) else duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
