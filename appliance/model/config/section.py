"""The base of every mapping of the configuration."""

from typing import get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, model_validator


def _title(section: type) -> str:
    """Return the title in the JSON Schema, which editors show: `Pool`, not `PoolSection`."""
    return section.__name__.removesuffix("Section")


class Section(BaseModel):
    """A mapping of the file: unknown keys are refused, and nothing is converted silently.

    A mapping's key without a value (`servers:` from a template that had none) is an empty mapping.
    """

    model_config = ConfigDict(
        defer_build=True,  # the file's own type has the validators of all others in its own
        extra="forbid",
        frozen=True,
        strict=True,
        model_title_generator=_title,
    )

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: object) -> object:
        if not isinstance(value, dict) or None not in value.values():
            return value
        fields = {field.alias or name: field.annotation for name, field in cls.model_fields.items()}
        return {
            key: each for key, each in value.items() if each is not None or not _is_mapping(fields.get(key))
        }


def behind_names(section: type[Section]) -> object:
    """Return the type of the values by name that a section has besides its own keys; None without them."""
    if section.model_config.get("extra") != "allow":
        return None
    return get_args(get_type_hints(section, include_extras=True)["__pydantic_extra__"])[1]


def _is_mapping(annotation: object) -> bool:
    if get_origin(annotation) is dict:
        return True
    if isinstance(annotation, type):
        return issubclass(annotation, Section)
    return any(map(_is_mapping, get_args(annotation)))
