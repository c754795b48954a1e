"""A table that no other process can flush, because this process owns it.

The kernel removes it with our socket, even by a kill (NFT_TABLE_F_OWNER; Linux 5.12). So it is for rules
needed only while we run. If it cannot be created, this is tried again after some seconds.
"""

import time
from collections.abc import Callable
from typing import Final

from appliance.net.nftables.nftables import Nftables, NftablesError, NftablesUser

_AGAIN: Final = 5.0  # seconds until a retry after a refusal


class OwnedTable(NftablesUser):
    """A connection for scripts that write such a table: the first has `add table ip NAME { flags owner; }`.

    `refused` is why the kernel refused the last script, empty if it did not.
    """

    def __init__(self, *, connect: Callable[[], Nftables] = Nftables) -> None:
        super().__init__(connect)
        self.refused = ""
        self._again = float("-inf")

    def write(self, script: str) -> bool:
        """Run a script; return whether it succeeded."""
        if time.monotonic() < self._again:
            return False
        try:
            self._open().run(script)
        except NftablesError as error:
            self.put_off(str(error))
            return False
        self.refused = ""
        return True

    def close(self) -> None:
        """Close the connection: the kernel removes the table."""
        self._disconnect()

    def put_off(self, reason: str) -> None:
        """Pause for some seconds."""
        self.refused, self._again = reason, time.monotonic() + _AGAIN
