"""The section `global`: what of the process has a meaning here."""

import pytest
from support.translation.haproxy_files import TIMES, read

from appliance.translation.haproxy.directives.global_table import Global, verified_path
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

LISTEN = f"{TIMES}listen l\n  bind *:1\n  server s 10.0.0.1:1\n"


def test_the_time_of_old_processes():
    """`hard-stop-after` is how long an old generation may drain."""
    assert read(f"global\n  hard-stop-after 30s\n{LISTEN}").config.defaults.drain == 30.0


def test_connections_of_the_process():
    """The lower limit holds for a frontend, and it is said that the process's is one for each."""
    found = read(f"global\n  maxconn 100\n{LISTEN}")
    assert found.config.defaults.max_connections == 100
    assert found.outcome("maxconn") is Outcome.CHANGED
    lower = read(f"global\n  maxconn 100\n{LISTEN}  maxconn 500\nlisten m\n  bind *:2\n  maxconn 50\n")
    assert lower.frontend("l").max_connections is None
    assert lower.frontend("m").max_connections == 50
    assert lower.config.defaults.max_connections == 100
    assert lower.line("maxconn 500").reason == "the lower limit in `global` applies"
    assert read(f"global\n  maxconn 0\n{LISTEN}  maxconn 0\n").config.defaults.max_connections == 40000


@pytest.mark.parametrize("line", ["maxconn x", "hard-stop-after x"])
def test_what_is_no_number(line: str):
    """It is refused at its place."""
    [refused] = read(f"global\n  {line}\n").refused
    assert refused.startswith("2:")


def test_the_environment():
    """`setenv` and its kin change what the lines behind them say."""
    found = read(
        "global\n  setenv PORT 7443\n  presetenv PORT 1\n  presetenv OTHER 10.0.0.1\n  setenv GONE 1\n"
        '  unsetenv GONE\n  setenv\n  description "$OTHER"\n  resetenv PORT OTHER\n'
        f'{TIMES}listen l\n  bind *:"$PORT"\n  server s "${{OTHER}}:1"\n  server t "${{GONE-10.0.0.2}}:2"\n'
    )
    assert found.refused == []
    assert str(found.frontend("l").bind[0]) == "0.0.0.0:7443"
    assert [str(each.address) for each in found.pool("l").servers.by_name.values()] == [
        "10.0.0.1:1",
        "10.0.0.2:2",
    ]


def test_families_of_tuning():
    """They are known by how they begin, so that newer ones are no error."""
    found = read(
        "global\n  tune.bufsize 16384\n  ssl-default-bind-options no-sslv3\n  tune.of.the.future 1\n"
    )
    assert {each.outcome for each in found.found.lines[1:]} == {Outcome.IGNORED}


@pytest.mark.parametrize(
    ("base", "name", "expected"),
    [("", "/etc/ca.pem", "/etc/ca.pem"), ("/etc/ssl", "ca.pem", "/etc/ssl/ca.pem"), ("/x", "/ca", "/ca")],
)
def test_paths_of_authorities(base: str, name: str, expected: str):
    """A relative path is below `ca-base`."""
    assert verified_path(Global(authorities=base), name) == expected


@pytest.mark.parametrize("name", ["ca.pem", "@system-ca"])
def test_what_is_no_path(name: str):
    """It is refused: the programs have no directory of their own to look in."""
    with pytest.raises(ValueError, match=r"`"):
        verified_path(Global(), name)
