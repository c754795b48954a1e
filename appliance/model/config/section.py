"""What every mapping of the configuration has in common."""

from pydantic import BaseModel, ConfigDict


def _title(section: type) -> str:
    """Return the title in the JSON Schema, which editors show: `Pool`, not `PoolSection`."""
    return section.__name__.removesuffix("Section")


class Section(BaseModel):
    """A mapping of the file: unknown keys are refused, and nothing is converted silently."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        model_title_generator=_title,
    )
