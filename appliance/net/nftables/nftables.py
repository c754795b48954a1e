"""nftables: scripts of nft(8) in, objects out; each script is one transaction.

It is the library behind nft(8), in this process: a transaction takes a few hundred microseconds, a tenth of
the time of a separate process, and we can own tables. The kernel removes an owned table as soon as our socket
is closed, even by a kill, and no other process can change it, not even with `nft flush ruleset`
(NFT_TABLE_F_OWNER of linux/netfilter/nf_tables.h; Linux 5.12).

A call waits for the kernel, which processes one transaction at a time per network namespace. A call that
hangs stops the heartbeat of the program, which is then killed, and its rules are removed with it.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Iterable
from typing import Final

from appliance.wire.nftables.nftables_answer import ANSWER_LIMIT, NftablesAnswerError, NftablesObject, decode
from appliance.wire.nftables.nftables_commands import LIST_TABLES, Family, list_chain

LIBRARY: Final = "libnftables.so.1"

_JSON: Final = 1 << 4  # NFT_CTX_OUTPUT_JSON of nftables/libnftables.h
_BEFORE_REASON: Final = "Error: "


class NftablesError(Exception):
    """A transaction was refused as a whole; or nftables cannot be used at all."""

    def is_because(self, number: int) -> bool:
        """Return whether the kernel's reason was this error: the library reports its text, not its number."""
        return os.strerror(number) in str(self)


class Nftables:
    """One connection to nftables. The constructor raises NftablesError without the library."""

    def __init__(self, *, library: str = LIBRARY) -> None:
        self._library = _load(library)
        self._context = self._library.nft_ctx_new(0)
        if not self._context:
            raise NftablesError(f"{library} gives no context")
        self._library.nft_ctx_output_set_flags(self._context, _JSON)
        self._library.nft_ctx_buffer_output(self._context)
        self._library.nft_ctx_buffer_error(self._context)

    def run(self, script: str, *, limit: int = ANSWER_LIMIT) -> tuple[NftablesObject, ...]:
        """Run a script as one transaction, and return what it lists, at most `limit` bytes.

        Raises NftablesError.
        """
        answer = self._run(script)
        try:
            return decode(answer, limit=limit)
        except NftablesAnswerError as error:
            raise NftablesError(f"an answer that is not understood: {error}") from error

    def try_script(self, script: str) -> None:
        """Let the kernel check a script without running it; raises NftablesError with its reason."""
        self._library.nft_ctx_set_dry_run(self._context, True)  # noqa: FBT003  # C has no names for arguments
        try:
            self._run(script)
        finally:
            self._library.nft_ctx_set_dry_run(self._context, False)  # noqa: FBT003  # as above

    def own_tables(self, families: Iterable[Family], table: str) -> None:
        """Create tables that vanish with this process; existing ones stay. Raises NftablesError."""
        self._run("\n".join(f"add table {each.value} {table} {{ flags owner; }}" for each in families))

    def close(self) -> None:
        """Close the connection; owned tables vanish."""
        context, self._context = self._context, None
        if context:
            self._library.nft_ctx_free(context)

    def _run(self, script: str) -> bytes:
        failed = self._library.nft_run_cmd_from_buffer(self._context, script.encode())
        # Both are read each time: reading empties the library's buffer.
        answer: bytes = self._library.nft_ctx_get_output_buffer(self._context) or b""
        complaint: bytes = self._library.nft_ctx_get_error_buffer(self._context) or b""
        if failed:
            raise NftablesError(_reason(complaint))
        return answer


class NftablesUser:
    """Something with a connection to nftables, from its first script on."""

    def __init__(self, connect: Callable[[], Nftables]) -> None:
        self._connect = connect
        self._nftables: Nftables | None = None

    def _open(self) -> Nftables:
        if self._nftables is None:
            self._nftables = self._connect()
        return self._nftables

    def _disconnect(self) -> None:
        nftables, self._nftables = self._nftables, None
        if nftables is not None:
            nftables.close()


def listed_chain(
    nftables: Nftables, family: Family, table: str, chain: str
) -> tuple[NftablesObject, ...] | None:
    """Return a chain with its rules, None if there is no such chain; raises NftablesError."""
    try:
        return nftables.run(list_chain(family, table, chain))
    except NftablesError as error:
        if error.is_because(errno.ENOENT):
            return None
        raise


def unusable(*, library: str = LIBRARY) -> str | None:
    """Return why nftables cannot be used on this machine, None if its library exists."""
    try:
        _load(library)
    except NftablesError as error:
        return str(error)
    return None


def kernel_objection(*, library: str = LIBRARY) -> str | None:
    """Return why the kernel refuses nftables, None if it lists its tables; needs CAP_NET_ADMIN."""
    try:
        connection = Nftables(library=library)
    except NftablesError as error:
        return str(error)
    try:
        connection.run(LIST_TABLES)
    except NftablesError as error:
        return f"{error}: is the kernel's module nf_tables there? modprobe nf_tables"
    finally:
        connection.close()
    return None


def _reason(complaint: bytes) -> str:
    """Return the first line of an error without the position in the generated commands."""
    lines = complaint.decode(errors="replace").strip().splitlines() or ["refused without a reason"]
    return lines[0].partition(_BEFORE_REASON)[2] or lines[0]


def _load(name: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        message = f"{name} cannot be loaded (Debian's package libnftables1): {error}"
        raise NftablesError(message) from error
    context, text = ctypes.c_void_p, ctypes.c_char_p
    library.nft_ctx_new.argtypes, library.nft_ctx_new.restype = (ctypes.c_uint32,), context
    library.nft_ctx_free.argtypes, library.nft_ctx_free.restype = (context,), None
    library.nft_ctx_output_set_flags.argtypes = (context, ctypes.c_uint)
    library.nft_ctx_output_set_flags.restype = None
    library.nft_ctx_set_dry_run.argtypes = (context, ctypes.c_bool)
    library.nft_ctx_set_dry_run.restype = None
    for each in (library.nft_ctx_buffer_output, library.nft_ctx_buffer_error):
        each.argtypes, each.restype = (context,), ctypes.c_int
    for each in (library.nft_ctx_get_output_buffer, library.nft_ctx_get_error_buffer):
        each.argtypes, each.restype = (context,), text
    library.nft_run_cmd_from_buffer.argtypes = (context, text)
    library.nft_run_cmd_from_buffer.restype = ctypes.c_int
    return library
