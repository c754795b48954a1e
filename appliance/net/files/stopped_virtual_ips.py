"""The note that other nodes have the virtual IPs of this one: after the line `stop`, until `reload`.

`reload` writes and removes it; `vrrp` looks for it at its start, so that a restarted one does not take back
the virtual IPs. It lies in the runtime directory: like the note of OpenShift's keepalived pod
(`/var/run/keepalived/stopped`) it outlives the container, but not the pod or the machine.
"""

from pathlib import Path

from appliance.model.paths import Paths
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_whole


def are_stopped(paths: Paths) -> bool:
    """Return whether the note exists."""
    return _path(paths).is_file()


def note_stop(paths: Paths) -> None:
    """Write the note; raises OSError."""
    state_files.clear_way(_path(paths))
    write_whole(_path(paths), b"")


def forget_stop(paths: Paths) -> None:
    """Remove the note; raises OSError."""
    state_files.clear_way(_path(paths))
    _path(paths).unlink(missing_ok=True)


def _path(paths: Paths) -> Path:
    return paths.runtime / "virtual-ips.stopped"
