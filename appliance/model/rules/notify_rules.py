"""Rules for the section `notify`: each target is notified in one way."""

from collections.abc import Iterator

from appliance.model.config.configuration import Config, NotifyTargetSection
from appliance.model.messages.problems import Finding
from appliance.model.rules.findings import error, warning

_WAYS = ("command", "webhook", "webhook_file", "syslog")


def findings(config: Config) -> Iterator[Finding]:
    """Yield targets with no way or several ones, and keys that do not match theirs."""
    for name, target in config.notify.items():
        at = ("notify", name)
        given = [each for each in _WAYS if getattr(target, each)]
        if len(given) != 1:
            said = " and ".join(f"`{each}`" for each in given) or "none"
            yield error(at, f"needs one of `command`, `webhook`, `webhook_file` and `syslog`, and has {said}")
        if target.token_file and not (target.webhook or target.webhook_file):
            yield error((*at, "token_file"), "requires a webhook")
        if target.ca and not (_speaks_tls(target) or target.webhook_file):
            yield error((*at, "ca"), "is for TLS: a syslog with tls://HOST:PORT, or a webhook with https")
        if target.token_file and (target.webhook or "").startswith("http://"):
            yield warning((*at, "webhook"), "the token crosses the network in clear text: use https")


def _speaks_tls(target: NotifyTargetSection) -> bool:
    return (target.syslog or "").startswith("tls://") or (target.webhook or "").startswith("https://")
