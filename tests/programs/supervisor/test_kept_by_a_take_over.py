"""What a release knows from the one that it took over from: verdicts, and what operators have said."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.supervisor.release import Release

pytestmark = [pytest.mark.programs, pytest.mark.slow("several starts of the whole appliance")]

_ONCE = {"type": "tcp", "interval": "10m", "fall": 1, "rise": 2}
"""One check when `health` starts: a verdict that needs two good ones more is never made again."""

_KEPT = {"up": ("up", 1.0), "down": ("down", 1.0), "maint": ("maint", 1.0), "half": ("up", 0.5)}


class _Server(msgspec.Struct):
    name: str
    state: str
    effective_weight: float | None
    """None where nobody has judged the server."""


class _Pool(msgspec.Struct):
    servers: list[_Server]


@pytest.fixture
def made() -> Iterator[Appliance]:
    """Run an appliance until its servers are judged, and an operator has spoken of two of them."""
    with contextlib.ExitStack() as stack:
        up, nobody = stack.enter_context(Backend("up")).port, free_port()
        ports = {"up": up, "down": nobody, "maint": up, "half": up}
        servers = {name: {"address": f"127.0.0.1:{port}"} for name, port in ports.items()}
        running = stack.enter_context(
            Appliance(
                {
                    "api": {"frontends": {"a": {"bind": [f"127.0.0.1:{free_port()}"], "pool": "all"}}},
                    "pools": {"all": {"servers": servers, "check": _ONCE}},
                }
            )
        )
        running.command("maint", "all/maint")
        running.command("weight", "all/half", "50%")
        wait_until(lambda: _known(running) == _KEPT, what="verdicts and words are known")
        stack.enter_context(Backend("late", port=nobody))
        yield running


def test_verdicts_and_words_are_kept(made: Appliance, tmp_path: Path):
    """A server stays down, though it would answer a first check by now; so do state and weight."""
    _take_over(made, Release(tmp_path / "newer", "9.9.9"))
    assert _known(made) == _KEPT


def test_boards_of_another_form(made: Appliance, tmp_path: Path):
    """What the former programs have written of themselves is not understood: servers are judged anew.

    What operators have said is in files that every release reads.
    """
    newer = Release(tmp_path / "newer", "9.9.9")
    for board in ("health_board", "worker_board", "vrrp_board"):
        newer.change(
            f"wire/boards/{board}.py",
            re.compile(rb'(?m)^_MAGIC: Final = b"[A-Z0-9]{4}"$'),
            b'_MAGIC: Final = b"ELSE"',
        )
    _take_over(made, newer)
    wait_until(
        lambda: _known(made, newer) == {**_KEPT, "down": ("up", 1.0)},
        what="servers are judged anew",
        timeout=30.0,
    )
    assert made.is_whole()


def _known(running: Appliance, release: Release | None = None) -> dict[str, tuple[str, float | None]]:
    """Return state and weight of each server, as the command of a release shows them."""
    if release is None:
        shown = running.status()
    else:
        shown = json.loads(release.command("status", "--json", paths=running.paths).stdout)
    (pool,) = msgspec.convert(shown["pools"], list[_Pool])
    return {each.name: (each.state, each.effective_weight) for each in pool.servers}


def _take_over(running: Appliance, release: Release) -> None:
    former = running.process
    running.process = release.run(running.paths, running.log_file)
    running.wait_for_event("appliance-taken-over", timeout=60.0)
    assert former.wait(60) == 0
