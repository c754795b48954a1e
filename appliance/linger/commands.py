"""What `linger` answers on its control socket: the commands of `reload`, and queries."""

import time
from collections.abc import Mapping

from appliance.linger.address_sets import address_sets, shared_sets
from appliance.linger.lingerer import Lingerer
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.common_commands import ReloadCommands
from appliance.net.control.control_server import Call, Handler
from appliance.net.nftables.nftables import NftablesError
from appliance.wire.lines import owner_change
from appliance.wire.lines.control import Answer, bad, good
from appliance.wire.lines.linger_status import KeeperStatus, KeptStatus, LingerStatus
from appliance.wire.linger_node import Condition


class LingerCommands(ReloadCommands):
    """The commands by their names; those of a reload are in `ReloadCommands`."""

    def __init__(self, paths: Paths, lingerer: Lingerer) -> None:
        self._lingerer = lingerer
        super().__init__(
            LINGER,
            paths,
            applied=lambda: lingerer.snapshot,
            apply=lingerer.apply,
            differs=lambda proposed, applied: _used(proposed) != _used(applied),
            objections=lambda proposed: (
                *lingerer.segments.objections(lingerer.snapshot, proposed),
                *lingerer.shared.objections(lingerer.snapshot, proposed),
            ),
        )

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            "change-owner": self._change_owner,
            "condition": self._condition,
            **super().handlers(),
        }

    def _change_owner(self, call: Call) -> Answer:
        """Note which connections `migrate` has taken from another node, and given to one."""
        changed = owner_change.decode(call.question.values)
        try:
            self._lingerer.change_owner(ours=changed.ours, others=changed.others)
        except NftablesError as error:
            return bad(str(error))
        return good()

    def _condition(self, call: Call) -> Answer:
        """Take in which condition this node is, as the program `stats` finds it."""
        try:
            condition = Condition[call.question.text("condition").upper()]
        except KeyError as error:
            return bad(f"there is no condition {error}")
        self._lingerer.exchange.report(condition)
        return good()

    def status(self) -> object:
        """Return the answer to `status`."""
        lingerer = self._lingerer
        wall = time.time() - time.monotonic()
        drops = lingerer.reports.drops if lingerer.reports else {}
        return LingerStatus(
            **self.head(),
            trouble=lingerer.trouble,
            addresses=tuple(
                KeptStatus(
                    address=each.address,
                    router=lingerer.routers.get(each.address, ""),
                    active=each.active,
                    left_at=None if each.left_at is None else wall + each.left_at,
                    connections=each.connections,
                    followers=lingerer.followers(each.address),
                )
                for each in lingerer.served.values()
            ),
            others=tuple(
                KeeperStatus(
                    node=each.node,
                    address=each.address,
                    router=lingerer.routers.get(each.address, ""),
                    active=each.active,
                    left_at=None if each.active else wall + each.left_at,
                    connections=each.connections,
                )
                for each in lingerer.keepers()
            ),
            drops={each.value: count for each, count in drops.items()},
            shared=tuple(lingerer.shared.status()),
            nodes=lingerer.exchange.status(),
            strays=lingerer.shared.counts,
        )


def _used(snapshot: Snapshot) -> object:
    """Return the part of a snapshot that this program uses."""
    return snapshot.linger, tuple(address_sets(snapshot)), tuple(shared_sets(snapshot))
