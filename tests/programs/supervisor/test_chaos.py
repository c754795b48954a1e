"""`kill -9` of random programs at random moments, during reloads and under load.

Invariants, for every schedule:

1. it settles: within a minute of the last kill every program and every worker that serves obeys the accepted
   configuration, which is the operator's file;
2. no connection is refused and none times out, at any moment;
3. a connection is reset, or a session ends, only where its worker was killed, no more of them than it had;
4. no process is left that nobody supervises: what runs is supervisord, its programs, and workers that their
   masters know;
5. `appliance status` exits 0.

supervisord is among the programs: killed alone, it is started again at once.

`make chaos` runs 100 schedules (`CHAOS=number`); `CHAOS_SEED=number make chaos` repeats one.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.load.kill_schedule import SUPERVISORD, Kill, Step, schedule
from support.load.load import Load, Report
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.processes import command_line, kill, parent
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

from appliance.net.files.snapshots import read, same
from appliance.net.sources.judging import judge
from appliance.proxy import nursery

pytestmark = [pytest.mark.programs, pytest.mark.slow("several starts of the whole appliance")]

_STEPS = 12
_SESSIONS = 20
_HOST = "127.0.0.2"
_SETTLED = 60.0
_SEEDS = (
    [int(os.environ["CHAOS_SEED"])]
    if "CHAOS_SEED" in os.environ
    else range(int(os.environ.get("CHAOS", "2")))
)


class Site:
    """An appliance of both groups under load, and what a schedule has done to it."""

    def __init__(self, server: Backend) -> None:
        self.server = server
        self.port = free_port()
        self.others = {"api": free_port(), "ingress": free_port()}
        self.revision = self.weight = 0
        self.wide, self.group = True, "api"
        self.lost = 0  # sessions and connections that killed workers had
        self.appliance = Appliance(self.config())

    def config(self) -> dict[str, object]:
        """Return the operator's file as it is wanted now."""
        host = "[::]" if self.wide else _HOST
        frontends: dict[str, dict[str, object]] = {
            name: {f"{name}-{self.revision}": {"bind": [f"127.0.0.1:{port}"], "pool": "servers"}}
            for name, port in self.others.items()
        }
        frontends[self.group]["steady"] = {"bind": [f"{host}:{self.port}"], "pool": "servers"}
        server = {"address": f"127.0.0.1:{self.server.port}", "weight": 1 + self.weight % 100}
        check = {"type": "tcp", "interval": "1s", "timeout": "30s", "fall": 10}
        return {
            **{name: {"workers": 2, "frontends": each} for name, each in frontends.items()},
            "pools": {"servers": {"check": check, "on_down": "keep", "servers": {"one": server}}},
            "defaults": {"drain": "600s"},
            "reload": {"max_draining": 1000},
        }

    def change(self, changes: tuple[str, ...]) -> None:
        """Edit the file."""
        self.revision += "generation" in changes
        self.weight += "live" in changes
        self.wide ^= "narrow" in changes
        if "move" in changes:
            self.group = "ingress" if self.group == "api" else "api"
        self.appliance.write(self.config())

    def kill(self, step: Kill) -> None:
        """Kill a program that answers, or a worker of one."""
        if step.program == SUPERVISORD:
            self.appliance.crash()
            return
        if step.worker is None:
            if pid := self.appliance.program_pid(step.program):
                kill(pid)
            return
        if serving := self.appliance.accepting(step.program):
            victim = serving[step.worker % len(serving)]
            self.lost += victim.sessions + 10  # what came between the question and its end
            kill(victim.pid)

    def perform(self, steps: tuple[Step, ...]) -> None:
        """Do all steps; reloads go on while what follows them is done."""
        with ThreadPoolExecutor(max_workers=len(steps)) as reloads:
            for step in steps:
                time.sleep(step.pause)  # what meets what is the very thing that a seed decides
                if isinstance(step, Kill):
                    self.kill(step)
                else:
                    self.change(step.changes)
                    reloads.submit(self.reload)

    def reload(self) -> bool:
        """Send the line; say whether the answer is yes: its program may be killed under it."""
        with contextlib.suppress(OSError, ValueError):
            return bool(self.appliance.reload(timeout=_SETTLED)["ok"])
        return False

    def obeyed(self) -> bool:
        """Say whether everything obeys what is accepted, which is what the operator wants."""
        accepted = read(self.appliance.paths.accepted)
        wanted = judge(self.appliance.paths, number=1).snapshot
        if accepted is None or wanted is None or not same(accepted, wanted):
            return False
        try:
            said = [self.appliance.ask(each, "status") for each in ("health", "proxy-api", "proxy-ingress")]
        except (OSError, ValueError):
            return False
        workers = [each for name in self.others for each in self.appliance.workers(f"proxy-{name}")]
        serving = [each.snapshot for each in workers if each.phase == "accepting"]
        return {each["snapshot"] for each in said} == {*serving} == {accepted.number} and len(serving) == 4

    def strays(self) -> set[int]:
        """Return processes that neither supervisord nor a master knows; each master has a nursery."""
        known = {self.appliance.pid}
        for program in ("reload", "health", "proxy-api", "proxy-ingress"):
            with contextlib.suppress(OSError, ValueError):
                status = self.appliance.ask(program, "status")
                known.add(int(str(status["pid"])))
                generations = json.loads(json.dumps(status.get("generations", [])))
                known |= {worker["pid"] for each in generations for worker in each["workers"]}
        strays = set(self.appliance.processes()) - known
        return {
            each for each in strays if nursery.NAME not in command_line(each) or parent(each) not in known
        }


@pytest.fixture(scope="module")
def server() -> Iterator[Backend]:
    """Return a server."""
    with Backend("one") as running:
        yield running


@pytest.mark.parametrize("seed", _SEEDS)
def test_random_kills(server: Backend, seed: int):
    """Everything that the module promises holds for the schedule of this seed."""
    site = Site(server)
    steps = schedule(seed, steps=_STEPS)
    sys.stderr.write("\n  ".join([f"seed {seed}:", *map(str, steps), ""]))
    with site.appliance, Load(port=site.port, host=_HOST, sessions=_SESSIONS, rate=50.0, pause=0.5) as load:
        load.wait_for_sessions()
        site.perform(steps)
        wait_until(lambda: site.reload() and site.obeyed(), what="it settles", timeout=_SETTLED, pause=0.5)
        wait_until(lambda: not site.strays(), what="no process is left", timeout=_SETTLED)
        status = wait_until(
            lambda: site.appliance.command("status", check=False).returncode == 0,
            what="status exits 0",
            timeout=_SETTLED,
        )
        assert status
        done = load.report().completed
        wait_until(lambda: load.report().completed >= done + 50, what="load goes on", timeout=_SETTLED)
        check(load.report(), lost=site.lost)


def check(report: Report, *, lost: int) -> None:
    """Fail where more was lost than killed workers had, or anything was refused or not answered."""
    assert set(report.failures) <= ({"reset", "end"} if lost else set()), report.failures
    assert len(report.ended) + sum(report.failures.values()) <= lost
    assert len(report.living) >= _SESSIONS - lost
