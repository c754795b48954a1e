"""The note that the virtual IPs of this node are left to others: the line `stop` came, and no `reload` since.

`reload` writes and removes it; `vrrp` looks for it at its start, so that one that is started again stays out
of what it was told to leave. It lies in the runtime directory: like the note of OpenShift's keepalived pod
(`/var/run/keepalived/stopped`) it outlives the container, and not the pod or the machine.
"""

from pathlib import Path

from appliance.model.paths import Paths
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_atomically


def are_stopped(paths: Paths) -> bool:
    """Say whether the note is there."""
    return _path(paths).is_file()


def note_stop(paths: Paths) -> None:
    """Leave the note; raises OSError."""
    state_files.clear_way(_path(paths))
    write_atomically(_path(paths), b"")


def forget_stop(paths: Paths) -> None:
    """Remove the note; raises OSError."""
    state_files.clear_way(_path(paths))
    _path(paths).unlink(missing_ok=True)


def _path(paths: Paths) -> Path:
    return paths.runtime / "virtual-ips.stopped"
