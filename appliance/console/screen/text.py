"""The text of the screen, made of its facts: addresses, state, problems, and what to do about them."""

from collections.abc import Iterator
from typing import Final

import appliance
from appliance.console.screen.facts import ScreenFacts
from appliance.console.screen.hint import hint
from appliance.console.screen.log_in import log_in
from appliance.core.status.problems import wrong_properties
from appliance.model.guest.report import GuestReport
from appliance.model.messages.quoting import masked

_MOST_PROBLEMS: Final = 8


def screen_text(facts: ScreenFacts) -> str:
    """Return the whole screen as agetty reads it."""
    return "".join(f"{_plain(line)}\n" for line in ("", *_lines(facts), ""))


def _lines(facts: ScreenFacts) -> Iterator[str]:
    yield f"Load-balancer appliance {appliance.__version__} on {facts.host}"
    yield ""
    yield from _address_lines(facts)
    yield f"State:     {_state(facts)}"
    yield from log_in(facts)
    if facts.status.degraded is not None:
        yield from hint(
            f"{facts.config} has errors: `sudo appliance check` lists them; once it is right "
            "`sudo appliance reload` takes it"
        )
    report = facts.status.guest
    problems = (
        facts.status.problems if facts.configured else tuple(wrong_properties(report) if report else ())
    )
    for problem in problems[:_MOST_PROBLEMS]:
        yield from hint(problem)
    if len(problems) > _MOST_PROBLEMS:
        yield from hint(f"and {len(problems) - _MOST_PROBLEMS} more: `sudo appliance status`")
    yield from _what_to_do(facts, report)


def _address_lines(facts: ScreenFacts) -> Iterator[str]:
    virtual = {
        address: each.name for each in facts.status.virtual_ips if each.active for address in each.addresses
    }
    title = "Addresses:"
    for interface, addresses in facts.addresses:
        for address in addresses:
            name = virtual.get(address)
            yield f"{title:10} {address} ({interface}{f', virtual IP {name}' if name else ''})"
            title = ""
    if title:
        yield f"{title:10} none yet"


def _state(facts: ScreenFacts) -> str:
    status = facts.status
    if not facts.configured and status.configuration is None:
        return "not configured"
    if status.supervisor is not None:
        return "not running"
    if status.degraded is not None:
        return "serving the last good configuration"
    return "serving" if status.ok else "running, with problems"


def _what_to_do(facts: ScreenFacts, report: GuestReport | None) -> Iterator[str]:
    wrong = report is not None and any(each.key for each in report.problems)
    if wrong:
        yield from hint("to change properties: shut down, edit the vApp options of the machine, power on")
    elif not facts.configured:
        yield from hint(
            "to configure: shut down, fill in the vApp options of the machine, power on; or log in, write "
            f"{facts.config}, and `sudo systemctl restart appliance`"
        )
    elif facts.status.supervisor is not None:
        yield from hint("why it does not run: `sudo journalctl -u appliance`")


def _plain(line: str) -> str:
    """Return a line in which agetty finds no orders, and a terminal neither."""
    return masked(line, "?").replace("\\", "\\\\")
