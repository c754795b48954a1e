"""What pydantic says of lists and texts that are too short or too long, in words for the operator."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from appliance.model.validation import pydantic_errors

pytestmark = pytest.mark.pure

PATH = ("pools", "p", "hash_on")


class Pool(BaseModel):
    """A pool, of which two parts decide."""

    hash_on: Annotated[tuple[Literal["source", "source-port"], ...], Field(min_length=2)]


class Whole(BaseModel):
    """A configuration with pools."""

    pools: dict[str, Pool]


def found(*parts: str) -> list[tuple[object, str]]:
    """Return the findings about a pool with these parts, each with its path."""
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"pools": {"p": {"hash_on": parts}}})
    return [(each.path, each.message) for each in pydantic_errors.findings(caught.value)]


def test_a_list_with_too_few_items_is_told():
    """Also if it has some, and all of them are right."""
    assert found("source") == [(PATH, "must have 2 or more, not 1")]
    assert found() == [(PATH, 'must not be empty: for example `["source", "destination-port"]`')]


def test_a_list_is_not_told_to_be_short_of_the_items_that_are_wrong():
    """Pydantic drops those, and says so of each."""
    assert [path for path, _ in found("sauce", "source")] == [(*PATH, 0)]


def test_a_text_that_is_too_long():
    """Its limit is told; it may be a secret, and is not repeated."""

    class Track(BaseModel):
        process: Annotated[str, Field(max_length=3)]

    with pytest.raises(ValidationError) as caught:
        Track.model_validate({"process": "long"})
    (finding,) = pydantic_errors.findings(caught.value)
    assert finding.message == "must have 3 characters or less"
