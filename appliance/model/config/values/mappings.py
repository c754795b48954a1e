"""Lists of mappings, such as the steps of a check: an error names the mapping by its number, and the key."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from appliance.model.messages.problems import nearest
from appliance.model.messages.quoting import shown

_Made = TypeVar("_Made")


def mappings(
    value: object,
    read: Callable[[Mapping[str, object]], _Made],
    *,
    noun: str,
    most: int,
    keys: Collection[str],
    example: str,
) -> tuple[_Made, ...]:
    """Return what `read` makes of each mapping of a list; `noun` is what one of them is called.

    Raises ValueError with the number of the one that is wrong: no mapping, a key that is none of `keys`, or
    whatever `read` raises ValueError for.
    """
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise ValueError(f"must be a list of 1 to {most} {noun}s, such as `- {example}`")
    found: list[_Made] = []
    for number, each in enumerate(value, start=1):
        try:
            found.append(read(_mapping(each, keys, example)))
        except ValueError as error:
            raise ValueError(f"{noun} {number}: {error}") from None
    return tuple(found)


def _mapping(value: object, keys: Collection[str], example: str) -> Mapping[str, object]:
    if isinstance(value, dict):
        for key in value:
            if key not in keys:
                meant = nearest(key, keys)
                right = f"did you mean `{meant}`?" if meant else f"known here are {', '.join(keys)}"
                raise ValueError(f"unknown key {shown(key)}: {right}")
        return value
    raise ValueError(f"must be a mapping, such as `{example}`")
