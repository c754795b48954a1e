"""Servers that are checked by a command, beside a real HAProxy's `external-check`."""

import time
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
from support.network.ports import free_port
from support.peers.haproxy import HAProxy
from support.processes.waiting import wait_until
from support.translation.haproxy_files import NO_FILES
from support.values import snapshots

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.loading.loading import load
from appliance.model.snapshot.pools import Check, Server
from appliance.net.probing.resolver import Resolver
from appliance.net.probing.server_probe import CommandProbe, ServerProbe
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.translation.haproxy.reader import translate
from appliance.translation.import_result import import_result

pytestmark = pytest.mark.programs

PATIENCE = 60.0
"""Seconds that a command may take which is not meant to be late."""


def probe(server: Server, check: Check) -> Iterator[CheckOutcome]:
    """Yield the outcomes of a server's checks."""
    found = ServerProbe(
        server,
        check,
        host=lambda: server.host,
        contexts=TlsContexts(),
        resolver=Resolver(lambda _, __: None),
    )
    while True:
        yield found.run()


def outcome(*words: str, timeout: float = PATIENCE) -> CheckOutcome:
    """Return the outcome of a check with a command."""
    check = snapshots.check("command", command=words, timeout=timeout)
    return next(probe(snapshots.server(host="127.0.0.1", port=7), check))


def test_the_exit_status_decides():
    """0 is good, and its end and its words are told of any other."""
    good, bad = outcome("/bin/true"), outcome("/bin/sh", "-c", "echo no donor; exit 3")
    assert (good.result, good.detail) == (CheckResult.L7OK, "")
    assert (bad.result, bad.detail) == (CheckResult.L7RSP, "exited 3: no donor")


def test_a_command_that_is_not_there_fails_with_the_reason():
    """The operator reads its name."""
    found = outcome("/nowhere/check")
    assert found.result is CheckResult.L7RSP
    assert "/nowhere/check" in found.detail


def test_a_command_without_end_is_ended():
    """The time of the check is that of the command."""
    found = outcome("/bin/sh", "-c", "sleep 3600", timeout=0.2)
    assert found.result is CheckResult.L7TOUT
    assert found.detail.startswith("no end within 0.")


def test_the_end_of_the_checks_ends_the_command(tmp_path: Path):
    """Nothing of it runs on where nobody waits for it."""
    begun = tmp_path / "begun"
    check = snapshots.check(
        "command", command=("/bin/sh", "-c", f"echo $$ >{begun}; sleep 3600"), timeout=PATIENCE
    )
    found = CommandProbe(snapshots.server(), check, "127.0.0.1", 7)
    running = gevent.spawn(found.run, until=time.monotonic() + PATIENCE)
    with gevent.Timeout(PATIENCE):
        while not (begun.exists() and begun.read_text().endswith("\n")):
            gevent.sleep(0.01)
        leader = Path(f"/proc/{int(begun.read_text())}")
        running.kill()
        found.close()
        while leader.exists():  # it is reaped by the loop of this process
            gevent.sleep(0.01)


@pytest.mark.slow("a whole HAProxy and its checks")
@pytest.mark.needs("haproxy")
def test_the_command_has_what_haproxy_gives_it(tmp_path: Path):
    """Words, and the variables of both names: the same script writes the same, for `listen` and `backend`."""
    script = tmp_path / "check"
    script.write_text(
        "#!/bin/sh\n"
        f"cd {tmp_path}\n"
        'to=theirs; [ "$(cat mode)" = ours ] && to=ours\n'
        '{ echo "$PATH"; echo "$@"; env | grep "^HAPROXY_[PS].*_\\(ADDR\\|PORT\\|NAME\\|SSL\\)=." | sort; } '
        '>"$HAPROXY_SERVER_NAME.new.$$"\n'
        'mv "$HAPROXY_SERVER_NAME.new.$$" "$HAPROXY_SERVER_NAME.$to"\n'
    )
    script.chmod(0o755)
    text = _haproxy_cfg(script)
    (tmp_path / "mode").write_text("theirs")
    with HAProxy(text):
        for name in ("one", "two"):
            wait_until((tmp_path / f"{name}.theirs").exists, what=f"HAProxy checks {name}", timeout=PATIENCE)
    (tmp_path / "mode").write_text("ours")
    translation = translate(
        text.replace("{control}", "/run/control"), source="a.cfg", environment={}, read=NO_FILES
    )
    snapshot = load(import_result([translation]).yaml, source="a.yaml", number=1).snapshot
    assert snapshot is not None
    for pool in snapshot.pools:
        for server in pool.servers:
            assert server.check is not None
            assert next(probe(server, server.check)).passed
            ours, theirs = ((tmp_path / f"{server.name}.{who}").read_text() for who in ("ours", "theirs"))
            assert ours == theirs


def _haproxy_cfg(script: Path) -> str:
    return f"""
global
  stats socket {{control}}
  external-check
  insecure-fork-wanted
defaults
  mode tcp
  timeout connect 30s
  timeout client 30s
  timeout server 30s
  option external-check
  external-check path "/usr/bin:/bin"
  external-check command {script}
listen one
  bind 127.0.0.1:{free_port()}
  server one 127.0.0.1:1 check inter 30s
frontend f
  bind 127.0.0.1:{free_port()}
  default_backend two
backend two
  server two 127.0.0.1:2 check inter 30s
"""
