"""The answer of the program `redirect` to `status`, read by `appliance status`."""

from dataclasses import dataclass
from enum import StrEnum

from appliance.wire.lines.status_answer import StatusAnswer


class RedirectState(StrEnum):
    """ON: new connections are redirected. STANDS_BACK: OpenShift's monitor has its own rules for them."""

    ON = "on"
    OFF = "off"
    STANDS_BACK = "stands-back"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectedFrontend:
    """The redirect of one frontend, `api/kube-api`: from which addresses, to which, since when, and why.

    `streak` counts the consecutive observations that contradict the state; `state` is a RedirectState.
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
    """The whole answer. `trouble` is why the rules are not as intended, empty if they are.

    `owned`: the kernel removes the rules when the program ends, however it ends. `guarded`: it redirects only
    if a program listens. Both depend on the kernel's age.
    """

    trouble: str = ""
    owned: bool = True
    guarded: bool = True
    redirects: tuple[RedirectedFrontend, ...] = ()

    def redirect(self, name: str) -> RedirectedFrontend | None:
        """Return the redirect of a frontend, None without one."""
        return next((each for each in self.redirects if each.name == name), None)
