"""The commands `sessions` and `kill`, and the sessions of servers that were removed."""

from dataclasses import replace

import pytest
from support.worker.trace import Origin, Relay, Setting, is_reset, relay

from appliance.model.end_reasons import EndReason
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot import snapshot as model
from appliance.model.snapshot.pools import OnDown

pytestmark = pytest.mark.programs


def _apply(running: Relay, number: int, origins: list[Origin], **changes: object) -> None:
    setting = replace(running.setting, origins=origins, changes={"number": number, **changes})
    running.worker.paths.snapshot(number).write_bytes(model.encode(setting.snapshot()))
    assert running.worker.ask("apply", snapshot=number)["ok"]


def test_sessions_of_a_removed_server_are_still_counted_and_killed():
    """A server without a place in the configuration is on the board until its last session has ended."""
    origins = [Origin(), Origin()]
    with relay(Setting(origins=origins)) as running:
        pairs = [running.pair(origin) for origin in origins]
        _apply(running, 2, origins[:1])
        assert running.server("s1").current == 1
        assert running.worker.ask("kill", server="pool/s1")["killed"] == 1
        assert is_reset(pairs[1][0])
        running.until(lambda: len(running.worker.board().servers) == 1, "s1 is forgotten")


def test_sessions_of_a_server_that_was_put_back_are_closed_when_it_goes_down():
    """A server that was removed and put back is the same for on_down: its sessions end."""
    origins = [Origin(), Origin()]
    with relay(Setting(origins=origins, back={"on_down": OnDown.CLOSE_SESSIONS})) as running:
        pairs = [running.pair(origin) for origin in origins]
        _apply(running, 2, origins[:1])
        _apply(running, 3, origins)
        assert running.server("s1").current == 1
        running.publish(HealthVerdict.UP, HealthVerdict.DOWN)
        assert is_reset(pairs[1][0])
        pairs[0][0].sendall(b"still")
        assert pairs[0][1].recv(10) == b"still"


@pytest.mark.parametrize("kind", ["id", "server", "source"])
def test_sessions_are_killed(kind: str):
    """A session is ended by id, by server or by source; others stay."""
    with relay(Setting(origins=[Origin(), Origin()])) as running:
        client = running.connect(source="127.0.0.9")
        server = running.setting.origins[0].accept()
        other = running.connect()
        kept = running.setting.origins[1].accept()
        running.until(lambda: len(running.sessions()) == 2, "two sessions")
        mine = next(each for each in running.sessions() if str(each["client"]).startswith("127.0.0.9:"))
        assert mine["server"] == "pool/s0"
        value = {"id": mine["id"], "server": "pool/s0", "source": "127.0.0.9"}[kind]
        assert running.worker.ask("kill", **{kind: value})["killed"] == 1
        assert is_reset(client)
        assert is_reset(server)
        running.ended(EndReason.KILLED)
        other.sendall(b"still")
        assert kept.recv(10) == b"still"


@pytest.mark.parametrize("values", [{}, {"source": "nonsense"}])
def test_kill_needs_something_to_go_by(values: dict[str, object]):
    """Without a criterion, or with one that is none, nobody is killed."""
    with relay(Setting(origins=[Origin()])) as running:
        assert running.worker.ask("kill", **values)["ok"] is False
