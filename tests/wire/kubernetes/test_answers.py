"""Answers of an API server: pages, events and refusals; any other bytes are one error."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.kubernetes.answers import (
    AnswerError,
    Bookmark,
    Changed,
    Deleted,
    Refusal,
    decode_event,
    decode_page,
    decode_refusal,
)
from appliance.wire.kubernetes.objects import ConfigMap, EndpointSlice, IngressController, Node

pytestmark = pytest.mark.pure

NODE = {
    "metadata": {"name": "master-0", "resourceVersion": "7", "labels": {"a": "b"}, "managedFields": [{}]},
    "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "conditions": []},
}


def event(kind: str, value: object) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": value}).encode()


def test_a_page_has_objects_and_what_asks_for_the_next():
    """Only the fields that are needed are looked at; the last page has no continuation."""
    body = {"metadata": {"resourceVersion": "9", "continue": "abc"}, "items": [NODE]}
    page = decode_page(json.dumps(body).encode(), Node)
    assert (page.resource_version, page.more) == ("9", "abc")
    assert [(each.metadata.name, each.status.addresses[0].address) for each in page.items] == [
        ("master-0", "10.0.0.1")
    ]
    assert decode_page(b'{"metadata":{"resourceVersion":"9","continue":""},"items":null}', Node).more is None


def test_events():
    """Objects come, change and go; bookmarks carry a version; errors are refusals."""
    changed = decode_event(event("ADDED", NODE), Node)
    assert isinstance(changed, Changed)
    assert changed.resource_version == "7"
    assert isinstance(decode_event(event("MODIFIED", NODE), Node), Changed)
    gone = decode_event(event("DELETED", NODE), Node)
    assert isinstance(gone, Deleted)
    assert gone.value.metadata.name == "master-0"
    bookmark = event("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": "12"}})
    assert decode_event(bookmark, Node) == Bookmark(resource_version="12")
    error = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})
    assert decode_event(error, Node) == Refusal(code=410, message="too old resource version")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"type":"PAINTED","object":{}}',
        b'{"type":"ADDED","object":{"metadata":{}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":7}}}',
        b'{"type":"BOOKMARK","object":{}}',
        b'{"type":"ADDED","object":' + b"[" * 5000,
    ],
)
def test_what_is_no_event_is_one_error(line: bytes):
    """Whatever is wrong with a line, its reader learns it by one class of error."""
    with pytest.raises(AnswerError):
        decode_event(line, Node)


def test_a_refusal_is_told_in_the_servers_words():
    """Message, else reason, else the status; a page of some proxy is not shown; no control characters."""
    said = b'{"kind":"Status","code":403,"reason":"Forbidden","message":"nodes is \\u001b[1mforbidden"}'
    assert decode_refusal(said, status=403) == Refusal(code=403, message="nodes is [1mforbidden")
    assert decode_refusal(b'{"reason":"Forbidden"}', status=403) == Refusal(code=403, message="Forbidden")
    assert decode_refusal(b"{}", status=500) == Refusal(code=500, message="status 500")
    assert decode_refusal(b"<html>", status=502) == Refusal(code=502, message="status 502")


@given(st.binary(max_size=300))
def test_garbage_never_escapes(data: bytes):
    """Any bytes give a page, an event, a refusal, or AnswerError."""
    for kind in (Node, EndpointSlice, IngressController, ConfigMap):
        for decode in (decode_page, decode_event):
            with suppress(AnswerError):
                decode(data, kind)
    assert decode_refusal(data, status=500).message
