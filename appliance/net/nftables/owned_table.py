"""A table beside that of others which no flush of somebody else reaches: it belongs to this process.

The kernel removes it with our socket, by a kill too (NFT_TABLE_F_OWNER; Linux 5.12). So it is for what is of
use only while we run. Where there cannot be one it is tried again after some seconds.
"""

import time
from collections.abc import Callable
from typing import Final

from appliance.net.nftables.nftables import Nftables, NftablesError

_AGAIN: Final = 5.0  # seconds until a kernel that has refused is asked again


class OwnedTable:
    """A connection by which scripts write such a table: `add table ip NAME { flags owner; }` is in the first.

    `refused` is why the kernel has not done the last script, empty where it has.
    """

    def __init__(self, *, connect: Callable[[], Nftables] = Nftables) -> None:
        self.refused = ""
        self._connect = connect
        self._nftables: Nftables | None = None
        self._again = float("-inf")

    def write(self, script: str) -> bool:
        """Do a script; return whether that was done."""
        if time.monotonic() < self._again:
            return False
        try:
            if self._nftables is None:
                self._nftables = self._connect()
            self._nftables.run(script)
        except NftablesError as error:
            self.put_off(str(error))
            return False
        self.refused = ""
        return True

    def put_off(self, reason: str) -> None:
        """Do nothing more for some seconds."""
        self.refused, self._again = reason, time.monotonic() + _AGAIN

    def close(self) -> None:
        """End the connection: the kernel removes the table."""
        nftables, self._nftables = self._nftables, None
        if nftables is not None:
            nftables.close()
