"""The lines of the screen that say how to log in: the ssh command and the host keys."""

from collections.abc import Iterator

from appliance.console.screen.facts import ScreenFacts
from appliance.console.screen.hint import hint


def log_in(facts: ScreenFacts) -> Iterator[str]:
    """Yield the lines; where no key was given nobody can log in, and they say how to give one.

    The ssh command names an address that stays on this machine: no virtual IP, and no link-local one.
    """
    report = facts.status.guest
    if report is not None and not report.login_keys:
        yield from hint(
            "nobody can log in, without a key: shut the machine down, fill in SSH public key (ssh_key) in "
            "its vApp options, power it on"
        )
        return
    own = (address for _, addresses in facts.addresses for address in addresses)
    held = {address for each in facts.status.virtual_ips for address in each.addresses}
    usual = [each.partition("/")[0] for each in own if each not in held and not each.startswith("fe80:")]
    yield f"Log in:    ssh admin@{usual[0] if usual else facts.host}"
    for position, each in enumerate(facts.host_keys):
        title = "" if position else "Host keys:"
        yield f"{title:10} {each.fingerprint} ({each.kind})"
