"""`appliance demo`: an appliance with generated backends, in a directory that it removes afterwards."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from appliance.console.demo.demo_pair import run_pair
from appliance.console.demo.demo_ports import DemoError
from appliance.console.demo.demo_site import DemoSite, site
from appliance.console.demo.stop_signal import END_SECONDS, KILL_SECONDS, ORPHAN_SECONDS, StopSignal
from appliance.console.output.refusal import Refused
from appliance.console.program_questions import interrupt_quietly
from appliance.console.status.status_changes import Facts, changed_facts, facts
from appliance.console.status.status_tables import summary, tables
from appliance.core.status.assessment import assess
from appliance.core.status.status import Status
from appliance.net.observing.observation import observe
from appliance.net.process import python, subreaper
from appliance.net.process.prctl import die_with

_REFRESH: Final = 1.0
_POLL: Final = 0.05
_LAST_LINES: Final = 15


@click.command(epilog="Example: appliance demo --port-offset 1000")
@click.option(
    "--port-offset",
    type=click.IntRange(-8000, 40000),
    default=0,
    show_default=True,
    help="Number to add to every port of the demo, if another program uses one of them.",
)
@click.option(
    "--pair",
    is_flag=True,
    help="Two nodes with a virtual IP, in network namespaces; needs root, or user namespaces.",
)
def demo(*, port_offset: int, pair: bool) -> None:
    """Run the whole appliance with generated backends: three TLS masters and two routers.

    Needs neither root nor a configuration. Prints commands to try in a second terminal, and shows the status
    as a live table, or as lines if the output is not a terminal. Ctrl-C ends it and leaves nothing behind; a
    second Ctrl-C ends it at once. With --pair there are two nodes that share an address.
    """
    console = Console(highlight=False)
    stop = StopSignal()
    try:
        if pair:
            if not run_pair(console, stop):
                raise SystemExit(1)
            return
        with site(offset=port_offset) as made, _appliance(made, stop) as child:
            console.print(advice(made), markup=False, soft_wrap=True)
            ended_well = _watch(made, child, stop, console)
    except DemoError as error:
        raise Refused(str(error), step="fix that, then `appliance demo`") from error
    if not ended_well:
        raise SystemExit(1)


def advice(made: DemoSite) -> str:
    """Return the text on what the operator can try."""
    port = made.port
    api = f"https://localhost:{port(9445)}"
    return f"""\
Three masters and two routers behind a load balancer. In a second terminal:

  . {made.environment_file}
  curl -k {api}/readyz     # each master in turn
  curl http://localhost:{port(8080)}/             # ingress; and with TLS:
  curl -k https://localhost:{port(8443)}/
  while curl -sSk {api}/readyz; do sleep .1; done
                                        # leave it running; in a third one,
                                        # after the first line again:
    supervisorctl stop master-1         # no request fails
    supervisorctl start master-1
    supervisorctl restart proxy-api     # nor now
    sed -i 's/workers: 1/workers: 2/' $APPLIANCE_CONFIG
    appliance reload                    # nor now
  curl -kN {api}/watch     # one long answer outlives all that
  appliance status ; appliance sessions
  curl http://localhost:{port(8404)}/haproxy_stats   # the page, for your browser
  appliance maint masters/master-2 ; appliance ready masters/master-2

Logs: {made.log}    Ctrl-C here ends it all.
"""


@contextlib.contextmanager
def _appliance(made: DemoSite, stop: StopSignal) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the appliance until the `with` block ends."""
    subreaper.become_subreaper()  # so that no process stays even if supervisord was killed
    with made.log.open("ab") as log:
        child = subprocess.Popen(  # noqa: S603  # our own command
            # If root runs it, its directory is root's, and no other user needs access.
            python.command("appliance.console", "run", *(["--user", "root"] if os.geteuid() == 0 else [])),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={
                **os.environ,
                **made.paths.environment(),
                "APPLIANCE_SUPERVISOR_INCLUDE": str(made.include),
            },
            start_new_session=True,  # Ctrl-C of the terminal is for us; we pass it on to supervisord
            preexec_fn=partial(die_with, os.getpid(), signal.SIGTERM),  # noqa: PLW1509  # no threads yet, and prctl is all it does
        )
    try:
        yield child
    finally:
        made.ending.touch()
        _end(child, stop)


def _end(child: "subprocess.Popen[bytes]", stop: StopSignal) -> None:
    """Stop supervisord in order, or at once at the second signal; then kill its remaining programs."""
    if child.poll() is None:
        child.terminate()
    deadline = time.monotonic() + END_SECONDS
    while child.poll() is None and not stop.at_once.is_set() and time.monotonic() < deadline:
        stop.at_once.wait(timeout=_POLL)
    deadline = time.monotonic() + KILL_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        child.terminate()  # from the second signal on supervisord kills everything at once
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.5)
    subreaper.end_children(patience=ORPHAN_SECONDS, last_patience=KILL_SECONDS)


def _watch(made: DemoSite, child: "subprocess.Popen[bytes]", stop: StopSignal, console: Console) -> bool:
    """Show the status until the operator stops it; return False if the appliance has ended by itself."""
    show = _live if console.is_terminal else _lines
    interrupt_quietly()
    with show(console, advice(made), made.paths.supervisorctl) as update:
        while child.poll() is None:
            if made.paths.supervisor_socket.exists():  # before that there is nothing to show
                update(assess(observe(made.paths), time.time()))
            if stop.asked.wait(timeout=_REFRESH):
                break
    if stop.asked.is_set():
        console.print(
            "Stopping: open connections may end within the drain time. Ctrl-C again ends all at once."
        )
        return True
    console.print(f"The appliance has ended, with status {child.returncode}. Its last lines:")
    console.print("\n".join(_last_lines(made.log)), markup=False, soft_wrap=True)
    return False


@dataclass(frozen=True, slots=True)
class DemoView:
    """A status as tables, or as a summary if tables and the `text_lines` above do not fit the terminal."""

    status: Status
    text_lines: int
    supervisorctl: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables if they fit, else the summary; rich calls this to print it."""
        whole = tables(self.status, supervisorctl=self.supervisorctl)
        lines = console.render_lines(whole, options, pad=False)
        fits = len(lines) + self.text_lines <= console.height
        yield whole if fits else summary(self.status, supervisorctl=self.supervisorctl)


@contextlib.contextmanager
def _live(console: Console, above: str, control: str) -> Iterator[Callable[[Status], None]]:
    taken = 1 + sum(-(-max(1, len(line)) // console.width) for line in above.splitlines())  # and the cursor's
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def update(status: Status) -> None:
            live.update(DemoView(status, text_lines=taken, supervisorctl=control), refresh=True)

        yield update


@contextlib.contextmanager
def _lines(console: Console, _: str, __: str) -> Iterator[Callable[[Status], None]]:
    known: Facts = {}

    def update(status: Status) -> None:
        nonlocal known
        now = facts(status)
        for line in changed_facts(known, now):
            console.print(f"{time.strftime('%H:%M:%S')} {line}", markup=False, soft_wrap=True)
        known = now

    yield update


def _last_lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines()[-_LAST_LINES:]
