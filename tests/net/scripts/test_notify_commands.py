"""Notify commands run in order, as their user, and are reported."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gevent.threadpool import ThreadPool
from support.processes.greenlets import until
from support.processes.processes import alive

from appliance.net.scripts import notify_commands
from appliance.net.scripts.notify_commands import NotifyCommands
from appliance.wire.lines.tracker_lines import CommandEnded, RunCommand

pytestmark = pytest.mark.programs

ENOUGH = 15.0


class Notified:
    """The commands, and what was reported of them."""

    def __init__(self) -> None:
        self.reports: list[CommandEnded] = []
        self.commands = NotifyCommands(self.reports.append)

    def shell(
        self, script: str, *, router: str = "api", user: str | None = None, timeout: float = ENOUGH
    ) -> None:
        """Order a shell's script."""
        self.run("sh", "-c", script, router=router, user=user, timeout=timeout)

    def run(self, *words: str, router: str = "api", user: str | None = None, timeout: float = ENOUGH) -> None:
        """Order a command."""
        self.commands.run(RunCommand(router=router, words=words, user=user, timeout=timeout))

    def outcomes(self, count: int) -> list[str]:
        """Return the outcomes once there are so many."""
        until(lambda: len(self.reports) >= count, what=f"{count} reports")
        return [each.outcome for each in self.reports]


@pytest.fixture
def notified() -> Iterator[Notified]:
    """Commands that are ended with the test."""
    subject = Notified()
    yield subject
    subject.commands.close()


def test_a_command_gets_its_words(notified: Notified, tmp_path: Path):
    """The words that vrrp gives are the arguments."""
    out = tmp_path / "out"
    words = ("sh", "-c", f'echo "$@" > {out}', "sh", "INSTANCE", "api", "MASTER", "100")
    notified.run(*words)
    assert notified.outcomes(1) == ["exited 0"]
    assert out.read_text() == "INSTANCE api MASTER 100\n"
    assert notified.reports == [CommandEnded(router="api", words=words, outcome="exited 0")]


def test_commands_of_a_router_run_in_order_one_at_a_time(notified: Notified, tmp_path: Path):
    """A slow one is not overtaken."""
    out = tmp_path / "out"
    for delay, name in [("0.3", "master"), ("0", "backup"), ("0", "fault")]:
        notified.shell(f"echo {name} begins >> {out}; sleep {delay}; echo {name} ends >> {out}")
    notified.outcomes(3)
    expected = [f"{name} {what}" for name in ("master", "backup", "fault") for what in ("begins", "ends")]
    assert out.read_text().splitlines() == expected


def test_routers_do_not_wait_for_each_other(notified: Notified):
    """A command that hangs holds up its own router only."""
    notified.shell("sleep 60", router="api")
    notified.shell("exit 0", router="ingress")
    until(lambda: notified.reports, what="a report")
    assert notified.reports[0].router == "ingress"


def test_failures_are_reported(notified: Notified):
    """How a command failed is told, and the next one runs."""
    notified.shell("echo bad; exit 3")
    notified.run("/no/such/command")
    notified.run("true", user="no-such-user")
    notified.shell("sleep 60", timeout=0.2)
    notified.run("true")
    assert notified.outcomes(5) == [
        "exited 3: bad",
        "cannot be run: /no/such/command: No such file or directory",
        "not run: no user 'no-such-user'",
        "no end within 0.2 s",
        "exited 0",
    ]


@pytest.mark.needs(root=True)
def test_a_command_runs_as_its_user(notified: Notified):
    """Root's rights are not lent."""
    notified.shell("id -un; exit 1", user="nobody")
    assert notified.outcomes(1) == ["exited 1: nobody"]


def test_the_stalest_news_give_way(notified: Notified, monkeypatch: pytest.MonkeyPatch):
    """A router that flaps while its command hangs does not fill memory."""
    monkeypatch.setattr(notify_commands, "MOST_WAITING", 2)
    notified.shell("sleep 60", timeout=ENOUGH)
    until(lambda: notified.commands._running, what="it runs")
    for status in range(1, 5):
        notified.shell(f"exit {status}")
    assert [each.words[-1] for each in notified.reports] == ["exit 1", "exit 2"]
    assert notified.outcomes(2) == ["not run: too many are waiting"] * 2


def test_finishing_waits_for_all(notified: Notified):
    """What was ordered is done, in every router's queue."""
    for router in ("api", "ingress"):
        notified.shell("sleep 0.1", router=router)
        notified.shell("exit 0", router=router)
    notified.commands.finish()
    assert len(notified.reports) == 4


def test_closing_kills_what_runs_and_forgets_what_waits(notified: Notified):
    """Nothing is left."""
    notified.shell("sleep 60")
    notified.shell("exit 0")
    until(lambda: notified.commands._running, what="it runs")
    pid = notified.commands._running["api"].pid
    notified.commands.close()
    until(lambda: not alive(pid), what="it is gone")
    notified.commands.finish()
    assert notified.reports == []


def test_a_machine_without_threads_is_told_and_the_next_command_runs(
    notified: Notified, monkeypatch: pytest.MonkeyPatch
):
    """What this machine cannot do now is an outcome, and holds up neither later commands nor the end."""
    spawn = ThreadPool.spawn

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPool, "spawn", refuse)
    notified.shell("exit 0")
    assert notified.outcomes(1) == ["not run: no process can be started: can't start new thread"]
    monkeypatch.setattr(ThreadPool, "spawn", spawn)
    notified.shell("exit 3")
    assert notified.outcomes(2)[1] == "exited 3"
    notified.commands.finish()
