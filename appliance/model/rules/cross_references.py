"""All rules between keys: references, clashing binds, checks that contradict themselves.

A rule yields findings. An error could not work or would be dangerous; a warning is probably not intended.
"""

from collections.abc import Iterator
from itertools import chain

from appliance.model.config.configuration import Config
from appliance.model.messages.problems import Finding
from appliance.model.rules import (
    bind_rules,
    discovery_rules,
    forward_rules,
    frontend_rules,
    linger_rules,
    notify_rules,
    pool_rules,
    redirect_rules,
    shared_ip_rules,
    source_rules,
    stats_rules,
    virtual_router_rules,
)


def findings(config: Config) -> Iterator[Finding]:
    """Yield all contradictions; called by `model.loading.loading` when each key is right."""
    return chain(
        frontend_rules.findings(config),
        bind_rules.findings(config),
        redirect_rules.findings(config),
        forward_rules.findings(config),
        pool_rules.findings(config),
        source_rules.findings(config),
        discovery_rules.findings(config),
        virtual_router_rules.findings(config),
        virtual_router_rules.conflicts(config),
        shared_ip_rules.findings(config),
        linger_rules.findings(config),
        linger_rules.sync_findings(config),
        stats_rules.findings(config),
        notify_rules.findings(config),
    )
