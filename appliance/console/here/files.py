"""Files that a configuration names and this user cannot use: secrets, certificates, authorities."""

from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Final

from appliance.migrate import link as tls
from appliance.migrate import tcp_repair
from appliance.migrate.link import LinkError
from appliance.model.capability import Capability
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.machine_needs import notify_files
from appliance.model.snapshot.linger import MovedSessions
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import HmacKey
from appliance.net.files import hmac_keys, state_files
from appliance.net.files.state_files import FileUnusable
from appliance.net.privileges import process_capabilities
from appliance.net.probing.tls_contexts import AuthorityError, TlsContexts
from appliance.stats.access import AccessError, web_access

_LONGEST: Final = 1 << 20


def unusable_files(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield each file that cannot be used, with the key that names it."""
    yield from _of_stats(snapshot)
    yield from _authorities(snapshot)
    yield from _of_kubernetes(snapshot)
    for router in snapshot.virtual_routers:
        if router.hmac:
            yield from _keys(("virtual_ips", router.name, "auth", "hmac"), router.hmac.keys)
    if snapshot.linger:
        yield from _keys(("linger",), snapshot.linger.keys)
        yield from _of_sessions(snapshot.linger.sessions)
    for neighbor in snapshot.bgp.neighbors if snapshot.bgp else ():
        if neighbor.password_file and (why := _unreadable(neighbor.password_file)):
            yield Finding(
                path=("bgp", "neighbors", neighbor.name, "password"),
                message=f"{neighbor.password_file} {why}",
            )
    for path, name in notify_files(snapshot.notify):
        if not FilePath(name).exists():
            yield Finding(path=path, message=f"`{name}` does not exist here")
    yield from _directories(snapshot)


def _of_stats(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.stats is None:
        return
    try:
        web_access(snapshot.stats)
    except AccessError as error:
        yield Finding(path=("stats",), message=str(error))


def _of_sessions(settings: MovedSessions | None) -> Iterator[Finding]:
    """Yield why sessions cannot move: the certificate, or the kernel."""
    if settings is None:
        return
    try:
        tls.context(settings, server=True)
    except LinkError as error:
        yield Finding(path=("linger", "sessions"), message=str(error))
    if process_capabilities.has(Capability.CAP_NET_ADMIN) and (why := tcp_repair.unsupported()):
        yield Finding(path=("linger", "sessions"), message=why)


def _authorities(snapshot: Snapshot) -> Iterator[Finding]:
    files: dict[str, Path] = {}
    for pool in snapshot.pools:
        found = (pool.discover.template,) if pool.discover else ()
        for server in (*pool.servers, *found):
            for check in server.check.whole if server.check else ():
                if check.verify:
                    files.setdefault(check.verify, ("pools", pool.name, "check", "verify"))
    for router in snapshot.virtual_routers:
        for track in router.track:
            if track.verify:
                files.setdefault(track.verify, ("virtual_ips", router.name, "track", track.name, "verify"))
    for file, path in files.items():
        try:
            TlsContexts().inspect(file)
        except AuthorityError as error:
            yield Finding(path=path, message=str(error))


def _of_kubernetes(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.kubernetes is None:
        return
    for key in ("kubeconfig", "token_file", "ca"):
        file: str | None = getattr(snapshot.kubernetes, key)
        if file and (why := _unreadable(file)):
            yield Finding(path=("kubernetes", key), message=f"{file} {why}")


def _unreadable(file: str) -> str | None:
    try:
        found = state_files.read(FilePath(file), limit=_LONGEST)
    except FileUnusable as error:
        return f"cannot be read: {error}"
    return "does not exist here" if found is None else None


def _keys(path: Path, keys: Iterable[HmacKey]) -> Iterator[Finding]:
    try:
        hmac_keys.secrets(keys)
    except OSError as error:
        yield Finding(path=path, message=error.strerror or str(error))


def _directories(snapshot: Snapshot) -> Iterator[Finding]:
    wanted: list[tuple[Path, str]] = [
        (("reload", "sockets", at), path) for at, path in enumerate(snapshot.reload.sockets)
    ]
    if snapshot.log.file is not None:
        wanted.append((("log", "file"), snapshot.log.file))
    if snapshot.stats and snapshot.stats.socket:
        wanted.append((("stats", "socket"), snapshot.stats.socket))
    for path, file in wanted:
        if not FilePath(file).parent.is_dir():
            yield Finding(path=path, message=f"there is no directory `{FilePath(file).parent}` here")
