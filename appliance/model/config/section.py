"""What every mapping of the configuration has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping of the file: unknown keys are refused, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)
