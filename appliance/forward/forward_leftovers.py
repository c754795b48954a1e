"""Rules that an earlier `forward` left in the kernel while nothing is configured to be forwarded.

They belong to any `forward` in this network namespace, so nothing is removed while one runs there.
"""

from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.forwarding import ruleset
from appliance.core.forwarding.mark_numbers import MARK, MARK_MASK
from appliance.model.capability import Capability
from appliance.model.paths import Paths
from appliance.net.netlink.namespace_claim import NamespaceClaim
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.net.privileges.process_capabilities import has
from appliance.wire.nftables.nftables_commands import Family, delete_table

CLAIM: Final = "lb-appliance-forward"
"""The abstract socket name that a running `forward` holds in its network namespace (NamespaceClaim)."""


def remove_all(paths: Paths, log: FilteringBoundLogger) -> None:
    """Remove the rules and conntrack's entries of their connections, unless a `forward` runs.

    conntrackd ends first: it would have other nodes forget the same connections.
    """
    if not has(Capability.CAP_NET_ADMIN):
        return
    try:
        claim = NamespaceClaim(CLAIM)
    except OSError as error:
        log.warning("leftovers-unknown", reason=error.strerror or str(error))
        return
    try:
        if claim.held and paths.conntrackd_config.exists():
            from appliance.forward.conntrackd import Conntrackd  # noqa: PLC0415  # each start of the appliance looks

            Conntrackd(paths, log).stop()
            paths.conntrackd_config.unlink(missing_ok=True)
        if claim.held and _removed():
            log.warning("leftover-removed", table=ruleset.TABLE)
            _forget_connections()
    except OSError as error:
        log.warning("leftover-stays", table=ruleset.TABLE, reason=error.strerror or str(error))
    finally:
        claim.close()


def _removed() -> bool:
    """Remove the table of each family; return whether there was one."""
    try:
        nftables = Nftables()
    except NftablesError:  # without the library nothing was ever forwarded here
        return False
    try:
        return True in [_remove(nftables, family) for family in Family]
    finally:
        nftables.close()


def _remove(nftables: Nftables, family: Family) -> bool:
    try:
        nftables.run(delete_table(family, ruleset.TABLE))
    except NftablesError:  # it does not exist
        return False
    return True


def _forget_connections() -> None:
    from appliance.forward.ended_connections import forget  # noqa: PLC0415  # as above
    from appliance.net.netlink.conntrack import Conntrack  # noqa: PLC0415

    conntrack = Conntrack()
    try:
        forget(conntrack, MARK, MARK_MASK, offloaded=True)
    finally:
        conntrack.close()
