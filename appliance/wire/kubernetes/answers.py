"""Answers of an API server: a list's page, a watch's event, a refusal; any bytes, or AnswerError."""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec

from appliance.wire.kubernetes.objects import ApiObject

GONE: Final = 410
"""Code of an ERROR event, and status of an answer: this resourceVersion is too old, list again."""

_LONGEST_REASON: Final = 300

AnyObject = TypeVar("AnyObject", bound=ApiObject)


class AnswerError(Exception):
    """The bytes are no such answer; the message names what is wrong."""


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _ListMetadata
    items: tuple[msgspec.Raw, ...] | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct, frozen=True):
    metadata: _ListMetadata


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[AnyObject]):
    """A part of a list; `more` requests the next one, None at the end."""

    items: tuple[AnyObject, ...]
    resource_version: str
    more: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Generic[AnyObject]):
    """An object was added or changed; `resource_version` is where a later watch continues."""

    value: AnyObject
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Generic[AnyObject]):
    """An object was deleted."""

    value: AnyObject
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """Nothing has changed up to this version."""

    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The reason for a refusal, in the server's words."""

    code: int
    message: str


def decode_page(data: bytes, kind: type[AnyObject]) -> Page[AnyObject]:
    """Return a page of a list of objects of a kind; raises AnswerError."""
    found = _decoded(data, _List)
    return Page(
        items=tuple(_decoded(bytes(each), kind) for each in found.items or ()),
        resource_version=found.metadata.resource_version,
        more=found.metadata.continue_ or None,
    )


def decode_event(
    line: bytes, kind: type[AnyObject]
) -> Changed[AnyObject] | Deleted[AnyObject] | Bookmark | Refusal:
    """Return one event of a watch; raises AnswerError."""
    event = _decoded(line, _Event)
    inner = bytes(event.object)
    match event.type:
        case "ADDED" | "MODIFIED":
            value = _decoded(inner, kind)
            return Changed(value=value, resource_version=value.metadata.resource_version)
        case "DELETED":
            value = _decoded(inner, kind)
            return Deleted(value=value, resource_version=value.metadata.resource_version)
        case "BOOKMARK":
            return Bookmark(resource_version=_decoded(inner, _Versioned).metadata.resource_version)
        case "ERROR":
            return decode_refusal(inner, status=0)
        case other:
            raise AnswerError(f"an event of the unknown type {other[:40]!r}")


def decode_refusal(body: bytes, *, status: int) -> Refusal:
    """Return the reason in a refusal's body; `status` is HTTP's, which counts for bodies of other origin."""
    try:
        found = _decoded(body, _Status)
    except AnswerError:
        return Refusal(code=status, message=f"status {status}")
    words = found.message or found.reason or f"status {found.code or status}"
    return Refusal(
        code=found.code or status, message="".join(filter(str.isprintable, words))[:_LONGEST_REASON]
    )


_Decoded = TypeVar("_Decoded")


def _decoded(data: bytes, kind: type[_Decoded]) -> _Decoded:
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise AnswerError(f"no {kind.__name__.lstrip('_')}: {error}"[:_LONGEST_REASON]) from error
