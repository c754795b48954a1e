"""Which commands look at something that we can look at ourselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.config.virtual_ips import TrackSection
from appliance.translation.keepalived.commands.check_commands import Recognised, in_shell, recognised
from appliance.translation.keepalived.syntax.words import command_words

pytestmark = pytest.mark.pure

HAPROXY = Recognised(kind="program", target="haproxy", haproxy=True)


def http(url: str, **more: object) -> Recognised:
    """Return a check of a URL."""
    return Recognised(kind="http", target=url, **more)  # type: ignore[arg-type]  # keywords of the dataclass


@pytest.mark.parametrize(
    "text",
    [
        "killall -0 haproxy",
        "/usr/bin/killall -0 haproxy",
        "killall -s 0 haproxy",
        "killall -q -0 haproxy",
        "pkill -0 haproxy",
        "pkill -0 -x haproxy",
        "pidof haproxy",
        "/sbin/pidof haproxy",
        "pidof -s /usr/sbin/haproxy",
        "pgrep haproxy",
        "pgrep -x haproxy",
        "pgrep -f haproxy",
        "systemctl is-active haproxy",
        "/usr/bin/systemctl is-active --quiet haproxy.service",
        "systemctl status haproxy",
        "service haproxy status",
        "ps -C haproxy",
        "/bin/sh -c 'pidof haproxy'",
        "bash -c 'killall -0 haproxy > /dev/null 2>&1 || exit 1'",
        "/usr/bin/env pidof haproxy",
    ],
)
def test_haproxy(text: str):
    """The ways in which people look whether haproxy lives."""
    assert recognised(command_words(text)) == HAPROXY


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("curl -sf http://localhost:1936/healthz", http("http://localhost:1936/healthz")),
        ("curl -fsS -o /dev/null http://127.0.0.1:80", http("http://127.0.0.1:80")),
        ("curl -kLfso /dev/null https://localhost:6443/readyz", http("https://localhost:6443/readyz")),
        ("curl -f https://[::1]:6443/", http("https://[::1]:6443/", unverified=True)),
        ("curl localhost:9000/ok", http("http://localhost:9000/ok", any_status=True)),
        ("curl -fm 2 http://localhost", http("http://localhost", timeout="2")),
        ("curl -f --max-time 1.5 http://localhost", http("http://localhost", timeout="1.5")),
        (
            "curl --fail --silent --insecure --output /dev/null https://localhost:1",
            http("https://localhost:1"),
        ),
        ("curl -fw '%{http_code}' http://localhost", http("http://localhost")),
        ("wget -q --spider http://localhost:80/", http("http://localhost:80/")),
        ("wget -qO- -T 3 http://localhost/", http("http://localhost/", timeout="3")),
        ("wget --timeout=3 -O /dev/null http://localhost/", http("http://localhost/", timeout="3")),
        ("wget --no-check-certificate -q https://localhost:6443/", http("https://localhost:6443/")),
        ("timeout 0.9 curl -f http://localhost", http("http://localhost", timeout="0.9")),
        ("timeout -k 1 --foreground 2s curl -fm 1 http://localhost", http("http://localhost", timeout="1")),
        ("nc -z localhost 6443", Recognised(kind="tcp", target="localhost:6443")),
        ("nc -z -w 2 ::1 6443", Recognised(kind="tcp", target="[::1]:6443", timeout="2")),
        ("bash -c '</dev/tcp/::1/6443'", Recognised(kind="tcp", target="[::1]:6443")),
        (
            "timeout 2 bash -c 'echo > /dev/tcp/db/3306'",
            Recognised(kind="tcp", target="db:3306", timeout="2"),
        ),
        ("pidof nginx", Recognised(kind="process", target="nginx")),
        ("pgrep -x nginx", Recognised(kind="process", target="nginx")),
    ],
)
def test_others(text: str, found: Recognised):
    """A URL, a port or a process of this machine."""
    assert recognised(command_words(text)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/etc/keepalived/check.sh",
        "killall haproxy",
        "pgrep nginx",
        "pgrep -f nginx",
        "systemctl is-active nginx",
        "service haproxy restart",
        "ps aux",
        "pidof haproxy nginx",
        "sh /etc/keepalived/check.sh",
        "sh -c 'pidof haproxy && curl localhost'",
        'sh -c "pidof \'haproxy"',
        "sh -c 'curl http://localhost:$PORT'",
        "curl http://10.0.0.1/",
        "curl http://localhost.example.com/",
        "curl http://localhost/ http://localhost/b",
        "curl http://localhost:99999/",
        "curl -fm soon http://localhost",
        "curl -H x http://localhost",
        "curl -fm",
        "curl --header x http://localhost",
        "wget --post-data=x http://localhost",
        "wget -T",
        "timeout",
        "timeout soon pidof nginx",
        "timeout 1 /etc/keepalived/check.sh",
        "nc -z localhost",
        "nc localhost 80",
        "nc -zu localhost 80",
        "nc -z 10.0.0.1 80",
        "nc -z localhost http",
        "nc -z -w soon localhost 80",
        "</dev/tcp/localhost/http",
        "read </dev/tcp/localhost/80",
    ],
)
def test_what_stays(text: str):
    """Whatever is not certain stays a script."""
    assert recognised(command_words(text)) is None


@given(
    st.lists(
        st.sampled_from(
            [
                "curl",
                "wget",
                "nc",
                "timeout",
                "sh",
                "-c",
                "-f",
                "-m",
                "-T",
                "-z",
                "-0",
                "1",
                "2s",
                "localhost",
                "haproxy",
            ]
        )
    )
)
def test_any_words(words: list[str]):
    """Any words are understood or not, and what is understood is a track that we take."""
    found = recognised(words)
    if found is not None and not found.haproxy:
        TrackSection.model_validate({found.kind: found.target})


@given(st.text(max_size=40))
def test_any_text_of_a_shell(text: str):
    """No text of a shell is an exception."""
    assert in_shell(text) is None or "haproxy" in text
