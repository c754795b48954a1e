"""Commands that ask a server: what they ask, and which are not certain."""

import pytest

from appliance.translation.keepalived.commands.misc_check_commands import ServerQuestion, asked_of
from appliance.translation.keepalived.syntax.words import command_words

pytestmark = pytest.mark.pure

HOST = "192.0.2.11"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"/usr/bin/curl -fs http://{HOST}/", ServerQuestion(type="http", port=80, path="/")),
        (
            f"curl -sk -m 3 https://{HOST}/a?b=1",
            ServerQuestion(type="https", port=443, path="/a?b=1", timeout="3", any_status=True),
        ),
        (
            f"curl -f https://{HOST}:8443",
            ServerQuestion(type="https", port=8443, path="/", unverified=True),
        ),
        (f"nc -z -w 2 {HOST} 6443", ServerQuestion(type="tcp", port=6443, timeout="2")),
        (f"/bin/bash -c '</dev/tcp/{HOST}/6443'", ServerQuestion(type="tcp", port=6443)),
    ],
)
def test_a_command_that_asks_the_server(text: str, found: ServerQuestion):
    """A URL or a port of the server is a check of ours, with what the command says of it."""
    assert asked_of(HOST, command_words(text)) == found


def test_an_address_of_version_6():
    """It stands in brackets in a URL, and alone elsewhere."""
    found = ServerQuestion(type="http", port=81, path="/")
    assert asked_of("2001:db8::11", ("wget", "-q", "--spider", "http://[2001:DB8::11]:81/")) == found
    assert asked_of("2001:db8::11", ("nc", "-z", "2001:db8::11", "81")) == ServerQuestion(type="tcp", port=81)


@pytest.mark.parametrize(
    "text",
    [
        "curl -f http://localhost/",
        "curl -f http://192.0.2.111/",
        f"curl -f http://x{HOST}/",
        "bash -c '</dev/tcp/192.0.2.12/80'",
        "nc -z ::1 80",
        "pidof nginx",
        "/bin/bash -c '</dev/tcp/192.0.2.12/80'",
        f"/etc/keepalived/check.sh {HOST}",
        f"ping -c 1 {HOST}",
    ],
)
def test_what_is_not_certain(text: str):
    """What asks this machine, another server, or nobody knows what."""
    assert asked_of(HOST, command_words(text)) is None
