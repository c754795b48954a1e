"""Messages show no secret, wherever in its neighbourhood one was written, and no order to a terminal."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from appliance.model.config.json_schema import json_schema
from appliance.model.config.values.vrrp import SECRET_PATTERN
from appliance.model.loading.loading import load
from appliance.model.messages.problems import Path
from appliance.model.messages.redaction import redacted
from appliance.model.messages.secrets import KNOWN, concealed, is_secret, without
from appliance.model.validation.unknown_keys import fields

pytestmark = pytest.mark.pure

SECRET = "s3cr3t-Z9q"  # noqa: S105  # nobody's
_ROUTER = """\
virtual_ips:
  v:
    addresses: [10.0.0.1/24]
    interface: e0
    router_id: 1
    {line}
"""
_LINES = (
    f"auth: {SECRET}",
    f"auth: [{SECRET}]",
    f"auth: {{ {SECRET} }}",
    f"auth: {{ {SECRET}: x }}",
    f"auth: {{ pass: [{SECRET}] }}",
    f"auth: {{ pass: {{ a: {SECRET} }} }}",
    f"auth: {{ pass: '{SECRET} {SECRET}' }}",
    f"auth: {{ passs: {SECRET} }}",
    f"auth: {{ password: {SECRET} }}",
    f"auth: {{ pass: !{SECRET} x }}",
    f"auth: {{ pass: !{SECRET}!x y }}",
    f"auth: {{ pass: *{SECRET} }}",
    f"auth: {{ pass: &{SECRET} [x] }}",
    f"auth: {{ pass: @{SECRET} }}",
    f"auth: {{ pass: %{SECRET} }}",
    f'auth: {{ pass: "{SECRET}\\q" }}',
    f"auth: {{ pass: '{SECRET} }}",
    f"auth: pass: {SECRET}",
    f"auth: {{ pass: x, hmac: {SECRET} }}",
    f"auth: {{ hmac: {SECRET} }}",
    f"auth: {{ hmac: [{SECRET}] }}",
    f"auth: {{ hmac: {{ {SECRET}: 1 }} }}",
    f"auth: {{ hmac: {{ keys: {SECRET} }} }}",
    f"auth: {{ hmac: {{ keys: [{SECRET}] }} }}",
    f"auth: {{ hmac: {{ keys: {{ 1: {SECRET} }} }} }}",
    f"auth: {{ hmac: {{ keys: {{ 1: [{SECRET}] }} }} }}",
    f"auth: {{ hmac: {{ keys: {{ 1: 'file:{SECRET}' }} }} }}",
    f"auth: {{ hmac: {{ keys: {{ {SECRET}: {'00' * 32} }} }} }}",
    f"auth: {{ hmac: {{ keys: {{ {SECRET}: [] }} }} }}",
    f"auth: {{ hmac: {{ keys: {{ 1: {'00' * 32} }}, send: {SECRET} }} }}",
    f"auth: {{ hmac: {{ keys: {{ 1: {'00' * 32} }}, mode: {SECRET} }} }}",
    f"auth: {{ hmac: {{ keys: {{ 1: {'00' * 32} }}, time_window: {SECRET} }} }}",
    f"authentication: {SECRET}",
    f"authentication: {{ auth_type: PASS, auth_pass: {SECRET} }}",
    f"auth_pass: {SECRET}",
    f"password: {SECRET}",
    f"hmac: {{ keys: {{ 1: {SECRET} }} }}",
    f"track: {{ t: {{ http: 'https://me:{SECRET}@host:99999/' }} }}",
)
_OTHERS = (
    f"linger: {{ key: {SECRET} }}",
    f"linger: {{ key: {'00' * 32}, accept: [{SECRET}] }}",
    f"linger: {{ key: {'00' * 32}, accept: [{{ {SECRET}: 1 }}] }}",
    f"stats: {{ bind: 'localhost:1', auth: {SECRET} }}",
    f"stats: {{ bind: 'localhost:1', auth: {{ user: a, pass: {SECRET} }} }}",
    f"stats: {{ bind: 'localhost:1', auth: {{ user: a, password: [{SECRET}] }} }}",
    f"stats: {{ bind: 'localhost:1', auth: {{ user: a, password_file: {SECRET} }} }}",
    f"auth: {SECRET}",
    f"defaults: {{ auth: {{ pass: {SECRET} }} }}",
)


@pytest.mark.parametrize("text", [*(_ROUTER.format(line=line) for line in _LINES), *_OTHERS])
def test_no_message_shows_a_secret(text: str):
    """Of a wrong type, at a wrong place, as a key, in broken YAML: it is told where, and not what."""
    loaded = load(text, source="c.yaml", number=1)
    assert loaded.errors
    for problem in loaded.problems:
        assert SECRET not in f"{problem} {problem!r}"
        assert problem.line


def secrets(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value that a schema says to be a secret."""
    if schema.get("pattern") == SECRET_PATTERN:
        yield path
    for key, each in schema.get("properties", {}).items():
        yield from secrets(each, definitions, (*path, key))
    for each in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
        if isinstance(each, dict):
            yield from secrets(each, definitions, path)
    if "$ref" in schema:
        yield from secrets(definitions[schema["$ref"].rpartition("/")[2]], definitions, path)


