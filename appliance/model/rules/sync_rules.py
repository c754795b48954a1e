"""Rules for `sync`: connections that other nodes learn need `forward: kernel`, and a virtual IP."""

from collections.abc import Iterator

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection
from appliance.model.config.values.vrrp import DEVICE
from appliance.model.config.virtual_ips import VirtualIpSection
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import error
from appliance.model.rules.references import frontends
from appliance.model.snapshot.frontends import Forward
from appliance.model.snapshot.sync import covers


def findings(config: Config) -> Iterator[Finding]:
    """Yield what `sync` cannot do."""
    for path, frontend in frontends(config):
        if frontend.sync:
            yield from _frontend((*path, "sync"), frontend, config)


def _frontend(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    forward = (*path[:-1], "forward")
    if frontend.forward is not Forward.KERNEL:
        message = (
            "needs `forward: kernel`: a proxy's connections end with its node, as their bytes are in its"
            " memory"
        )
        yield error(path, message, forward)
        return
    found = {name: each for name, each in config.virtual_ips.items() if _lead_to(frontend, each)}
    for name, each in found.items():
        if len(each.peers) > 1:
            message = (
                f"conntrackd sends to one peer, or by multicast, and `{name}` has {len(each.peers)} peers:"
                " leave `peers` out, or name one"
            )
            yield error(path, message, ("virtual_ips", name, "peers"))
    if not found:
        message = "needs a virtual IP: no address of `virtual_ips` leads to this frontend, so none moves"
        yield error(path, message, (*path[:-1], "bind"))


def _lead_to(frontend: FrontendSection, given: VirtualIpSection) -> bool:
    literal = (each.partition(DEVICE)[0].partition("/")[0] for each in (*given.addresses, *given.excluded))
    return any(covers(bind.host, each) for each in literal for bind in frontend.bind)
