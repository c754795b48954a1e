"""Random schedules of reloads and kills: the same seed is the same schedule."""

from dataclasses import dataclass
from random import Random

SUPERVISORD = "supervisord"
PROGRAMS = ("reload", "health", "proxy-api", "proxy-ingress", SUPERVISORD)
_PROXIES = ("proxy-api", "proxy-ingress")
CHANGES = ("generation", "live", "narrow", "move")
_LONGEST_PAUSE = 0.6  # seconds; about what a reload takes, so that kills meet every part of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """After a pause the operator's file has changed in so many ways, and the line `reload` is sent."""

    pause: float
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """After a pause a program is killed, or a worker of one: that with a place among those that serve.

    supervisord is started again at once, as an operator or systemd does.
    """

    pause: float
    program: str
    worker: int | None


Step = Reload | Kill


def schedule(seed: int, *, steps: int) -> tuple[Step, ...]:
    """Return the steps of a seed."""
    random = Random(seed)  # noqa: S311  # it protects nothing
    return tuple(_step(random) for _ in range(steps))


def _step(random: Random) -> Step:
    pause = round(random.uniform(0.0, _LONGEST_PAUSE), 3)
    if random.random() < 0.4:
        return Reload(pause=pause, changes=tuple(random.sample(CHANGES, random.randint(1, 2))))
    if random.random() < 0.2:
        return Kill(pause=pause, program=random.choice(_PROXIES), worker=random.randint(0, 1))
    return Kill(pause=pause, program=random.choice(PROGRAMS), worker=None)
