"""Several files as one configuration, read one behind the other: what goes on from each to the next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.translation.haproxy_files import NO_FILES, TIMES

from appliance.model.config.configuration import Config
from appliance.model.document.tree import Node, plain
from appliance.translation.haproxy.reader import ConfigurationFile, translate_all
from appliance.translation.haproxy.text.lines import LARGEST_FILE
from appliance.translation.import_result import where
from appliance.translation.translation import Outcome, Translation

pytestmark = pytest.mark.pure

SERVER = "  server s 10.0.0.1:6443 check\n"


def read(**texts: str) -> Translation:
    """Return what files become, each by its name, in this order."""
    files = [ConfigurationFile(source=f"{name}.cfg", text=text) for name, text in texts.items()]
    return translate_all(files, environment={}, read=NO_FILES)


def config(found: Translation) -> Config:
    """Return the configuration that came out."""
    return Config.model_validate(plain(found.root))


def refused(found: Translation) -> list[str]:
    """Return what was refused, with file, line and column."""
    return [f"{where(each.place)}: {each.reason}" for each in found.refused]


def test_defaults_and_variables_go_on():
    """As do names of sections: a frontend may have its backend in another file."""
    found = read(
        a=f"global\n  setenv PORT 6443\n{TIMES}  retries 7",
        b=f'{TIMES}  retries 1\nfrontend f\n  bind ":$PORT"\n  default_backend b\n',
        c=f'backend b\n  description "$.FILE:$.LINE"\n{SERVER}',
    )
    assert refused(found) == ["a.cfg:7:1: the last line has no line break: the file may be truncated"]
    assert config(found).defaults.retries == 1
    assert config(found).api is not None
    assert found.lines[-2].text == 'description "$.FILE:$.LINE"'


def test_a_section_ends_with_its_file():
    """What comes before the first section of the next one belongs to none; neither does an open `.if`."""
    found = read(a=f"{TIMES}backend b\n{SERVER}.if 1\n", b="  server t 10.0.0.2:6443\n.endif\n")
    assert refused(found) == [
        "a.cfg:7:1: this `.if` has no `.endif`",
        "b.cfg:1:3: `server` comes before the first section",
        "b.cfg:2:1: `.endif` without an `.if` before it",
    ]


def test_places_are_in_their_own_files():
    """Of lines, of what the configuration has, of proposals, and in sentences that name a line."""
    found = read(
        a=f"{TIMES}frontend f\n  bind :6443\n  default_backend b\n",
        b=f"# the servers\n\nbackend b\n{SERVER}\n",
        c=f"backend b\n{SERVER}frontend g\n  bind :1\n  tcp-request content reject if HTTP\n",
        d="listen l\n  mode http\n  bind :2\n  http-request deny\ndefaults\n  mode http\n",
        e=f"listen m\n  bind :3\n{SERVER}",
    )
    assert refused(found)[0] == "c.cfg:1:9: line 3 of b.cfg already defines servers under this name"
    assert any("(line 6 of d.cfg)" in each for each in refused(found))
    assert [each.place.source for each in found.lines if each.text == SERVER.strip()] == [
        "b.cfg",
        "c.cfg",
        "e.cfg",
    ]
    assert {each.place.source for each in found.proposals if each.place} == {"a.cfg", "b.cfg"}
    assert set(places(found.root)) >= {("a.cfg", 6), ("b.cfg", 4)}
    assert found.lines[0].place.line == 1


def places(node: Node) -> list[tuple[str | None, int]]:
    """Return the file and line of all that a configuration has."""
    below: list[Node] = []
    if isinstance(node.value, dict):
        below = [entry.node for entry in node.value.values()]
    elif isinstance(node.value, list):
        below = node.value
    return [(node.place.source, node.place.line), *(each for one in below for each in places(one))]


def test_what_is_refused_protects_its_own_section_alone():
    """The last section of a file ends with it, also where the next begins with something refused."""
    listen = "listen {0}\n  bind :{1}\n  server s 10.0.0.1:1\n"
    found = read(
        a=f"{TIMES}{listen.format('l', 1)}  tcp-request content reject if HTTP\n",
        b=f"  tcp-request content reject\n{listen.format('m', 2)}",
    )
    api = config(found).api
    assert api is not None
    assert list(api.frontends) == ["m"]


def test_all_files_together_have_a_limit():
    """A file is as large as it is; those before it count."""
    half = f"#{'x' * (LARGEST_FILE // 2)}\n"
    found = read(a=half, b=half, c="backend b\n")
    assert refused(found) == [
        "b.cfg:1:1: the file is larger than 1 MiB, with the files before it",
        "c.cfg:1:1: the file is larger than 1 MiB, with the files before it",
    ]


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes(first: bytes, second: bytes):
    """Each place is in its own file, whatever they hold."""
    texts = {"a.cfg": TIMES.encode() + first, "b.cfg": second}
    files = [ConfigurationFile(source=name, text=text) for name, text in texts.items()]
    found = translate_all(files, environment={}, read=NO_FILES)

    rows = {name: text.decode(errors="replace").count("\n") + 1 for name, text in texts.items()}
    assert [each for each in found.lines if not 1 <= each.place.line <= rows[str(each.place.source)]] == []


def test_files_without_a_word():
    """An empty one says nothing, and the others go on."""
    found = read(a="", b=f"{TIMES}listen l\n  bind :1\n{SERVER}", c="\n")
    assert refused(found) == []
    assert {each.outcome for each in found.lines} == {Outcome.KEPT}