def test_every_secret_of_the_schema_is_hidden():
    """A new key of this kind stands in no message, and in no archive for whoever helps."""
    schema: dict[str, Any] = json.loads(json.dumps(json_schema()))
    found = set(secrets(schema, schema["$defs"]))
    assert ("linger", "accept") in found
    for path in found:
        value: object = SECRET
        for key in reversed(path):
            value = {key: value}
        assert is_secret(path), path
        assert redacted(value).secrets == {SECRET}, path


def test_a_misspelt_key_is_still_helped():
    """What was meant is said; what stands there is not."""
    (problem, *_) = load(_ROUTER.format(line="auth: { passs: x }"), source="c", number=1).errors
    assert str(problem) == "c:6:13: virtual_ips.v.auth.***: unknown key `***`: did you mean `pass`?"


def test_every_key_below_auth_is_known():
    """A new key would be concealed until it is named with the others."""
    places = (("virtual_ips", "v", "auth"), ("virtual_ips", "v", "auth", "hmac"), ("stats", "auth"))
    assert {key for place in places for key in fields(place)} <= KNOWN


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("pools", "masters", "servers"), ("pools", "masters", "servers")),
        (("virtual_ips", "v", "auth", "x1"), ("virtual_ips", "v", "auth", "***")),
        (
            ("virtual_ips", "v", "auth", "hmac", "keys", "12"),
            ("virtual_ips", "v", "auth", "hmac", "keys", "12"),
        ),
        (("virtual_ips", "v", "auth", "pass", 0), ("virtual_ips", "v", "auth", "pass", 0)),
    ],
)
def test_paths_name_keys_that_are_known(path: Path, shown: Path):
    """Below a place of secrets only what the configuration knows is told."""
    assert concealed(path) == shown
    assert is_secret(path) is ("auth" in path)


@pytest.mark.parametrize("value", [None, True, ["x"], {"x": 1}])
def test_what_is_not_quoted_needs_no_hiding(value: object):
    """A message about a list or nothing at all quotes none of it."""
    assert without("must be a mapping, not a list: for example `x`", value).endswith("`x`")


_ESCAPES = "\x1b]0;title\x07\x1b[2J\u202e"


@pytest.mark.parametrize(
    "text",
    [
        '{"pools": {"' + _ESCAPES.replace("\x1b", "\\u001b").replace("\x07", "\\u0007") + '": {"x": 1}}}',
        '"\\e[2J": 1\n',
        'pools: { "a\\e[2J": { servers: { s: 5 } } }\n',
        'api: { frontends: { f: { bind: ["\\e[2J:80"], pool: "\\e[31m" } } }\n',
        'api: { frontends: { "f\\e[2J": { bind: ["127.0.0.1:80", "127.0.0.1:80"], pool: p } } }\n',
        '"a\\e[2J": 1\n"a\\e[2J": 2\n',
        'virtual_ips: { "\\e[2J": { addresses: ["\\e"], interface: "\\e", router_id: "\\e" } }\n',
    ],
)
def test_no_message_holds_an_order_to_a_terminal(text: str):
    """Keys, binds and values with escapes are shown as escapes."""
    loaded = load(text, source="c.yaml", number=1)
    assert loaded.problems
    for problem in loaded.problems:
        assert str(problem).isprintable()
