"""What is found on a machine where all is well, and what a test changes in it."""

from dataclasses import replace

from support.values import boards
from support.values.snapshots import snapshot

from appliance.core.status.observations import Observations, SupervisedProgram
from appliance.core.status.status import (
    ProgramState,
)
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.discovery_status import DiscoveryStatus
from appliance.wire.lines.forward_status import ForwardStatus
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.migrate_status import MigrateStatus
from appliance.wire.lines.redirect_status import RedirectStatus
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.lines.status_answer import StatusAnswer
from appliance.wire.lines.vrrp_status import VrrpStatus

NOW = 200.0
NAMES = ("reload", "health", "proxy-api")


def supervised(name: str, state: ProgramState = ProgramState.RUNNING, **changes: object) -> SupervisedProgram:
    """Return a program that runs for 50 s."""
    running = SupervisedProgram(name=name, state=state, pid=77, started_at=150.0, reason=None)
    return replace(running, **changes)


def answers(**statuses: StatusAnswer) -> dict[str, StatusAnswer]:
    """Return what programs answer where all is well, and of these programs these statuses."""
    well = {name: StatusAnswer(pid=77, started_at=150.0, snapshot=7) for name in NAMES}
    return {**well, "reload": ReloadStatus(pid=77, started_at=150.0, snapshot=7), **statuses}


def observations(
    *,
    vrrp: VrrpStatus | None = None,
    discover: DiscoveryStatus | None = None,
    redirect: RedirectStatus | None = None,
    forward: ForwardStatus | None = None,
    linger: LingerStatus | None = None,
    announce: AnnounceStatus | None = None,
    migrate: MigrateStatus | None = None,
    **changes: object,
) -> Observations:
    """Return what is found where all is well, with the answers of these programs besides."""
    given = {
        "vrrp": vrrp,
        "discover": discover,
        "redirect": redirect,
        "forward": forward,
        "linger": linger,
        "announce": announce,
        "migrate": migrate,
    }
    more = {name: each for name, each in given.items() if each is not None}
    found = Observations(
        snapshot=snapshot(number=7),
        supervised=tuple(map(supervised, NAMES)),
        answers=answers(),
        health=boards.health_board(boards.health()),
        workers=(boards.worker(),),
        failures={},
        degraded=None,
    )
    changed = replace(found, **changes)
    return replace(changed, answers={**changed.answers, **more})
