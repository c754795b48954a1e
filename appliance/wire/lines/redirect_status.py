"""What the program `redirect` answers to `status`: written by it, read by `appliance status`.

Whatever is absent has a default, so that the answer of another version can still be read. Moments are Unix
seconds.
"""

from dataclasses import dataclass
from enum import StrEnum

from appliance.wire.lines.status_answer import StatusAnswer


class RedirectState(StrEnum):
    """ON: new connections are redirected. STANDS_BACK: OpenShift's monitor has its own rules for that."""

    ON = "on"
    OFF = "off"
    STANDS_BACK = "stands-back"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectedFrontend:
    """The redirect of one frontend, `api/kube-api`: from which addresses, to which, since when, and why.

    `streak` counts the looks in a row that contradict the state; `state` is a RedirectState.
    """

    name: str
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    state: str = ""
    since: float = 0.0
    reason: str = ""
    streak: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectStatus(StatusAnswer):
    """The whole answer. `trouble` is why the rules are not as they should be, empty where they are.

    `owned` is whether the kernel removes the rules when the program ends, however it ends, and `guarded`
    whether it redirects only where somebody listens: both depend on the kernel's age.
    """

    trouble: str = ""
    owned: bool = True
    guarded: bool = True
    redirects: tuple[RedirectedFrontend, ...] = ()

    def redirect(self, name: str) -> RedirectedFrontend | None:
        """Return the redirect of a frontend, None where there is none."""
        return next((each for each in self.redirects if each.name == name), None)
