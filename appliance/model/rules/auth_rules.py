"""Rules for `auth` of a virtual IP: one of password and HMAC, matching its version of VRRP, and the keys."""

from collections.abc import Iterator
from typing import Final

from appliance.model.config.virtual_ips import AuthSection
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import error, key_error, warning
from appliance.model.snapshot.virtual_router import AntiReplay

PASSWORD_SIZE: Final = 8
"""Bytes of a password that an advertisement has room for (RFC 2338 section 5.3.10)."""


def auth_findings(path: Path, auth: AuthSection, *, vrrp_version: int) -> Iterator[Finding]:
    """Yield the contradictions below `auth`, which is at `path`."""
    both: tuple[Path, ...] = ((*path, "pass"), (*path, "hmac"), (*path[:-1], "version"))
    if (auth.password is None) == (auth.hmac is None):
        message = "must have either `pass` (version 2) or `hmac`"
        yield error(path, message, *both)
        return
    if auth.password is not None and vrrp_version == 3:
        message = "version 3 has no passwords (RFC 9568 s.9): use `hmac`, or `version: 2`"
        yield key_error((*path, "pass"), message, *both)
    elif auth.password is not None and len(auth.password.encode()) > PASSWORD_SIZE:
        message = (
            f"only the first {PASSWORD_SIZE} bytes count: any password that begins with them is accepted, "
            "as with keepalived"
        )
        yield warning((*path, "pass"), message)
    if auth.hmac is None:
        return
    if auth.hmac.time_window is not None and auth.hmac.anti_replay is AntiReplay.MONOTONIC:
        message = "has no effect with `anti_replay: monotonic`, which uses no clock"
        yield warning((*path, "hmac", "time_window"), message, (*path, "hmac", "anti_replay"))
    keys = auth.hmac.keys
    if auth.hmac.send is None and len(keys) > 1:
        message = "must name the key that signs: for example `send: 1`"
        yield error((*path, "hmac"), message, (*path, "hmac", "send"))
    if auth.hmac.send is not None and str(auth.hmac.send) not in keys:
        message = f"there is no key `{auth.hmac.send}`: known are {', '.join(keys)}"
        yield error((*path, "hmac", "send"), message, (*path, "hmac", "keys"))
