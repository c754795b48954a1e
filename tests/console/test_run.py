"""What `appliance run` hands to supervisord."""

from pathlib import Path

import pytest
from support.values.snapshots import snapshot

from appliance.console.run import environment
from appliance.model.paths import Paths

pytestmark = pytest.mark.pure


def test_programs_find_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Foreign files and sockets are named absolutely: a program may have another working directory."""
    monkeypatch.chdir(tmp_path)
    given = Paths(haproxy=(Path("haproxy.cfg"),), reload_sockets=(Path("a.sock"), Path("/run/b.sock")))

    found = Paths.from_environment(environment(given, snapshot()))

    assert (found.haproxy, found.keepalived) == ((tmp_path / "haproxy.cfg",), None)
    assert found.reload_sockets == (tmp_path / "a.sock", Path("/run/b.sock"))
